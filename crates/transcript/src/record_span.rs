//! Where a span of records can be cut: where a fold may begin, and where a page of blocks does.

use longhaul_protocol::{
    AttemptStarted, ModelChanged, OrderKind, OrderTaken, Record, Seq, StepStarted, TurnEnded,
};

use crate::block::Update;
use crate::stored::StoredTranscript;

/// The last page of a span of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastPage {
    /// Its first record: the beginning of a step or of a turn.
    pub first: Seq,
    /// Blocks that end in the whole span. If there are fewer than wanted, a longer span may have more.
    pub blocks_in_span: usize,
}

/// The last page of these records that has at least `limit` blocks; all of them if there are fewer. `has_beginning` says that the session begins
/// with these records.
pub fn find_last_page(records: &[Record], has_beginning: bool, limit: usize) -> LastPage {
    let starts: Vec<usize> = (0..records.len()).filter(|index| is_page_start(records, *index)).collect();
    // What comes before the first beginning of a step belongs to the page before.
    let skipped = if has_beginning { 0 } else { starts.first().copied().unwrap_or(0) };
    let mut transcript = StoredTranscript::new();
    let mut ended = Vec::new();
    for record in &records[skipped..] {
        let blocks = transcript.apply(record).into_iter().filter(|update| matches!(update, Update::Ended(_)));
        ended.extend(blocks.map(|_| record.seq));
    }
    // The last beginning that leaves enough blocks.
    let kept_from = ended.get(ended.len().saturating_sub(limit)).copied().unwrap_or(1);
    let begins = starts.into_iter().rfind(|index| *index >= skipped && records[*index].seq <= kept_from);
    let first = match begins {
        None if has_beginning => 1,
        begins => records.get(begins.unwrap_or(skipped)).map_or(1, |record| record.seq),
    };
    LastPage { first, blocks_in_span: ended.len() }
}

/// From which of these records a fold knows everything that goes on after the last of them: the last end of a turn after which no input
/// waited, or after which a turn took every input that did. `has_beginning` says that the session begins with these records.
pub fn find_fold_start(records: &[Record], has_beginning: bool) -> Option<usize> {
    // Seen from the end: whether everything that waited was taken, and whether the place is between two turns.
    let (mut is_taken, mut is_between_turns) = (false, false);
    for (index, record) in records.iter().enumerate().rev() {
        match record.kind.as_str() {
            "step_started" => is_taken |= takes_all_inputs(record),
            "turn_started" => is_between_turns = true,
            // A turn of cancelled inputs leaves the others to the turn after it.
            "order_taken" if is_between_turns && is_cancel(record) => is_taken = false,
            "imported" => return Some(index + 1),
            "turn_ended" if is_taken || leaves_no_input(record) => return Some(index + 1),
            "turn_ended" => is_between_turns = false,
            _ => {}
        }
    }
    has_beginning.then_some(0)
}

/// The model that is in use after this record, if the record says it.
pub fn recorded_model(record: &Record) -> Option<String> {
    match record.kind.as_str() {
        "attempt_started" => record.decode::<AttemptStarted>().ok().map(|started| started.model),
        "model_changed" => record.decode::<ModelChanged>().ok().map(|changed| changed.to),
        _ => None,
    }
}

/// Whether this is the first step of a turn, and no input was too long for it.
fn takes_all_inputs(record: &Record) -> bool {
    record.decode().is_ok_and(|started: StepStarted| started.step == 1 && started.later.is_empty())
}

fn is_cancel(record: &Record) -> bool {
    record.decode().map_or(true, |taken: OrderTaken| taken.order.kind == OrderKind::Cancel)
}

/// Whether the end of a turn says that no input waits.
fn leaves_no_input(record: &Record) -> bool {
    record.decode().is_ok_and(|ended: TurnEnded| ended.inbox_through.is_some())
}

/// Where a page may begin: nothing that began before goes on there, apart from the turn and inputs that wait.
fn is_page_start(records: &[Record], index: usize) -> bool {
    let is_after_turn = index.checked_sub(1).is_some_and(|before| ends_turn(&records[before]));
    is_after_turn || records[index].kind == "step_started"
}

/// Whether nothing but background tasks is open after this record.
fn ends_turn(record: &Record) -> bool {
    matches!(record.kind.as_str(), "turn_ended" | "imported")
}
