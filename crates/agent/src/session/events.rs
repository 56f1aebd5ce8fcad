//! The events that watchers see for records.

use longhaul_protocol::{
    AttemptEnded, Event, EventKind, InputId, Order, OrderKind, OrderTaken, PendingInput, Record, Role,
    SessionRecord,
};

use crate::session::state::{State, text_of};

/// The event of a record, given the state before it. One record makes at most one event.
pub fn event_of(state: &State, key: &str, record: &Record) -> Option<Event> {
    let fact = SessionRecord::decode(record).ok()?;
    let turn = match &fact {
        SessionRecord::TurnStarted(started) => Some(started.turn),
        _ => state.turn.as_ref().map(|turn| turn.number),
    };
    let kind = match fact {
        SessionRecord::AttemptEnded(ended) => answer(state, &ended)?,
        SessionRecord::OrderTaken(OrderTaken {
            order: Order { kind: OrderKind::Withdraw { input }, .. },
            ..
        }) => withdrawal(state, input)?,
        fact => EventKind::of_record(fact)?,
    };
    Some(Event { seq: Some(record.seq), at: record.at, session: key.to_owned(), turn, kind })
}

/// An input is taken back, unless a turn has it.
fn withdrawal(state: &State, id: InputId) -> Option<EventKind> {
    let is_it = |input: &PendingInput| input.id == id && input.can_be_withdrawn();
    state.pending_inputs.iter().any(is_it).then_some(EventKind::InputWithdrawn { id })
}

/// A message, where an answer came to its end; what was kept, where it did not.
fn answer(state: &State, ended: &AttemptEnded) -> Option<EventKind> {
    if ended.error.is_some() {
        return Some(EventKind::AttemptDiscarded { attempt: ended.attempt, kept_blocks: ended.kept });
    }
    let attempt = state.turn.as_ref()?.attempt.as_ref()?;
    let kept = usize::try_from(ended.kept).unwrap_or(usize::MAX).min(attempt.blocks.len());
    let content = text_of(&attempt.blocks[..kept]);
    (!content.is_empty()).then_some(EventKind::Message { role: Role::Assistant, content })
}
