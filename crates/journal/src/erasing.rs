//! Erasing what a record of a session says, wherever the session says it.
//!
//! Some records repeat others word for word: the inbox holds what was taken from it, the end of a turn its last answer, a checkpoint a
//! part of what was being said, and an epoch what it keeps of the context before. Who wants something gone wants all of them gone. What
//! an epoch begins with may repeat a part only: a request without its middle, a sentence that is a directive. Such parts are found too;
//! told in other words, a summary may still have it.

use std::collections::HashSet;

use longhaul_protocol::{
    Block, Checkpoint, InboxRecord, Item, OrderKind, Record, Seq, SessionId, SessionRecord, StreamName,
};
use serde_json::Value;

use crate::search::Findable;
use crate::{Error, Journal, Page, Result};

/// What is shorter is repeated by chance, and nobody's secret.
const SHORTEST: usize = 8;
/// The kinds of record that may repeat all of what others say.
const REPEATING: [&str; 5] = ["epoch_started", "system_message", "turn_ended", "notification", "note"];
/// The kinds that may repeat a part of it. If one of them goes without need, it is made up for.
const QUOTING: [&str; 2] = ["epoch_started", "system_message"];
/// The kinds of which only what a person said in them is compared: their other words are the same in many records.
const OF_PERSONS: [&str; 3] = ["order_taken", "compact_start", "answered"];

/// Of what is said each block of this length is known, with so many bytes from one to the next. So whatever has 31 bytes in a row in
/// common with it has a whole block.
const BLOCK: usize = 24;
const STRIDE: usize = 8;
/// A line that is a part of what is said, and has several words, is a quote even if it is shorter than that.
const SHORTEST_QUOTE: usize = 12;

/// Erases a record of a session for good, and whatever repeats it word for word: the same words in the inbox, and later records. Returns
/// every place that was erased. An epoch that is erased is made up for when the session is loaded: then its whole past is read.
pub async fn erase_record(
    journal: &dyn Journal,
    session: SessionId,
    seq: Seq,
    reason: &str,
) -> Result<Vec<(StreamName, Seq)>> {
    let stream = StreamName::session(session);
    let record = journal.read(&stream, seq.max(1), Page { records: 1, bytes: 0 }).await?.pop();
    let mut places = vec![(stream.clone(), seq)];
    if let Some(record) = &record {
        places.extend(place_in_inbox(journal, session, record).await?);
        for copy in copies(journal, &stream, record).await? {
            places.push((stream.clone(), copy.seq));
            places.extend(place_in_inbox(journal, session, &copy).await?);
        }
    }
    journal.erase(&places, reason).await?;
    Ok(places)
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
    let stands_there = match journal.read(&inbox, through.max(1), Page { records: 1, bytes: 0 }).await {
        Err(Error::Damaged { .. }) => return Ok(Some((inbox, through))),
        page => page?.pop(),
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
    let said: Vec<Said> = words(original).iter().filter_map(|text| Said::new(text)).collect();
    let mut copies = Vec::new();
    if said.is_empty() {
        return Ok(copies);
    }
    let mut next = 1;
    loop {
        let page = match journal.read(stream, next, Page::default()).await {
            Err(Error::Damaged { seq, .. }) => {
                next = next.max(seq) + 1;
                continue;
            }
            page => page?,
        };
        let Some(last) = page.last() else { return Ok(copies) };
        next = last.seq + 1;
        let repeats =
            |record: &Record| record.seq != original.seq && said.iter().any(|said| said.is_in(record));
        copies.extend(page.into_iter().filter(repeats));
    }
}

/// What a record says, in the texts that other records repeat.
fn words(record: &Record) -> Vec<String> {
    match SessionRecord::decode(record) {
        Ok(SessionRecord::OrderTaken(taken)) => match taken.order.kind {
            OrderKind::Compact { focus } => focus.into_iter().collect(),
            OrderKind::Answer { answer, .. } => vec![answer],
            _ => vec![],
        },
        Ok(SessionRecord::CompactStart(start)) => start.focus.into_iter().collect(),
        Ok(SessionRecord::SystemMessage(message)) => {
            message.content.into_iter().map(|part| part.text).collect()
        }
        // Its name stands apart from them wherever they are repeated.
        Ok(SessionRecord::Block(Block { item: Item::ToolCall { arguments, .. }, .. })) => vec![arguments],
        _ => Findable::of(record).map(|findable| findable.text).into_iter().collect(),
    }
}

/// A text, in the forms in which it is looked for.
struct Said {
    text: String,
    /// As it stands within a JSON text.
    quoted: String,
    plain: String,
    blocks: HashSet<[u8; BLOCK]>,
}

impl Said {
    fn new(text: &str) -> Option<Self> {
        let text = text.trim().to_owned();
        if text.len() < SHORTEST {
            return None;
        }
        let quoted = Value::from(text.as_str()).to_string();
        let plain = plain(&text);
        let blocks = plain.as_bytes().windows(BLOCK).step_by(STRIDE);
        let blocks = blocks.filter_map(|block| block.try_into().ok()).collect();
        Some(Self { text, quoted: quoted[1..quoted.len() - 1].to_owned(), plain, blocks })
    }

    fn is_in(&self, record: &Record) -> bool {
        let kind = record.kind.as_str();
        if kind == "checkpoint" {
            let part = record.decode::<Checkpoint>().map(|checkpoint| checkpoint.text).unwrap_or_default();
            return part.trim().len() >= SHORTEST && self.text.contains(part.trim());
        }
        if OF_PERSONS.contains(&kind) {
            return words(record).iter().any(|text| text.contains(&self.text));
        }
        REPEATING.contains(&kind) && record.text().is_some_and(|body| body.contains(&self.quoted))
            || QUOTING.contains(&kind) && record.decode::<Value>().is_ok_and(|body| self.is_quoted_in(&body))
    }

    /// Whether any text within has a part in common with this one.
    fn is_quoted_in(&self, body: &Value) -> bool {
        match body {
            Value::String(text) => self.is_quoted_by(text),
            Value::Array(values) => values.iter().any(|value| self.is_quoted_in(value)),
            Value::Object(fields) => fields.values().any(|value| self.is_quoted_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    fn is_quoted_by(&self, text: &str) -> bool {
        let has_block = |text: &str| {
            let blocks = text.as_bytes().windows(BLOCK);
            blocks.filter_map(|block| <[u8; BLOCK]>::try_from(block).ok()).any(|it| self.blocks.contains(&it))
        };
        let is_quote = |line: &str| {
            let line = plain(line);
            let words = line.trim_matches(|c: char| !c.is_alphanumeric());
            words.len() >= SHORTEST_QUOTE && words.contains(' ') && self.plain.contains(words)
        };
        has_block(&plain(text)) || text.lines().any(is_quote)
    }
}

/// A text in which what summaries change of what they quote is the same: spaces, line breaks and case.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
