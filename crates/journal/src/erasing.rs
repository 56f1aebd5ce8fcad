//! Erasing what a record of a session says, wherever the session says it.
//!
//! Some records repeat others word for word: the inbox holds what was taken from it, the end of a turn its last answer, a checkpoint a
//! part of what was being said, and an epoch what it keeps of the context before. Who wants something gone wants all of them gone. Three
//! more ways of repeating are found: with the middle left out, as the runtime does it; the first words of the first request, where it is
//! pinned; and a line that a summary gives as somebody's own. Told in other words, a summary may still have it; an extract names
//! the records that it tells of, and goes with them.
//!
//! Nothing else may go, as it can't be undone. So only words of others are compared, and never what the runtime puts around them, nor
//! its lists of files and ids; and a summary that is erased takes only those with it that say the same, line by line.

mod told;

use std::collections::BTreeSet;

use longhaul_protocol::{
    Block, Checkpoint, ExtractRecord, InboxRecord, Item, OrderKind, Record, Seq, SessionId, SessionRecord,
    StreamName,
};
use serde_json::Value;

use crate::{Error, Journal, Result, record_at, records};
use told::{Told, plain};

/// What is shorter is repeated by chance, and nobody's secret.
const SHORTEST: usize = 8;
/// A line of a summary, a todo or a command that is shorter need not come from there.
const SHORTEST_QUOTE: usize = 16;
/// So much must be left of the beginning of a text without its middle.
const SHORTEST_HEAD: usize = 24;
/// What tools print is alike more often. What is shorter is looked for in results only.
const SHORTEST_OUTPUT: usize = 32;
/// What may stand where something was left out.
const LEFT_OUT: [&str; 2] = ["…", "[shortened]"];

/// Erases a record of a session for good, and whatever repeats it word for word: the same words in the inbox, and later records. Returns
/// every place that was erased. An epoch that is erased is made up for when the session is loaded: then its whole past is read.
pub async fn erase_record(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
    reason: &str,
) -> Result<Vec<(StreamName, Seq)>> {
    let stream = StreamName::session(session);
    let record = record_at(journal, &stream, seq.max(1)).await?;
    if record.as_ref().is_some_and(|record| record.seq == seq && record.kind == "imported") {
        return Err(Error::MarksImport { stream, seq });
    }
    let mut places = vec![(stream.clone(), seq)];
    if let Some(record) = &record {
        places.extend(place_in_inbox(journal, session, record).await?);
        for copy in copies(journal, &stream, record).await? {
            places.push((stream.clone(), copy.seq));
            places.extend(place_in_inbox(journal, session, &copy).await?);
        }
        let gone: BTreeSet<Seq> =
            places.iter().filter(|(place, _)| *place == stream).map(|(_, seq)| *seq).collect();
        places.extend(extracts_of(journal, session, &gone).await?);
    }
    journal.erase(&places, reason).await?;
    Ok(places)
}

/// The extracts that tell of these records, in whatever words. What else they tell goes with that: the records that it came from are
/// still there.
async fn extracts_of(
    journal: &dyn Journal,
    session: SessionId,
    gone: &BTreeSet<Seq>,
) -> Result<Vec<(StreamName, Seq)>> {
    let stream = StreamName::extract(session);
    let tells = |record: &Record| match ExtractRecord::decode(record) {
        Ok(ExtractRecord::Extracted(extracted)) => {
            extracted.items.iter().flat_map(|item| &item.sources).any(|source| gone.contains(source))
        }
        _ => false,
    };
    let (mut found, mut extracts) = (Vec::new(), records(journal, &stream, 1));
    while let Some(record) = extracts.next_undamaged().await? {
        if tells(&record) {
            found.push((stream.clone(), record.seq));
        }
    }
    Ok(found)
}

/// Where the inbox holds what this record took from it. The inbox of a session that was brought here from elsewhere has others there.
async fn place_in_inbox(
    journal: &dyn Journal,
    session: SessionId,
    record: &Record,
) -> Result<Option<(StreamName, Seq)>> {
    let taken = SessionRecord::decode(record);
    let through = match &taken {
        Ok(SessionRecord::InputTaken(taken)) => taken.inbox_through,
        Ok(SessionRecord::OrderTaken(taken)) => taken.inbox_through,
        _ => return Ok(None),
    };
    let inbox = StreamName::inbox(session);
    let stands_there = match record_at(journal, &inbox, through.max(1)).await {
        Err(Error::Damaged { .. }) => return Ok(Some((inbox, through))),
        record => record?,
    };
    let is_it = |there: &Record| match (InboxRecord::decode(there), &taken) {
        (Ok(InboxRecord::Input(input)), Ok(SessionRecord::InputTaken(taken))) => input.id == taken.id,
        (Ok(InboxRecord::Order(order)), Ok(SessionRecord::OrderTaken(taken))) => order.id == taken.order.id,
        // It was erased before; whatever is left of its bytes goes with this.
        (Err(_), _) => true,
        _ => false,
    };
    let there = stands_there.filter(|there| there.seq == through && is_it(there));
    Ok(there.map(|there| (inbox, there.seq)))
}

