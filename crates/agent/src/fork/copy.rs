//! The records that a fork begins with, made from the records of its parent. Pure.

use std::collections::HashSet;

use longhaul_journal::{RecordCopy, first_import_key};
use longhaul_protocol::{
    Answered, AnsweredBy, At, AttemptEnded, Body, CompactFailed, DecodeError, EpochStarted, Imported,
    InputId, Note, OrderKind, Outcome, Record, Seq, SessionCreated, SessionRecord, TaskId, ToolFinished,
    TurnEnded,
};

use super::creation;
use crate::session::state::State;

/// The result that the model reads for calls that had none at the fork point.
const NOT_RUN: &str = "not run: the session was forked before";
const UNKNOWN: &str =
    "unknown: the session was forked while it ran; its result is in the session that it was forked from";
/// The answer to a question that is still open in the parent.
const WITHDRAWN: &str = "withdrawn: the session was forked";
/// Why an answer is incomplete.
const FORKED: &str = "the session was forked here";

/// The parent session of a fork.
pub(super) struct Parent<'a> {
    /// Its first record.
    pub(super) first: Option<&'a Record>,
    /// The records of the epoch, up to the fork point.
    pub(super) records: &'a [Record],
    /// The record of its newest import.
    pub(super) import: Option<&'a Record>,
}

/// The records that a fork begins with.
pub(super) struct ForkRecords {
    pub(super) records: Vec<RecordCopy>,
    pub(super) places: SeqMap,
    /// Inputs that the model had not seen at the fork point.
    pub(super) unsent: Vec<String>,
}

/// Maps the records of the parent to their positions in the fork.
#[derive(Default)]
pub(super) struct SeqMap {
    copied: Vec<Seq>,
    /// The parent's import, if the fork begins with its mark, right after the first record.
    marked: Option<Imported>,
}

impl SeqMap {
    /// The position of a record in the fork. A record that was not copied maps to the first record, which names the
    /// parent. If its words are the user's own, it maps to the mark after it.
    pub(super) fn new_seq(&self, old: Seq) -> Seq {
        let before_or_at = self.copied.partition_point(|copied| *copied <= old) as Seq;
        match &self.marked {
            Some(mark) if before_or_at > 0 || old > mark.foreign_through => before_or_at + 2,
            Some(_) | None => before_or_at + 1,
        }
    }
}

/// The records that a fork begins with: its creation, the copies, and records that close everything that was open.
pub(super) fn copies(parent: &Parent<'_>, created: SessionCreated) -> Result<ForkRecords, DecodeError> {
    let began = creation(parent.first);
    let work_dir = began.and_then(|began| began.work_dir);
    // The fork begins at the time of its parent. The prompt contains the date, and the same beginning is in the
    // provider's cache.
    let first = parent.first.or(parent.records.first());
    let at = first.map_or(At(0), |first| first.at);
    let last_at = parent.records.last().map_or(at, |last| last.at);
    let mut draft = ForkDraft { state: State::default(), records: Vec::new() };
    draft.write(at, &SessionRecord::SessionCreated(SessionCreated { work_dir, ..created }))?;
    let beginning = draft.clone();

    // First a copy of everything, to see what is open at the end; then without what stays with the parent.
    for record in parent.records {
        draft.copy(record, &SeqMap::default(), &NotCopied::default())?;
    }
    let not_copied = NotCopied::of(&draft.state, parent.records);
    let unsent = draft.state.pending_inputs.iter().map(|input| input.text.clone()).collect();
    let copied: Vec<&Record> = parent.records.iter().filter(|record| !not_copied.holds(record)).collect();
    let first_seq = copied.first().map_or(0, |first| first.seq);
    let (before, after) = match parent.import {
        Some(import) if import.seq < first_seq => (Some(imported_in(import)), None),
        Some(import) if import.seq > parent.records.last().map_or(0, |last| last.seq) => {
            (None, Some(imported_in(import)))
        }
        Some(_) | None => (None, None),
    };
    let places = SeqMap { copied: copied.iter().map(|record| record.seq).collect(), marked: before };
    draft = beginning;
    if let Some(mark) = &places.marked {
        let foreign_through = mark.foreign_through.min(1);
        draft.mark(at, Imported { foreign_through, ..mark.clone() })?;
    }
    for record in copied {
        draft.copy(record, &places, &not_copied)?;
    }
    // The fork point is before the import, so everything came from the file.
    if let Some(mark) = after {
        let foreign_through = if mark.mine { places.new_seq(mark.foreign_through) } else { Seq::MAX };
        let foreign_through = foreign_through.min(draft.records.len() as Seq + 1);
        draft.mark(last_at, Imported { foreign_through, ..mark })?;
    }
    draft.close(last_at, &not_copied)?;
    Ok(ForkRecords { records: draft.records, places, unsent })
}

