//! What of a record can be found, and how text is split into words. Every engine uses these two functions, so
//! that the same search finds the same records in each.

use std::collections::BTreeSet;

use longhaul_protocol::{
    BlobRef, ExtractRecord, Item, MemoryRecord, Record, Seq, SessionRecord, StreamName, SystemMessage,
};

use crate::stems;

/// The tools that show what other records hold. What they are asked and what they say is not found: it would stand before
/// what it repeats. The agent names them, and this crate must not depend on it.
const TOOLS_THAT_REPEAT: [&str; 5] =
    ["history_search", "history_read", "memory_search", "memory_read", "memory_note"];
/// So many characters of what was said near a record say what the record is about.
const LONGEST_NEIGHBOUR: usize = 300;
/// So many characters of a record say what it is about itself.
const LONGEST_GIST: usize = 16_000;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Words, whatever their case and accents.
    pub words: String,
    /// How many of the words a record must have.
    pub matching: Match,
    /// The streams to look in; all, if none is named.
    pub streams: Vec<StreamName>,
    /// At most so many hits.
    pub limit: usize,
}

/// How many of the words of a search a record must have to be found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Match {
    /// All of them.
    #[default]
    All,
    /// One at least. Those that have more of them, and those that few others have, are better.
    Any,
    /// One at least, in any of its forms, in the record or in what was said around it, which counts less. What has more of the words
    /// is better. Of what is very long only the beginning counts.
    Around,
}

/// A record that was found, the best first.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Hit {
    /// The stream.
    pub stream: StreamName,
    /// The place.
    pub seq: Seq,
    /// The part of the text that holds one of the words, for people to see.
    pub excerpt: String,
    /// How well it fits: the more the better. It says something only beside the other hits of one search.
    pub score: f64,
}

/// In how many records words stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frequencies {
    /// For each of the words.
    pub with: Vec<u64>,
    /// Of so many.
    pub all: u64,
}

impl Frequencies {
    /// How much each of the words counts: the rarer, the more, and never nothing.
    pub fn weights(&self) -> Vec<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a weight needs no more")]
        let weight = |with: &u64| {
            let (with, all) = (*with as f64, self.all as f64);
            ((all - with + 0.5) / (with + 0.5)).ln().max(0.1)
        };
        self.with.iter().map(weight).collect()
    }
}

/// What of a record can be found by words: its own text, and blobs whose text belongs to it. Records that only
/// repeat what another holds, or that no reader would look for, have none.
pub(crate) struct Findable {
    pub(crate) text: String,
    pub(crate) blobs: Vec<BlobRef>,
    /// Whether a person or a model said it to the other. Only that says what its neighbours are about: what a tool printed is
    /// about anything.
    pub(crate) is_speech: bool,
}

impl Findable {
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let family = record.stream.as_str().split('/').next().unwrap_or_default();
        let mut is_speech = false;
        let (text, blob) = match family {
            "session" => {
                let fact = SessionRecord::decode(record).ok()?;
                is_speech = self::is_speech(&fact);
                session_text(fact)?
            }
            "extract" => match ExtractRecord::decode(record).ok()? {
                ExtractRecord::Extracted(extracted) => {
                    (lines(extracted.items.into_iter().map(|item| item.text)), None)
                }
                ExtractRecord::Unknown { .. } => return None,
            },
            "memory" => match MemoryRecord::decode(record).ok()? {
                MemoryRecord::PagesChanged(changed) => {
                    (lines(changed.pages.into_iter().filter_map(|page| page.text)), None)
                }
                MemoryRecord::Unknown { .. } => return None,
            },
            _ => return None,
        };
        let blobs: Vec<BlobRef> = blob.into_iter().filter(BlobRef::is_text).collect();
        (!text.is_empty() || !blobs.is_empty()).then_some(Self { text, blobs, is_speech })
    }

    /// The words by which it is found where what it is about is asked for.
    pub(crate) fn gist(&self) -> String {
        beginning(&self.text, LONGEST_GIST)
    }

    /// The words by which its neighbours are found too.
    pub(crate) fn for_neighbours(&self) -> String {
        beginning(&self.text, LONGEST_NEIGHBOUR)
    }
}

fn beginning(text: &str, characters: usize) -> String {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(end, _)| end);
    stems(&text[..end]).join(" ")
}

fn is_speech(fact: &SessionRecord) -> bool {
    match fact {
        SessionRecord::InputTaken(_) | SessionRecord::Question(_) | SessionRecord::Answered(_) => true,
        SessionRecord::Block(block) => matches!(block.item, Item::Text { .. }),
        _ => false,
    }
}