/// The records that repeat what this one says. One that can't be read is passed over.
async fn copies(journal: &dyn Journal, stream: &StreamName, original: &Record) -> Result<Vec<Record>> {
    let said = said_by(original);
    let mut copies = Vec::new();
    if said.is_empty() {
        return Ok(copies);
    }
    let mut cursor = records(journal, stream, 1);
    while let Some(record) = cursor.next_undamaged().await? {
        if record.seq != original.seq && repeats(&record, &said) {
            copies.push(record);
        }
    }
    Ok(copies)
}

/// What a record says, in the texts that other records repeat.
fn said_by(record: &Record) -> Vec<Said> {
    let Ok(fact) = SessionRecord::decode(record) else { return vec![] };
    let said = match fact {
        SessionRecord::InputTaken(input) => vec![Said::words(&input.text)],
        SessionRecord::OrderTaken(_) | SessionRecord::CompactStart(_) | SessionRecord::Answered(_) => {
            of_person(record).iter().map(|text| Said::words(text)).collect()
        }
        SessionRecord::Question(question) => vec![Said::words(&question.text)],
        SessionRecord::Block(Block { item, .. }) => match item {
            Item::Text { text, .. } | Item::Reasoning { text, .. } => vec![Said::words(&text)],
            Item::ToolCall { arguments, .. } => {
                let fields = serde_json::from_str::<Value>(&arguments).unwrap_or_default();
                let named = told::leaves(&fields).into_iter().map(Said::named);
                named.chain([Said::composed(&arguments)]).collect()
            }
            Item::ToolResult { content, .. } => vec![Said::result(&content)],
            Item::Note { text } => vec![Said::composed(&text)],
            Item::Image(_) => vec![],
        },
        SessionRecord::ToolFinished(finished) => vec![Said::result(&finished.content)],
        SessionRecord::TaskStarted(task) => vec![Said::named(&task.command), Said::named(&task.description)],
        SessionRecord::TaskEnded(ended) => vec![Said::output(&ended.tail)],
        SessionRecord::Notification(notification) => vec![Said::composed(&notification.text)],
        SessionRecord::Note(note) => vec![Said::composed(&note.text)],
        SessionRecord::Warning(warning) => vec![Said::composed(&warning.text)],
        SessionRecord::SystemMessage(message) => vec![Some(Said::Summary(told::lines_in(&message)))],
        SessionRecord::EpochStarted(epoch) => {
            epoch.summary.iter().map(|summary| Some(Said::Summary(told::lines_of(summary)))).collect()
        }
        _ => vec![],
    };
    said.into_iter().flatten().collect()
}

/// What a person said in a record whose other words are the same in many.
fn of_person(record: &Record) -> Option<String> {
    match SessionRecord::decode(record).ok()? {
        SessionRecord::OrderTaken(taken) => match taken.order.kind {
            OrderKind::Compact { focus } => focus,
            OrderKind::Answer { answer, .. } => Some(answer),
            _ => None,
        },
        SessionRecord::CompactStart(start) => start.focus,
        SessionRecord::Answered(answered) => Some(answered.answer),
        _ => None,
    }
}

/// Whether a record repeats any of this.
fn repeats(record: &Record, said: &[Said]) -> bool {
    let texts = || said.iter().filter_map(Said::text);
    match record.kind.as_str() {
        "checkpoint" => {
            let part = record.decode::<Checkpoint>().map(|checkpoint| plain(&checkpoint.text));
            let part = part.unwrap_or_default();
            part.len() >= SHORTEST && texts().any(|text| text.plain.contains(&part))
        }
        "order_taken" | "compact_start" | "answered" => {
            of_person(record).is_some_and(|there| texts().any(|text| text.is_in(&plain(&there))))
        }
        "epoch_started" | "system_message" | "turn_ended" | "notification" | "note" => {
            Told::by(record).is_some_and(|told| said.iter().any(|said| said.is_in(&told)))
        }
        _ => false,
    }
}

