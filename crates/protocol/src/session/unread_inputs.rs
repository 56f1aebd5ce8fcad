use crate::{InputId, OrderKind, Record, Seq, SessionRecord};

/// The inputs that no step has shown to the model, according to the records of a session. Only these can be taken back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadInputs(Vec<(InputId, Seq)>);

impl UnreadInputs {
    /// Applies the next record. Returns the record of the input that it takes back, if it does.
    pub fn apply(&mut self, record: &Record) -> Option<Seq> {
        match record.kind.as_str() {
            "step_started" => self.0.clear(),
            "input_taken" => {
                if let Ok(SessionRecord::InputTaken(input)) = SessionRecord::decode(record) {
                    self.0.push((input.id, record.seq));
                }
            }
            "order_taken" => {
                if let Ok(SessionRecord::OrderTaken(taken)) = SessionRecord::decode(record)
                    && let OrderKind::Withdraw { input } = taken.order.kind
                {
                    return self.0.extract_if(.., |(id, _)| *id == input).next().map(|(_, seq)| seq);
                }
            }
            _ => {}
        }
        None
    }
}
