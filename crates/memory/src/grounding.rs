//! Whose words a thing is made of. Pure: no clock, no disk, no network.
//!
//! A model that writes something down may say that the user wants it, and may even name a record of the user as where it came from.
//! Neither makes it so: what counts is in whose records its words stand.

use std::collections::HashSet;
use std::sync::LazyLock;

use longhaul_protocol::{Extracted, ExtractedKind, Seq, Speaker};

/// Words that have so many letters say something.
const SHORTEST: usize = 3;
/// So many words in common are no coincidence.
const MANY: usize = 4;
/// Words that begin with the same so many letters are taken for forms of one word.
const STEM: usize = 5;
/// Words that stand in any text, and those in which it is told that somebody said or wants something: they are the teller's own.
static SAYS_NOTHING: LazyLock<HashSet<&str>> = LazyLock::new(|| {
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

/// The words that stand in some texts, by their stems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocabulary(HashSet<String>);

impl Vocabulary {
    /// The words of these texts.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        Self(texts.into_iter().flat_map(stems).collect())
    }

    /// How many of these words stand here.
    fn count(&self, words: &HashSet<String>) -> usize {
        words.iter().filter(|word| self.0.contains(*word)).count()
    }
}

/// What there is to judge by.
#[derive(Debug, Clone, Copy)]
pub struct SpeakerEvidence<'a> {
    /// The least trusted of the records that are given as sources.
    pub weakest: Speaker,
    /// The words of the user's among these sources.
    pub said: &'a Vocabulary,
    /// The words of all that the assistant said, as far as the teller had it before it.
    pub assistant: &'a Vocabulary,
    /// The words of each thing that is untrusted, as far as the teller had it before it.
    pub untrusted: &'a [Vocabulary],
}

/// Who said something that is told in these words.
///
/// - It is at most as trusted as its weakest source.
/// - If more of its words stand in one thing that is untrusted than in what the user said, it is untrusted, whatever the sources are. If
///   as many do, and they are not just a few, nobody can tell whose it is, and it is no more than the assistant's.
/// - If not even half of its words stand in what the user said, it is the teller's own claim, and no more than the assistant's: a word or
///   two have the most different things in common.
/// - So it is if more of them stand in what the assistant said, unless nearly all stand in what the user said: an assistant repeats what
///   it read, and says more than the user in any case.
pub fn attribute_speaker(text: &str, grounds: &SpeakerEvidence<'_>) -> Speaker {
    let words: HashSet<String> = stems(text).collect();
    let by_user = grounds.said.count(&words);
    let by_others = grounds.untrusted.iter().map(|one| one.count(&words)).max().unwrap_or(0);
    if grounds.weakest == Speaker::Untrusted || by_others > by_user {
        return Speaker::Untrusted;
    }
    let has_grounds = by_user > 0 && 2 * by_user >= words.len();
    let is_contested = by_others == by_user && words.len() >= MANY;
    let is_theirs = 3 * by_user > 2 * words.len() || grounds.assistant.count(&words) <= by_user;
    if grounds.weakest == Speaker::User && has_grounds && !is_contested && is_theirs {
        Speaker::User
    } else {
        Speaker::Assistant
    }
}

/// The less trusted of two.
pub(crate) fn weaker(one: Speaker, other: Speaker) -> Speaker {
    match (one, other) {
        (Speaker::Untrusted, _) | (_, Speaker::Untrusted) => Speaker::Untrusted,
        (Speaker::Assistant, _) | (_, Speaker::Assistant) => Speaker::Assistant,
        (Speaker::User, Speaker::User) => Speaker::User,
    }
}

/// An extract as it counts here. What came with an imported session was written elsewhere, and nobody here vouches for what it says of its
/// speakers, nor of whose memory it belongs to: that is the scope that the session has here.
pub(crate) fn own_or_foreign(
    seq: Seq,
    mut extracted: Extracted,
    foreign_through: Seq,
    scope: &str,
) -> Extracted {
    if seq <= foreign_through {
        scope.clone_into(&mut extracted.scope);
        for item in &mut extracted.items {
            item.speaker = Speaker::Untrusted;
            item.kind = kind_by(item.kind, Speaker::Untrusted);
            item.quote = None;
        }
    }
    extracted
}

/// What a thing can be that this speaker said: nobody but a person says what that person wants, and what a file says decides nothing.
pub(crate) fn kind_by(kind: ExtractedKind, speaker: Speaker) -> ExtractedKind {
    match (kind, speaker) {
        (ExtractedKind::Preference | ExtractedKind::Request, Speaker::Assistant | Speaker::Untrusted)
        | (ExtractedKind::Decision, Speaker::Untrusted) => ExtractedKind::Discussion,
        _ => kind,
    }
}

/// The words of a text that say something, each by its stem.
fn stems(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.flat_map(|word| {
        let word = word.to_lowercase();
        let letters: Vec<char> = word.chars().collect();
        if letters.iter().any(|letter| stands_alone(*letter)) {
            return pairs(&letters);
        }
        let says_something = letters.len() >= SHORTEST || !word.is_ascii();
        if says_something && !SAYS_NOTHING.contains(word.as_str()) { vec![stem(&letters)] } else { vec![] }
    })
}

fn stem(letters: &[char]) -> String {
    let is_plural = letters.len() > SHORTEST && letters.ends_with(&['s']);
    let singular = &letters[..letters.len() - usize::from(is_plural)];
    singular.iter().take(STEM).collect()
}

/// In scripts without spaces two letters in a row are what comes closest to a word.
fn pairs(letters: &[char]) -> Vec<String> {
    letters.windows(letters.len().min(2)).map(|pair| pair.iter().collect()).collect()
}

/// Whether a letter is of a script that has no spaces between words: Thai, Lao, Khmer, Burmese, kana and Han.
fn stands_alone(letter: char) -> bool {
    matches!(letter, '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}')
        || matches!(letter, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
        || matches!(letter, '\u{20000}'..='\u{3ffff}')
}

#[cfg(test)]
#[path = "grounding_tests.rs"]
mod tests;