/// Something that was said, by how it may be repeated.
#[derive(Debug)]
enum Said {
    /// By a person or a model: whole, without its middle, or a line of it.
    Words(Text),
    /// With the words of the runtime around it: whole.
    Composed(Text),
    /// By a tool: like words, if it is not short.
    Output(Text),
    /// A value within a call: alone, as a todo or a command.
    Named(String),
    /// A summary, by its lines.
    Summary(BTreeSet<String>),
}

impl Said {
    fn words(text: &str) -> Option<Self> {
        Text::new(text).map(Self::Words)
    }

    fn composed(text: &str) -> Option<Self> {
        Text::new(text).map(Self::Composed)
    }

    fn output(text: &str) -> Option<Self> {
        Text::new(text).map(Self::Output)
    }

    fn named(text: &str) -> Option<Self> {
        let text = plain(text);
        (text.len() >= SHORTEST_QUOTE).then_some(Self::Named(text))
    }

    /// Of a result that is an object, only its output is the tool's own.
    fn result(content: &str) -> Option<Self> {
        let fields = told::fields(content);
        match fields.as_ref().and_then(|fields| fields.get("output")?.as_str()) {
            Some(output) => Self::output(output),
            None if fields.is_some() => Self::composed(content),
            None => Self::output(content),
        }
    }

    fn text(&self) -> Option<&Text> {
        match self {
            Self::Words(text) | Self::Composed(text) => Some(text),
            Self::Output(text) => (text.plain.len() >= SHORTEST_OUTPUT).then_some(text),
            Self::Named(_) | Self::Summary(_) => None,
        }
    }

    fn is_in(&self, told: &Told) -> bool {
        match self {
            Self::Words(text) => text.is_whole_in(told) || text.is_partly_in(told),
            Self::Composed(text) => text.is_whole_in(told),
            Self::Output(text) if text.plain.len() < SHORTEST_OUTPUT => {
                [&told.outputs, &told.words].into_iter().flatten().any(|there| *there == text.plain)
            }
            Self::Output(text) => text.is_whole_in(told) || text.is_partly_in(told),
            Self::Named(text) => told.named.contains(text),
            // A message may show less than the epoch has.
            Self::Summary(lines) => {
                let (one, other) = (lines, &told.summary);
                !one.is_empty() && !other.is_empty() && (one.is_subset(other) || other.is_subset(one))
            }
        }
    }
}

/// A text, in the forms in which it is looked for.
#[derive(Debug)]
struct Text {
    plain: String,
    /// As it stands within a JSON text.
    quoted: String,
}

impl Text {
    fn new(text: &str) -> Option<Self> {
        let quoted = Value::from(text.trim()).to_string();
        let quoted = plain(&quoted[1..quoted.len() - 1]);
        let plain = plain(text);
        (plain.len() >= SHORTEST).then_some(Self { plain, quoted })
    }

    fn is_in(&self, there: &str) -> bool {
        there.contains(&self.plain) || there.contains(&self.quoted)
    }

    fn is_whole_in(&self, told: &Told) -> bool {
        let mut of_others = [&told.words, &told.outputs, &told.named].into_iter().flatten();
        // Few words of the runtime are nobody else's.
        let is_long = self.plain.len() >= SHORTEST_QUOTE;
        of_others.any(|there| self.is_in(there))
            || told.composed.iter().any(|there| is_long && self.is_in(there) || *there == self.plain)
    }

    fn is_partly_in(&self, told: &Told) -> bool {
        let mut of_others = [&told.words, &told.outputs].into_iter().flatten();
        let is_beginning = |pin: &String| pin.len() >= SHORTEST_HEAD && self.plain.starts_with(pin.as_str());
        let is_quote = |line: &String| line.len() >= SHORTEST_QUOTE && self.plain.contains(line.as_str());
        of_others.any(|there| self.lacks_middle_in(there))
            || told.pins.iter().any(is_beginning)
            || told.quotes.iter().any(is_quote)
    }

    /// Whether that is this one, up to where something was left out.
    fn lacks_middle_in(&self, there: &str) -> bool {
        let gaps = LEFT_OUT.iter().flat_map(|sign| there.match_indices(sign));
        let mut heads = gaps.map(|(gap, _)| there[..gap].trim_end_matches(['[', ' ']));
        heads.any(|head| head.len() >= SHORTEST_HEAD && self.plain.starts_with(head))
    }
}