/// What is not copied, because it concerns only the parent.
#[derive(Default)]
struct NotCopied {
    /// Inputs that the model has not seen.
    inputs: HashSet<InputId>,
    /// Running tasks.
    tasks: HashSet<TaskId>,
    /// Orders from this record on that are not carried out yet.
    orders_from: Option<Seq>,
    /// Whether a turn was requested without an input.
    again: bool,
}

impl NotCopied {
    fn of(state: &State, records: &[Record]) -> Self {
        let last =
            |kind: &str| records.iter().rev().find(|record| record.kind == kind).map_or(1, |last| last.seq);
        let waits = state.turn_request.is_some() || state.compaction.requested.is_some();
        // An order to compact may come within a turn. A request for a turn comes after one.
        let since = if state.turn_request.is_some() { last("turn_ended") } else { last("epoch_started") };
        Self {
            inputs: state.pending_inputs.iter().map(|input| input.id).collect(),
            tasks: state.tasks.running().map(crate::session::TaskState::id).collect(),
            orders_from: waits.then_some(since),
            again: state.turn_request.is_some(),
        }
    }

    fn holds(&self, record: &Record) -> bool {
        match SessionRecord::decode(record) {
            Ok(SessionRecord::InputTaken(input)) => self.inputs.contains(&input.id),
            Ok(SessionRecord::TaskStarted(task)) => self.tasks.contains(&task.task_id),
            Ok(SessionRecord::OrderTaken(taken)) => {
                let asks = matches!(
                    taken.order.kind,
                    OrderKind::Retry | OrderKind::Continue | OrderKind::Compact { .. }
                );
                asks && self.orders_from.is_some_and(|from| record.seq > from)
            }
            _ => false,
        }
    }
}

#[derive(Clone)]
struct ForkDraft {
    state: State,
    records: Vec<RecordCopy>,
}

impl ForkDraft {
    fn write(&mut self, at: At, fact: &SessionRecord) -> Result<(), DecodeError> {
        let encoded = fact.encode();
        self.push(RecordCopy { at, kind: encoded.kind, key: None, body: Body::Here(encoded.body) })
    }

    /// Writes the mark of an import for a session with its own inbox and extracts. It has the key of a first import.
    fn mark(&mut self, at: At, imported: Imported) -> Result<(), DecodeError> {
        let imported = Imported { inbox_through: 0, foreign_extracts_through: 0, ..imported };
        let encoded = SessionRecord::Imported(imported).encode();
        self.records.iter_mut().for_each(|copied| copied.key = None);
        let key = Some(first_import_key());
        self.push(RecordCopy { at, kind: encoded.kind, key, body: Body::Here(encoded.body) })
    }

    fn push(&mut self, copied: RecordCopy) -> Result<(), DecodeError> {
        let zero = longhaul_protocol::Hash::ZERO;
        let record = Record {
            stream: longhaul_protocol::StreamName::names(),
            seq: self.records.len() as Seq + 1,
            at: copied.at,
            kind: copied.kind.clone(),
            key: copied.key,
            body: copied.body.clone(),
            prev: zero,
            hash: zero,
        };
        self.state.apply(&record)?;
        self.records.push(copied);
        Ok(())
    }

    /// Copies a record with its bytes unchanged, except for references to other records or into the parent's inbox.
    fn copy(&mut self, record: &Record, places: &SeqMap, not_copied: &NotCopied) -> Result<(), DecodeError> {
        if record.kind == "imported" {
            let mut imported = imported_in(record);
            if imported.foreign_through > 0 {
                imported.foreign_through = places.new_seq(imported.foreign_through);
            }
            return self.mark(record.at, imported);
        }
        let changed = match SessionRecord::decode(record) {
            Ok(SessionRecord::EpochStarted(epoch)) => {
                Some(SessionRecord::EpochStarted(moved_epoch(epoch, places, not_copied)))
            }
            Ok(SessionRecord::InputTaken(mut input)) => {
                input.inbox_through = 0;
                Some(SessionRecord::InputTaken(input))
            }
            Ok(SessionRecord::OrderTaken(mut order)) => {
                order.inbox_through = 0;
                Some(SessionRecord::OrderTaken(order))
            }
            Ok(SessionRecord::TurnEnded(mut ended)) => {
                ended.inbox_through = ended.inbox_through.map(|_| 0);
                Some(SessionRecord::TurnEnded(ended))
            }
            Ok(SessionRecord::CompactDone(mut done)) => {
                (done.from, done.through) = (places.new_seq(done.from), places.new_seq(done.through));
                Some(SessionRecord::CompactDone(done))
            }
            // The parent has already paid for it.
            Ok(SessionRecord::Usage(mut usage)) => {
                usage.cost = None;
                Some(SessionRecord::Usage(usage))
            }
            _ => None,
        };
        match changed {
            Some(fact) => self.write(record.at, &fact),
            None => {
                let (kind, body) = (record.kind.clone(), record.body.clone());
                self.push(RecordCopy { at: record.at, kind, key: None, body })
            }
        }
    }

