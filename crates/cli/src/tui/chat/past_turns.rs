//! The end of a conversation that is opened again. It is read from the last record back, so that its cost does not depend on the length
//! of the session.

use longhaul_journal::{Journal, Page, records};
use longhaul_protocol::{Record, Seq, SessionId, StreamName, TurnEnded};
use longhaul_transcript::{
    Block, BlockContent, FoldStart, StoredTranscript, Update, format_count, sanitize, truncate,
};

/// Turns that are shown at most.
const MAX_TURNS: usize = 3;
/// Earlier turns are left out once the answers have this many bytes.
const MAX_ANSWER_BYTES: usize = 6_000;
/// Records that are read at most, and how many of them at a time.
const MAX_RECORDS: u64 = 1_024;
const RECORDS_AT_A_TIME: u64 = 64;
/// No more records are read once their bodies have this many bytes.
const MAX_BYTES: usize = 1 << 20;
/// Lines of the last answer in the short form, and characters of each.
const MAX_SHORT_LINES: usize = 8;
const MAX_SHORT_CHARS: usize = 400;

/// The last turns of a session that ended.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PastTurns {
    /// How many turns there were before them.
    pub(crate) turns_before: u64,
    /// The number of the last one.
    pub(crate) last_turn: u64,
    /// If the session ends with the end of its last turn, and no input waited then: the last record of the inbox that was taken.
    pub(crate) rests_through: Option<Seq>,
    /// Whether the first of them is so long that its beginning is left out.
    pub(crate) is_cut: bool,
    pub(crate) blocks: Vec<Block>,
}

impl PastTurns {
    /// Reads the last turns of a session. Empty if none has ended. Damaged records are left out: `verify` reports them.
    pub(super) async fn load(
        journal: &dyn Journal,
        id: SessionId,
        head: Seq,
    ) -> longhaul_journal::Result<Self> {
        let stream = StreamName::session(id);
        let (mut read, mut bytes, mut from) = (Vec::new(), 0, head + 1);
        while from > 1 && head + 1 - from < MAX_RECORDS && bytes < MAX_BYTES && ends(&read) <= MAX_TURNS {
            let through = from - 1;
            from = from.saturating_sub(RECORDS_AT_A_TIME).max(1);
            let page = Page { records: 64, bytes: usize::MAX };
            let mut cursor = records(journal, &stream, from).through(through).in_pages_of(page);
            let mut earlier = Vec::new();
            while let Some(record) = cursor.next_undamaged().await? {
                bytes += record.text().map_or(0, str::len);
                earlier.push(record);
            }
            earlier.append(&mut read);
            read = earlier;
        }
        Ok(Self::from_records(&read, from == 1))
    }

    /// The last turns among these records. `is_all` says that the session begins with them.
    fn from_records(read: &[Record], is_all: bool) -> Self {
        let is_end = |record: &Record| record.kind == "turn_ended";
        let Some(last) = read.iter().rposition(is_end) else { return Self::default() };
        // A turn begins after the end of the one before it: with its inputs.
        let turns = read[..=last].split_inclusive(is_end);
        let mut start = FoldStart::default();
        let mut shown: Vec<Vec<Block>> = turns.map(|turn| blocks_of(turn, &mut start, read)).collect();
        let is_cut = !is_all && shown.len() == 1;
        if !is_all && shown.len() > 1 {
            shown.remove(0);
        }
        shown.drain(..shown.len().saturating_sub(MAX_TURNS));
        let mut answers = 0;
        let fits = |blocks: &&Vec<Block>| {
            let fits = answers < MAX_ANSWER_BYTES;
            answers += blocks.iter().map(answer_bytes).sum::<usize>();
            fits
        };
        let count = shown.iter().rev().take_while(fits).count().max(1);
        shown.drain(..shown.len().saturating_sub(count));
        let first = shown.iter().flatten().find_map(|block| block.turn).unwrap_or(1);
        let ended: Option<TurnEnded> = read[last].decode().ok();
        Self {
            turns_before: first.saturating_sub(1),
            last_turn: ended.as_ref().map_or(0, |ended| ended.turn),
            rests_through: ended.and_then(|ended| ended.inbox_through).filter(|_| last + 1 == read.len()),
            is_cut,
            blocks: shown.into_iter().flatten().collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// `… 34 turns before`, if there were any.
    pub(crate) fn heading(&self) -> Option<String> {
        let before = match self.turns_before {
            0 => None,
            turns => Some(format!("… {} before", format_count(turns, "turn"))),
        };
        match self.is_cut {
            true => Some(format!("{}; the beginning of this one is left out", before.unwrap_or("…".into()))),
            false => before,
        }
    }

    /// The last input and the end of the last answer, for a terminal without a screen.
    pub(crate) fn short_text(&self) -> String {
        let input = self.blocks.iter().rev().find_map(|block| match &block.content {
            BlockContent::Input { text, .. } => Some(text),
            _ => None,
        });
        let answer = self.blocks.iter().rev().find_map(|block| match &block.content {
            BlockContent::Message { text, .. } => Some(text),
            _ => None,
        });
        let mut lines: Vec<String> = self.heading().into_iter().collect();
        lines.extend(input.map(|text| format!("> {}", short_line(text.lines().next().unwrap_or_default()))));
        if let Some(answer) = answer {
            let all: Vec<&str> = answer.trim_end().lines().collect();
            let end = &all[all.len().saturating_sub(MAX_SHORT_LINES)..];
            lines.extend((end.len() < all.len()).then(|| "…".to_owned()));
            lines.extend(end.iter().map(|line| short_line(line)));
        }
        lines.join("\n")
    }
}

fn short_line(line: &str) -> String {
    truncate(&sanitize(line), MAX_SHORT_CHARS)
}

/// How many turns end in these records.
fn ends(read: &[Record]) -> usize {
    read.iter().filter(|record| record.kind == "turn_ended").count()
}

/// The blocks of a turn. `start` is what the fold of the turn before it knew at its end, and then what this one does: an input that a turn
/// leaves is shown in the next one.
fn blocks_of(turn: &[Record], start: &mut FoldStart, read: &[Record]) -> Vec<Block> {
    let mut transcript = StoredTranscript::starting_at(std::mem::take(start), read);
    let updates = turn.iter().flat_map(|record| transcript.apply(record));
    let ended = updates.filter_map(|update| match update {
        Update::Ended(block) => Some(block),
        Update::Started(_) | Update::Appended { .. } => None,
    });
    let blocks = ended.collect();
    *start = transcript.next_start();
    blocks
}

fn answer_bytes(block: &Block) -> usize {
    match &block.content {
        BlockContent::Message { text, .. } => text.len(),
        _ => 0,
    }
}

#[cfg(test)]
#[path = "past_turns_tests.rs"]
mod tests;
