//! The steps of a turn that are on record.

use std::collections::VecDeque;

use longhaul_journal::{Journal, RecordCursor, records};
use longhaul_protocol::{At, Seq, SessionId, StreamName};

use super::fold::{TurnFold, TurnLocator, TurnStep};
use crate::Result;

/// Reads the steps of a turn from its records, without waiting for more.
pub struct RecordedTurn<'a> {
    cursor: RecordCursor<'a>,
    fold: TurnFold,
    steps: VecDeque<RecordedStep>,
}

/// A step, and the record that decided it.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedStep {
    /// The step.
    pub step: TurnStep,
    /// The number of its turn.
    pub turn: u64,
    /// The record.
    pub seq: Seq,
    /// When it was written.
    pub at: At,
}

impl<'a> RecordedTurn<'a> {
    /// Begins to read.
    pub fn new(journal: &'a dyn Journal, session: SessionId, turn: TurnLocator) -> Self {
        let cursor = records(journal, &StreamName::session(session), turn.after + 1);
        Self { cursor, fold: TurnFold::new(turn), steps: VecDeque::new() }
    }

    /// The next step; `None` if the turn is over, or the records have no further step.
    pub async fn next(&mut self) -> Result<Option<RecordedStep>> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Ok(Some(step));
            }
            if self.fold.is_over() {
                return Ok(None);
            }
            let Some(record) = self.cursor.next().await? else { return Ok(None) };
            let steps = self.fold.apply_record(&record);
            let turn = self.fold.turn().unwrap_or_default();
            let (seq, at) = (record.seq, record.at);
            self.steps.extend(steps.into_iter().map(|step| RecordedStep { step, turn, seq, at }));
        }
    }
}