    /// Closes everything that was open at the fork point, so that the fork is at rest.
    fn close(&mut self, at: At, not_copied: &NotCopied) -> Result<(), DecodeError> {
        let attempt = self.state.turn.as_ref().and_then(|turn| turn.attempt.as_ref());
        if let Some(attempt) = attempt {
            let kept = u32::try_from(attempt.blocks_kept_on_cancel()).unwrap_or(u32::MAX);
            let block = attempt.interrupted_block();
            let (attempt, error) = (attempt.id, Some(FORKED.to_owned()));
            let ended = AttemptEnded { attempt, kept, stop: None, error, goes_on: false, too_long: None };
            if let Some(block) = block {
                self.write(at, &SessionRecord::Block(block))?;
            }
            self.write(at, &SessionRecord::AttemptEnded(ended))?;
        }
        let calls = self.state.turn.iter().flat_map(|turn| &turn.calls);
        let open: Vec<ToolFinished> = calls
            .filter(|call| call.result.is_none())
            .map(|call| {
                if let Some(result) = call.result_in_sandbox() {
                    return result.clone();
                }
                let content = if call.started.is_some() { UNKNOWN } else { NOT_RUN };
                ToolFinished { is_error: true, ..ToolFinished::new(call.id, &call.name, content) }
            })
            .collect();
        for result in open {
            self.write(at, &SessionRecord::ToolFinished(result))?;
        }
        let questions: Vec<_> = self.state.questions.iter().map(|question| question.id).collect();
        for id in questions {
            let answer = WITHDRAWN.to_owned();
            self.write(at, &SessionRecord::Answered(Answered { id, answer, by: Some(AnsweredBy::Runtime) }))?;
        }
        if self.state.compaction.open_reason.is_some() {
            let reason = FORKED.to_owned();
            self.write(
                at,
                &SessionRecord::CompactFailed(CompactFailed { reason, tokens: None, was_needed: false }),
            )?;
        }
        // An ended task that was not announced would begin a turn by itself.
        for told in self.state.tasks.announcements() {
            self.write(at, &told)?;
        }
        if let Some(turn) = &self.state.turn {
            let answer = if turn.text.is_empty() { &turn.text_before_cut } else { &turn.text };
            let ended = TurnEnded {
                turn: turn.number,
                outcome: Outcome::Cancelled,
                limit: None,
                text: answer.clone(),
                error: Some(FORKED.to_owned()),
                code: None,
                inbox_through: Some(0),
            };
            self.write(at, &SessionRecord::TurnEnded(ended))?;
        }
        let has_numbers = self.state.summary.is_some() || self.state.compaction.count > 0;
        match forked_note(has_numbers, !not_copied.tasks.is_empty()) {
            Some(text) => self.write(at, &SessionRecord::Note(Note::new(text))),
            None => Ok(()),
        }
    }
}

/// The content of an import record. If its body is gone, everything before it counts as another user's.
fn imported_in(record: &Record) -> Imported {
    record.decode().unwrap_or_else(|_| Imported::unknown(record.seq))
}

/// The note to the model about the fork, if it needs one.
fn forked_note(has_numbers: bool, has_tasks: bool) -> Option<String> {
    let numbers =
        "Numbers of records that are named before this are those of that session, and can't be read here.";
    let tasks = "Tasks that were running stay with that session: here there are none.";
    let parts: Vec<&str> = [(has_numbers, numbers), (has_tasks, tasks)]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, text)| text)
        .collect();
    (!parts.is_empty()).then(|| format!("This session was forked from another one here. {}", parts.join(" ")))
}

/// The epoch with all references changed to positions in the fork.
fn moved_epoch(mut epoch: EpochStarted, places: &SeqMap, not_copied: &NotCopied) -> EpochStarted {
    epoch.inbox_through = 0;
    epoch.folds_from = epoch.folds_from.map(|from| places.new_seq(from));
    epoch.previous = epoch.previous.map(|previous| places.new_seq(previous)).filter(|place| *place > 1);
    epoch.tasks.retain(|task| !not_copied.tasks.contains(&task.task_id));
    for kept in &mut epoch.kept {
        kept.place.seq = places.new_seq(kept.place.seq);
        kept.place.said = kept.place.said.map(|said| places.new_seq(said));
    }
    if let Some(carried) = &mut epoch.carried {
        carried.covered_through = places.new_seq(carried.covered_through);
        carried.waiting.retain(|input| !not_copied.inputs.contains(&input.id));
        carried.waiting.iter_mut().for_each(|input| input.taken = places.new_seq(input.taken));
        if not_copied.again {
            carried.again = None;
        }
    }
    epoch
}
