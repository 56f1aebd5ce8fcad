//! The part of full-text search that all engines share: the query and its answer, the searchable text of a record, and
//! the excerpt that a hit shows.

use std::collections::{BTreeSet, HashSet};
use std::time::SystemTime;

use longhaul_protocol::{
    AnsweredBy, At, BlobRef, ExtractRecord, Item, MemoryRecord, OrderKind, Record, Role, Seq, SessionId,
    SessionRecord, StreamName, SystemMessage, is_recall_tool,
};

use crate::question::dates::{Tense, TimeMention, day_of};
use crate::question::only_asks;
use crate::scoring::RecordFlags;
use crate::{Journal, Result};

/// A search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words or a question. Words are found in all their forms, whatever their case and accents.
    pub words: String,
    /// Where to search.
    pub scope: SearchScope,
    /// The most hits.
    pub limit: usize,
    /// When it is asked. `yesterday` in a question is the day before.
    pub asked_at: At,
}

impl SearchQuery {
    /// A search of all streams that is asked now.
    pub fn new(words: impl Into<String>, limit: usize) -> Self {
        Self { words: words.into(), scope: SearchScope::All, limit, asked_at: SystemTime::now().into() }
    }

    /// The same in these streams alone.
    #[must_use]
    pub fn within(self, streams: Vec<StreamName>) -> Self {
        Self { scope: SearchScope::Streams(streams), ..self }
    }
}

/// The streams of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchScope {
    /// Every stream of the journal.
    All,
    /// These and no others.
    Streams(Vec<StreamName>),
}

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchAnswer {
    /// The best first.
    pub hits: Vec<SearchHit>,
    /// The words that were looked for.
    pub words: Vec<WeightedWord>,
    /// Records that are not searched yet, because the index is being built anew. Usually 0.
    pub unindexed: u64,
}

/// A word of a search, without its ending, as [`stems`](crate::stems) gives it.
#[derive(Debug, Clone, PartialEq)]
pub struct WeightedWord {
    /// The stem.
    pub stem: String,
    /// How much it counts: more if fewer of the searched records have it.
    pub weight: f64,
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
    /// The user's input that the record followed.
    pub request: Option<Seq>,
}

/// The streams that have a record with all of the words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundStreams {
    pub streams: Vec<StreamName>,
    /// Records that are not searched yet, because the index is being built anew. Usually 0.
    pub unindexed: u64,
}

/// The sessions in which all of the words were said in one record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundSessions {
    pub sessions: HashSet<SessionId>,
    /// Records that are not searched yet, because the index is being built anew. Usually 0.
    pub unindexed: u64,
}

/// The sessions in which all of these words were said in one record.
pub async fn sessions_with_words(journal: &dyn Journal, words: &str) -> Result<FoundSessions> {
    let FoundStreams { streams, unindexed } = journal.streams_with_words(words).await?;
    Ok(FoundSessions { sessions: streams.iter().filter_map(StreamName::session_id).collect(), unindexed })
}

/// The searchable text of a record, and the blobs whose text belongs to it. Records that only repeat others have none.
pub(crate) struct SearchableText {
    pub(crate) text: String,
    pub(crate) blobs: Vec<BlobRef>,
    /// Who said it, if it is an utterance: a message between a person or an agent and a model. Only utterances count for their
    /// neighbours, because the output of a tool can be about anything.
    speaker: RecordFlags,
    /// Whether it is an input of the user, which the records after it answer.
    pub(crate) is_request: bool,
    written: At,
}

impl SearchableText {
    pub(crate) fn from_record(record: &Record) -> Option<Self> {
        let family = record.stream.as_str().split('/').next().unwrap_or_default();
        let (mut speaker, mut is_request) = (RecordFlags::default(), false);
        let (text, blob) = match family {
            "session" => {
                let fact = SessionRecord::decode(record).ok()?;
                speaker = speaker_of(&fact);
                is_request = matches!(fact, SessionRecord::InputTaken(_));
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
        (!text.is_empty() || !blobs.is_empty()).then_some(Self {
            text,
            blobs,
            speaker,
            is_request,
            written: record.at,
        })
    }

    /// What the scoring has to know about it, and the days that it names.
    pub(crate) fn describe(&self) -> (RecordFlags, Option<(i32, i32)>) {
        let time = TimeMention::find(&self.text, day_of(self.written), Tense::Nearest);
        let flags = self
            .speaker
            .with_if(only_asks(&self.text), RecordFlags::ONLY_ASKS)
            .with_if(time.names_time, RecordFlags::NAMES_TIME);
        (flags, time.date.map(|date| (date.from, date.to)))
    }
}

fn speaker_of(fact: &SessionRecord) -> RecordFlags {
    match fact {
        SessionRecord::InputTaken(input) if !input.sender.is_persons_word() => RecordFlags::AGENT,
        SessionRecord::Answered(answered) if answered.by == Some(AnsweredBy::Agent) => RecordFlags::AGENT,
        SessionRecord::InputTaken(_) | SessionRecord::Answered(_) => RecordFlags::USER,
        SessionRecord::Question(_) => RecordFlags::ASSISTANT,
        SessionRecord::Block(block) => match block.item {
            Item::Text { role: Role::Assistant, .. } => RecordFlags::ASSISTANT,
            Item::Text { role: Role::User, .. } => RecordFlags::USER,
            _ => RecordFlags::default(),
        },
        _ => RecordFlags::default(),
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
        // The runtime withdrew the question, so nothing was said.
        SessionRecord::Answered(answered) if answered.by == Some(AnsweredBy::Runtime) => return None,
        SessionRecord::Answered(answered) => (answered.answer, None),
        SessionRecord::SystemMessage(SystemMessage { content }) => {
            (lines(content.into_iter().map(|part| part.text)), None)
        }
        SessionRecord::Warning(warning) => (warning.text, None),
        SessionRecord::OrderTaken(taken) => match taken.order.kind {
            // What a command of the user printed, shown to the model.
            OrderKind::AddContext { text } => (text, None),
            _ => return None,
        },
        SessionRecord::SessionCreated(_)
        | SessionRecord::EpochStarted(_)
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

/// The part of a text that contains the most of the words, on one line.
pub(crate) fn excerpt(text: &str, words: &BTreeSet<String>) -> String {
    const AROUND: usize = 60;
    let lower = text.to_lowercase();
    let found = densest(&lower, words, 2 * AROUND).unwrap_or(0);
    // Lower case can have another length, so count characters, not bytes. The position is approximate.
    let place = lower[..found].chars().count();
    let part: String = text.chars().skip(place.saturating_sub(AROUND)).take(3 * AROUND).collect();
    part.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a text contains one of the words, even inside another word.
pub(crate) fn contains_any_word(text: &str, words: &BTreeSet<String>) -> bool {
    let lower = text.to_lowercase();
    words.iter().any(|word| lower.contains(word))
}

/// The byte offset of the first place where the most different words occur within `within` bytes.
fn densest(lower: &str, words: &BTreeSet<String>, within: usize) -> Option<usize> {
    /// The most occurrences of one word to consider.
    const MAX_PLACES: usize = 1_000;
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
