//! The events that watchers see for records.

use longhaul_protocol::{
    AttemptEnded, Event, EventKind, Record, Role, SessionRecord, ToolFinished, ToolStarted, TurnEnded,
};

use crate::session::state::{State, text_of};

/// The event of a record, given the state before it. One record makes at most one event.
pub fn event_of(state: &State, key: &str, record: &Record) -> Option<Event> {
    let fact = SessionRecord::decode(record).ok()?;
    let turn = match &fact {
        SessionRecord::TurnStarted(started) => Some(started.turn),
        _ => state.turn.as_ref().map(|turn| turn.number),
    };
    let kind = kind_of(state, fact)?;
    Some(Event { seq: Some(record.seq), at: record.at, session: key.to_owned(), turn, kind })
}

fn kind_of(state: &State, fact: SessionRecord) -> Option<EventKind> {
    Some(match fact {
        SessionRecord::InputTaken(input) => EventKind::InputTaken { id: input.id },
        SessionRecord::TurnStarted(_) => EventKind::TurnStarted,
        SessionRecord::StepStarted(_) => EventKind::StepStarted,
        SessionRecord::AttemptEnded(ended) => return answer(state, &ended),
        SessionRecord::Usage(usage) => EventKind::Usage {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
            cache_written: usage.cache_written,
            cost: usage.cost,
            limits: usage.limits,
        },
        SessionRecord::ToolStarted(ToolStarted { call, name, arguments, effect, .. }) => {
            EventKind::ToolStarted { call_id: call, name, arguments, effect }
        }
        SessionRecord::ToolFinished(ToolFinished { call, name, is_error, content, .. }) => {
            EventKind::ToolFinished { call_id: call, name, is_error, content }
        }
        SessionRecord::TaskStarted(task) => {
            EventKind::TaskStarted { task_id: task.task_id, description: task.description }
        }
        SessionRecord::TaskEnded(ended) => {
            EventKind::TaskEnded { task_id: ended.task_id, status: ended.status, exit_code: ended.exit_code }
        }
        SessionRecord::Notification(notification) => {
            EventKind::Notification { task_id: notification.task_id }
        }
        SessionRecord::Note(note) => EventKind::Note { text: note.text },
        SessionRecord::Question(question) => EventKind::Question { id: question.id, text: question.text },
        SessionRecord::Answered(answered) => EventKind::Answered { id: answered.id },
        SessionRecord::Imported(imported) => {
            EventKind::Imported { work_dir: imported.work_dir, mine: imported.mine }
        }
        SessionRecord::CompactStart(start) => EventKind::CompactStart { reason: start.reason },
        SessionRecord::SystemMessage(message) => EventKind::SystemMessage { content: message.content },
        SessionRecord::CompactDone(done) => {
            EventKind::CompactDone { epoch: done.epoch, by: done.by, before: done.before, after: done.after }
        }
        SessionRecord::CompactFailed(failed) => EventKind::CompactFailed { reason: failed.reason },
        SessionRecord::ModelChanged(changed) => {
            EventKind::ModelChanged { from: changed.from, to: changed.to, reason: changed.reason }
        }
        SessionRecord::Warning(warning) => EventKind::Warning { code: warning.code, text: warning.text },
        SessionRecord::TurnEnded(TurnEnded { outcome, limit, text, error, code, .. }) => {
            EventKind::TurnEnded { outcome, limit, text, error, code }
        }
        SessionRecord::SessionCreated(_)
        | SessionRecord::EpochStarted(_)
        | SessionRecord::OrderTaken(_)
        | SessionRecord::AttemptStarted(_)
        | SessionRecord::Block(_)
        | SessionRecord::Checkpoint(_)
        | SessionRecord::Stubbed(_)
        | SessionRecord::Unknown { .. } => return None,
    })
}

/// The event of an ended attempt: a message if the answer is complete, otherwise the part that was kept.
fn answer(state: &State, ended: &AttemptEnded) -> Option<EventKind> {
    if ended.error.is_some() {
        return Some(EventKind::AttemptDiscarded { attempt: ended.attempt, kept_blocks: ended.kept });
    }
    let attempt = state.turn.as_ref()?.attempt.as_ref()?;
    let kept = usize::try_from(ended.kept).unwrap_or(usize::MAX).min(attempt.blocks.len());
    let content = text_of(&attempt.blocks[..kept]);
    (!content.is_empty()).then_some(EventKind::Message { role: Role::Assistant, content })
}
