//! Inputs that no model could take, because they are too long.

use longhaul_model::FailureClass;
use longhaul_protocol::{Body, Outcome, Record, Seq, SessionRecord};

/// Finds the inputs that were too long for the session's model. They are not worth memory's money: the model never answered
/// them, and memory's model would get a piece of each.
#[derive(Debug, Default)]
pub(crate) struct RefusedInputs {
    /// The inputs since the model's last answer: their records and bytes.
    unanswered: Vec<(Seq, usize)>,
}

impl RefusedInputs {
    /// Applies the next record. Returns the input that it shows to be too long, if it does: the longest of those that
    /// wait, because a shorter one did not fit or it did not fit itself.
    pub(crate) fn apply(&mut self, record: &Record) -> Option<Seq> {
        match record.kind.as_str() {
            "input_taken" => {
                if let Ok(SessionRecord::InputTaken(input)) = SessionRecord::decode(record) {
                    self.unanswered.push((record.seq, input.text.len()));
                }
            }
            "attempt_ended" => {
                let is_refused =
                    |fact| matches!(fact, Ok(SessionRecord::AttemptEnded(ended)) if ended.kept == 0);
                if matches!(record.body, Body::Gone(_)) || !is_refused(SessionRecord::decode(record)) {
                    self.unanswered.clear();
                }
            }
            "turn_ended" => {
                let Ok(SessionRecord::TurnEnded(ended)) = SessionRecord::decode(record) else { return None };
                if ended.outcome == Outcome::Failed
                    && ended.code.as_deref() == Some(FailureClass::TooLong.code())
                {
                    let (longest, _) =
                        self.unanswered.iter().enumerate().max_by_key(|(_, (_, bytes))| *bytes)?;
                    return Some(self.unanswered.swap_remove(longest).0);
                }
                self.unanswered.clear();
            }
            "imported" => self.unanswered.clear(),
            _ => {}
        }
        None
    }

    /// Whether it is open if an input is too long.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.unanswered.is_empty()
    }
}