fn session_text(record: SessionRecord) -> Option<(String, Option<BlobRef>)> {
    Some(match record {
        SessionRecord::InputTaken(input) => (input.text, None),
        SessionRecord::Block(block) => match block.item {
            Item::Text { text, .. } | Item::Reasoning { text, .. } | Item::Note { text } => (text, None),
            Item::ToolCall { name, .. } if repeats(&name) => return None,
            Item::ToolCall { name, arguments, .. } => (format!("{name} {arguments}"), None),
            Item::ToolResult { content, .. } => (content, None),
            Item::Image(_) => return None,
        },
        SessionRecord::ToolFinished(finished) if repeats(&finished.name) => return None,
        SessionRecord::ToolFinished(finished) => (finished.content, finished.whole),
        SessionRecord::TaskStarted(task) => (format!("{}\n{}", task.description, task.command), None),
        SessionRecord::TaskEnded(task) => (String::new(), task.output),
        SessionRecord::Notification(notification) => (notification.text, None),
        SessionRecord::Note(note) => (note.text, None),
        SessionRecord::Question(question) => (question.text, None),
        SessionRecord::Answered(answered) => (answered.answer, None),
        SessionRecord::SystemMessage(SystemMessage { content }) => {
            (lines(content.into_iter().map(|part| part.text)), None)
        }
        SessionRecord::Warning(warning) => (warning.text, None),
        SessionRecord::SessionCreated(_)
        | SessionRecord::EpochStarted(_)
        | SessionRecord::OrderTaken(_)
        | SessionRecord::TurnStarted(_)
        | SessionRecord::StepStarted(_)
        | SessionRecord::AttemptStarted(_)
        | SessionRecord::Checkpoint(_)
        | SessionRecord::AttemptEnded(_)
        | SessionRecord::Usage(_)
        | SessionRecord::ToolStarted(_)
        | SessionRecord::Imported(_)
        | SessionRecord::CompactStart(_)
        | SessionRecord::CompactDone(_)
        | SessionRecord::CompactFailed(_)
        | SessionRecord::Stubbed(_)
        | SessionRecord::ModelChanged(_)
        | SessionRecord::TurnEnded(_)
        | SessionRecord::Unknown { .. } => return None,
    })
}

fn repeats(tool: &str) -> bool {
    TOOLS_THAT_REPEAT.contains(&tool)
}

fn lines(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("\n")
}

/// Sets the characters of scripts that are written without spaces apart, so that each counts as a word. A search
/// for several of them in a row is a search for that row, which finds words of any length wherever they stand.
pub(crate) fn set_apart(text: &str) -> String {
    let mut apart = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unspaced(character) {
            apart.extend([' ', character, ' ']);
        } else {
            apart.push(character);
        }
    }
    apart
}

/// Whether a character belongs to a script without spaces between words, or, as in Korean, with endings that
/// cling to them.
pub fn is_unspaced(character: char) -> bool {
    matches!(character,
        '\u{0e00}'..='\u{0eff}'       // Thai, Lao
        | '\u{1000}'..='\u{109f}'     // Myanmar
        | '\u{1780}'..='\u{17ff}'     // Khmer
        | '\u{3040}'..='\u{312f}'     // Hiragana, Katakana, Bopomofo
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'     // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{323af}'
        | '\u{ac00}'..='\u{d7a3}'     // Hangul
        | '\u{ff66}'..='\u{ff9f}')
}

/// The words of a search, each ready to be looked for as a row of what [`set_apart`] makes of it.
pub(crate) fn terms(words: &str) -> impl Iterator<Item = String> {
    let findable = |term: &&str| term.chars().any(char::is_alphanumeric);
    let between = |character: char| character.is_whitespace() || character.is_control();
    words.split(between).filter(findable).map(set_apart)
}

/// The part of a text that has the most of the words, in one line.
pub(crate) fn excerpt(text: &str, words: &str) -> String {
    const AROUND: usize = 60;
    let lower = text.to_lowercase();
    let found = densest(&lower, words, 2 * AROUND).unwrap_or(0);
    // Lower case can have another length; the place is only a hint, so count characters, not bytes.
    let place = lower[..found].chars().count();
    let part: String = text.chars().skip(place.saturating_sub(AROUND)).take(3 * AROUND).collect();
    part.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text has one of the words somewhere, be it inside another word.
pub(crate) fn has_a_word(text: &str, words: &str) -> bool {
    let lower = text.to_lowercase();
    bare(words).iter().any(|word| lower.contains(word))
}

/// The words in lower case, without what stands around them.
fn bare(words: &str) -> BTreeSet<String> {
    let bare = |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    words.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect()
}

/// Where the most different words stand within so many bytes of each other: the first of them, in the first such place.
fn densest(lower: &str, words: &str, within: usize) -> Option<usize> {
    /// More places of one word than this say nothing more about where to look.
    const MOST_PLACES: usize = 1_000;
    let words = bare(words);
    let places =
        |(number, word)| lower.match_indices(word).take(MOST_PLACES).map(move |(place, _)| (place, number));
    let mut places: Vec<(usize, usize)> =
        words.iter().map(String::as_str).enumerate().flat_map(places).collect();
    places.sort_unstable();
    let mut best: Option<(usize, usize)> = None;
    for (index, (place, _)) in places.iter().enumerate() {
        let near = places[index..].iter().take_while(|(other, _)| other - place <= within);
        let different = near.map(|(_, number)| number).collect::<BTreeSet<_>>().len();
        if best.is_none_or(|(most, _)| different > most) {
            best = Some((different, *place));
        }
    }
    best.map(|(_, place)| place)
}

#[cfg(test)]
#[path = "search_tests.rs"]
mod tests;
