//! Attribution: which speaker the words of an item come from. Pure.
//!
//! A model may claim that the user wants something, and may cite a record of the user. Neither makes it true. What
//! counts is which records contain the words.

use std::collections::HashSet;
use std::sync::LazyLock;

use longhaul_protocol::{Extracted, ExtractedKind, Seq, Speaker, WordRun, is_hangul, word_runs};

/// Shorter ASCII words are ignored.
const MIN_WORD_LETTERS: usize = 3;
/// An item with at least this many words is contested if untrusted text has as many of them as the user's text.
const MIN_CONTESTED_WORDS: usize = 4;
/// Words with the same first letters count as forms of one word.
const STEM_LETTERS: usize = 5;
/// Stop words, and verbs of saying and wanting. The model adds these itself.
static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    "about after agent all also always and any are ask asked asks assistant because been before being but \
     can could decided decides decision did does each every everything fact for from had has have her his \
     how into its just let like liked likes make may more most must need needs never not now okay one only \
     other our out over person please prefer preference preferred prefers remember request requested \
     requests said say says session shall she should some such than that the their them then there these \
     they this those told use used user users uses using via want wanted wants was were what when where \
     which who will wish wishes with would yes you your"
        .split(' ')
        .collect()
});

/// The stems of the words in some texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary(HashSet<String>);

impl Vocabulary {
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(texts.into_iter().flat_map(stems).collect())
    }

    /// How many of these words the vocabulary contains.
    fn count(&self, words: &HashSet<String>) -> usize {
        words.iter().filter(|word| self.0.contains(*word)).count()
    }
}

/// The evidence for attributing a text to a speaker.
#[derive(Debug, Clone, Copy)]
pub struct SpeakerEvidence<'a> {
    /// The least trusted speaker of the cited records.
    pub weakest: Speaker,
    /// The user's words in the cited records.
    pub said: &'a Vocabulary,
    /// The words of the assistant in the text that the model has read.
    pub assistant: &'a Vocabulary,
    /// The words of each untrusted text that the model has read.
    pub untrusted: &'a [Vocabulary],
}

/// Attributes a text to a speaker.
///
/// - It is at most as trusted as its least trusted source.
/// - If one untrusted text contains more of its words than the user's text, it is untrusted, whatever its sources
///   are. If it contains as many, and they are more than a few, the text counts as the assistant's.
/// - If the user's text contains less than half of its words, it is the model's own claim and counts as the
///   assistant's, because any two texts share a word or two.
/// - It also counts as the assistant's if the assistant said more of its words, unless the user said nearly all of
///   them: an assistant repeats what it reads, and says more than the user anyway.
pub fn attribute_speaker(text: &str, grounds: &SpeakerEvidence<'_>) -> Speaker {
    let words: HashSet<String> = stems(text).collect();
    let by_user = grounds.said.count(&words);
    let by_others = grounds.untrusted.iter().map(|one| one.count(&words)).max().unwrap_or(0);
    if grounds.weakest == Speaker::Untrusted || by_others > by_user {
        return Speaker::Untrusted;
    }
    let has_grounds = by_user > 0 && 2 * by_user >= words.len();
    let is_contested = by_others == by_user && words.len() >= MIN_CONTESTED_WORDS;
    let is_theirs = 3 * by_user > 2 * words.len() || grounds.assistant.count(&words) <= by_user;
    if grounds.weakest == Speaker::User && has_grounds && !is_contested && is_theirs {
        Speaker::User
    } else {
        Speaker::Assistant
    }
}

pub(crate) fn less_trusted(one: Speaker, other: Speaker) -> Speaker {
    match (one, other) {
        (Speaker::Untrusted, _) | (_, Speaker::Untrusted) => Speaker::Untrusted,
        (Speaker::Assistant, _) | (_, Speaker::Assistant) => Speaker::Assistant,
        (Speaker::User, Speaker::User) => Speaker::User,
    }
}

/// An extract as it counts in this home. An extract from an imported session was written elsewhere. So its speakers
/// are untrusted, and its scope is the one that the session has here.
pub(crate) fn distrust_imported(
    seq: Seq,
    mut extracted: Extracted,
    foreign_through: Seq,
    scope: &str,
) -> Extracted {
    if seq <= foreign_through {
        scope.clone_into(&mut extracted.scope);
        for item in &mut extracted.items {
            item.speaker = Speaker::Untrusted;
            item.kind = kind_for_speaker(item.kind, Speaker::Untrusted);
            item.quote = None;
        }
    }
    extracted
}

/// The kind that an item of this speaker can have. Only the user states preferences and requests, and untrusted text
/// makes no decisions.
pub(crate) fn kind_for_speaker(kind: ExtractedKind, speaker: Speaker) -> ExtractedKind {
    match (kind, speaker) {
        (ExtractedKind::Preference | ExtractedKind::Request, Speaker::Assistant | Speaker::Untrusted)
        | (ExtractedKind::Decision, Speaker::Untrusted) => ExtractedKind::Discussion,
        _ => kind,
    }
}

/// The stems of the content words. In scripts without spaces, each pair of characters counts as a word.
fn stems(text: &str) -> impl Iterator<Item = String> {
    word_runs(text).flat_map(|run| match run {
        WordRun::Unspaced(run) => {
            let letters: Vec<char> = run.chars().collect();
            letters
                .chunk_by(|one, next| is_hangul(*one) == is_hangul(*next))
                .flat_map(unspaced_stems)
                .collect()
        }
        WordRun::Spaced(word) => {
            let word = word.to_lowercase();
            let letters: Vec<char> = word.chars().collect();
            let is_long = letters.len() >= MIN_WORD_LETTERS || !word.is_ascii();
            if is_long && !STOP_WORDS.contains(word.as_str()) { vec![stem(&letters)] } else { vec![] }
        }
    })
}

/// The stems of letters that are all Korean, or all of a script without spaces.
fn unspaced_stems(letters: &[char]) -> Vec<String> {
    match letters {
        [first, ..] if is_hangul(*first) => vec![stem(letters)],
        _ => letters.windows(letters.len().min(2)).map(|pair| pair.iter().collect()).collect(),
    }
}

fn stem(letters: &[char]) -> String {
    let is_plural = letters.len() > MIN_WORD_LETTERS && letters.ends_with(&['s']);
    let singular = &letters[..letters.len() - usize::from(is_plural)];
    singular.iter().take(STEM_LETTERS).collect()
}

#[cfg(test)]
#[path = "provenance_tests.rs"]
mod tests;
