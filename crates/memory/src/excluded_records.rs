//! What memory passes over: inputs that were too long for the model, and heartbeats that found nothing to do.

use std::ops::RangeInclusive;

use longhaul_model::FailureClass;
use longhaul_protocol::{Body, Outcome, Record, Seq, SessionRecord, TurnEnded};

/// Finds the records that are not worth memory's money. The model never answered an input that was too long for it, and
/// memory's model would get a piece of it. A heartbeat with nothing to do says the same every time.
#[derive(Debug, Default)]
pub(crate) struct ExcludedRecords {
    /// The inputs since the model's last answer: their records and bytes.
    unanswered: Vec<(Seq, usize)>,
    /// The first input of a turn, while only heartbeats have come.
    heartbeat_since: Option<Seq>,
    has_inputs: bool,
}

impl ExcludedRecords {
    /// Applies the next record. Returns the records that it shows to be passed over, if it does.
    pub(crate) fn apply(&mut self, record: &Record) -> Option<RangeInclusive<Seq>> {
        match record.kind.as_str() {
            "input_taken" => self.take_input(record),
            "attempt_ended" => {
                let is_refused =
                    |fact| matches!(fact, Ok(SessionRecord::AttemptEnded(ended)) if ended.kept == 0);
                if matches!(record.body, Body::Gone(_)) || !is_refused(SessionRecord::decode(record)) {
                    self.unanswered.clear();
                }
            }
            "turn_ended" => {
                let heartbeat_since = self.heartbeat_since.take();
                self.has_inputs = false;
                let Ok(SessionRecord::TurnEnded(ended)) = SessionRecord::decode(record) else { return None };
                if let Some(since) = heartbeat_since.filter(|_| ended.is_quiet()) {
                    self.unanswered.clear();
                    return Some(since..=record.seq);
                }
                return self.end_turn(&ended);
            }
            "imported" => *self = Self::default(),
            _ => {}
        }
        None
    }

    fn take_input(&mut self, record: &Record) {
        let Ok(SessionRecord::InputTaken(input)) = SessionRecord::decode(record) else {
            (self.heartbeat_since, self.has_inputs) = (None, true);
            return;
        };
        self.unanswered.push((record.seq, input.text.len()));
        if !input.sender.is_heartbeat() {
            self.heartbeat_since = None;
        } else if !self.has_inputs {
            self.heartbeat_since = Some(record.seq);
        }
        self.has_inputs = true;
    }

    /// The input that was too long, if the turn ended for that: the longest of those that wait, because a shorter one did not fit or
    /// it did not fit itself.
    fn end_turn(&mut self, ended: &TurnEnded) -> Option<RangeInclusive<Seq>> {
        if ended.outcome == Outcome::Failed && ended.code.as_deref() == Some(FailureClass::TooLong.code()) {
            let (longest, _) = self.unanswered.iter().enumerate().max_by_key(|(_, (_, bytes))| *bytes)?;
            let seq = self.unanswered.swap_remove(longest).0;
            return Some(seq..=seq);
        }
        self.unanswered.clear();
        None
    }

    /// Whether a later record may show that records before it are passed over.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unanswered.is_empty() || self.heartbeat_since.is_some()
    }
}
