//! The part of full-text search that all engines share: the query and its hits, the searchable text of a record, and
//! how text is split into words.

use std::collections::{BTreeSet, HashSet};

use longhaul_protocol::{
    BlobRef, ExtractRecord, Item, MemoryRecord, Record, Seq, SessionId, SessionRecord, StreamName,
    SystemMessage, is_recall_tool, is_unspaced,
};

use crate::{Journal, Result, stems};

/// Characters of an utterance that count for the topic of its neighbours.
const MAX_NEIGHBOUR_CHARS: usize = 300;
/// Characters of a record that count for its own topic.
const MAX_GIST_CHARS: usize = 16_000;
/// Records that a search for sessions looks at at a time, the best hits first.
const MAX_SESSION_HITS: usize = 1_000;

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// The words to find; case and accents don't matter.
    pub words: String,
    /// How many of the words a record must have.
    pub matching: MatchMode,
    /// The streams to search; empty for all.
    pub streams: Vec<StreamName>,
    /// The most hits.
    pub limit: usize,
}

/// How many of the words of a search a record must have to be found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchMode {
    /// All of them.
    #[default]
    All,
    /// At least one. More words, and rarer ones, rank higher.
    Any,
    /// At least one word in any of its forms, in the record itself or, with less weight, in the utterances around it.
    /// Records with more of the words rank higher. Only the beginning of a very long text counts.
    Around,
}

/// A record that a search found.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SearchHit {
    /// The stream.
    pub stream: StreamName,
    /// The place.
    pub seq: Seq,
    /// The part of the text that contains the most of the words.
    pub excerpt: String,
    /// The rank: higher is better. Only comparable within one search.
    pub score: f64,
}

/// The sessions in which all of these words were said in one record.
pub async fn sessions_with_words(journal: &dyn Journal, words: &str) -> Result<HashSet<SessionId>> {
    find_sessions(journal, words, MAX_SESSION_HITS).await
}

/// Looks at `limit` hits at a time. A session that has more of them than that must not hide the others, so the next look leaves out
/// the sessions that are found.
async fn find_sessions(journal: &dyn Journal, words: &str, limit: usize) -> Result<HashSet<SessionId>> {
    let (mut found, mut streams) = (HashSet::new(), vec![]);
    loop {
        let (words, matching) = (words.to_owned(), MatchMode::All);
        let hits = journal.search(&SearchQuery { words, matching, streams, limit }).await?;
        found.extend(hits.iter().filter_map(|hit| hit.stream.session_id()));
        if hits.len() < limit {
            return Ok(found);
        }
        let is_left = |stream: &StreamName| stream.session_id().is_some_and(|id| !found.contains(&id));
        streams = journal.streams().await?.into_iter().filter(is_left).collect();
        if streams.is_empty() {
            return Ok(found);
        }
    }
}

/// How many records contain each of some words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WordFrequencies {
    /// Records with each of the words.
    pub with: Vec<u64>,
    /// All indexed records.
    pub all: u64,
}

impl WordFrequencies {
    /// The weight of each word: its inverse document frequency, at least 0.1.
    pub fn weights(&self) -> Vec<f64> {
        #[allow(clippy::cast_precision_loss, reason = "a weight needs no more")]
        let weight = |with: &u64| {
            let (with, all) = (*with as f64, self.all as f64);
            ((all - with + 0.5) / (with + 0.5)).ln().max(0.1)
        };
        self.with.iter().map(weight).collect()
    }
}

/// The searchable text of a record, and the blobs whose text belongs to it. Records that only repeat others have none.
pub(crate) struct SearchableText {
    pub(crate) text: String,
    pub(crate) blobs: Vec<BlobRef>,
    /// Whether it is an utterance: a message between a person and a model. Only utterances count for the topic of
    /// their neighbours, because the output of a tool can be about anything.
    pub(crate) is_speech: bool,
}

impl SearchableText {
    pub(crate) fn from_record(record: &Record) -> Option<Self> {
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
                ExtractRecord::ExtractionFailed(_) | ExtractRecord::Unknown { .. } => return None,
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

    /// The stems that describe the record's own topic.
    pub(crate) fn gist(&self) -> String {
        stems_of_beginning(&self.text, MAX_GIST_CHARS)
    }

    /// The stems that count for the topic of its neighbours.
    pub(crate) fn for_neighbours(&self) -> String {
        stems_of_beginning(&self.text, MAX_NEIGHBOUR_CHARS)
    }
}

fn stems_of_beginning(text: &str, characters: usize) -> String {
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
            // A search must not rank its own earlier calls before the records that they show.
            Item::ToolCall { name, .. } if is_recall_tool(&name) => return None,
            Item::ToolCall { name, arguments, .. } => (format!("{name} {arguments}"), None),
            Item::ToolResult { content, .. } => (content, None),
            Item::Image(_) => return None,
        },
        SessionRecord::ToolFinished(finished) if is_recall_tool(&finished.name) => return None,
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
        | SessionRecord::ToolTask(_)
        | SessionRecord::AttemptEnded(_)
        | SessionRecord::Usage(_)
        | SessionRecord::ToolStarted(_)
        | SessionRecord::Imported(_)
        | SessionRecord::ModeChanged(_)
        | SessionRecord::CompactStart(_)
        | SessionRecord::CompactDone(_)
        | SessionRecord::CompactFailed(_)
        | SessionRecord::Stubbed(_)
        | SessionRecord::ModelChanged(_)
        | SessionRecord::TurnEnded(_)
        | SessionRecord::Unknown { .. } => return None,
    })
}

fn lines(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join("\n")
}

/// Puts spaces around the characters of scripts without spaces, so that each counts as a word. Then a search for
/// several characters in a row is a phrase search, which finds words of any length.
pub(crate) fn space_out(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for character in text.chars() {
        if is_unspaced(character) {
            spaced.extend([' ', character, ' ']);
        } else {
            spaced.push(character);
        }
    }
    spaced
}

/// The terms of a search. Each is a word as a phrase, in the form of [`space_out`].
pub(crate) fn terms(words: &str) -> impl Iterator<Item = String> {
    let searchable = |term: &&str| term.chars().any(char::is_alphanumeric);
    let between = |character: char| character.is_whitespace() || character.is_control();
    words.split(between).filter(searchable).map(space_out)
}

/// The part of a text that contains the most of the words, on one line.
pub(crate) fn excerpt(text: &str, words: &str) -> String {
    const AROUND: usize = 60;
    let lower = text.to_lowercase();
    let found = densest(&lower, words, 2 * AROUND).unwrap_or(0);
    // Lower case can have another length, so count characters, not bytes. The position is approximate.
    let place = lower[..found].chars().count();
    let part: String = text.chars().skip(place.saturating_sub(AROUND)).take(3 * AROUND).collect();
    part.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text contains one of the words, even inside another word.
pub(crate) fn contains_any_word(text: &str, words: &str) -> bool {
    let lower = text.to_lowercase();
    trimmed_words(words).iter().any(|word| lower.contains(word))
}

/// The words in lower case, without punctuation around them.
fn trimmed_words(words: &str) -> BTreeSet<String> {
    let trim = |word: &str| word.trim_matches(|letter: char| !letter.is_alphanumeric()).to_lowercase();
    words.split_whitespace().map(trim).filter(|word| !word.is_empty()).collect()
}

/// The byte offset of the first place where the most different words occur within `within` bytes.
fn densest(lower: &str, words: &str, within: usize) -> Option<usize> {
    /// The most occurrences of one word to consider.
    const MAX_PLACES: usize = 1_000;
    let words = trimmed_words(words);
    let places =
        |(number, word)| lower.match_indices(word).take(MAX_PLACES).map(move |(place, _)| (place, number));
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
