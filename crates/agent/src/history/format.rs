use longhaul_protocol::{
    Answered, AnsweredBy, At, Block, Item, Order, OrderKind, OrderTaken, Outcome, Role, SessionRecord,
    SystemMessage, TaskEnded, ToolFinished, TurnEnded, with_picture_note,
};

use super::reader::BlockStatus;

/// A record as the history tools show it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordView {
    /// The author of the text, or the kind of the record.
    pub(super) who: String,
    pub(super) text: String,
}

impl RecordView {
    /// `None` for a record that is bookkeeping or repeats another.
    pub(super) fn of(fact: SessionRecord) -> Option<Self> {
        let (who, text) = match fact {
            SessionRecord::InputTaken(input) => {
                (input.sender.to_string(), with_picture_note(input.text, &input.images))
            }
            SessionRecord::Block(Block { item, .. }) => item_view(item),
            SessionRecord::ToolFinished(finished) => result_view(finished),
            SessionRecord::TaskStarted(task) => {
                (format!("task {} started", task.task_id), format!("{}\n{}", task.description, task.command))
            }
            SessionRecord::TaskEnded(ended) => task_end_view(ended),
            SessionRecord::Notification(told) => (format!("news of task {}", told.task_id), told.text),
            SessionRecord::Note(note) => ("note".to_owned(), note.text),
            SessionRecord::Question(question) => ("question to a person".to_owned(), question.text),
            SessionRecord::Answered(Answered { answer, by: Some(AnsweredBy::Agent), .. }) => {
                ("answer of another agent".to_owned(), answer)
            }
            SessionRecord::Answered(Answered { answer, by: Some(AnsweredBy::Runtime), .. }) => {
                ("question taken back by the runtime".to_owned(), answer)
            }
            SessionRecord::Answered(answered) => ("answer of a person".to_owned(), answered.answer),
            SessionRecord::OrderTaken(OrderTaken {
                order: Order { kind: OrderKind::AddContext { text }, .. },
                ..
            }) => ("shown to the model by the user".to_owned(), text),
            SessionRecord::OrderTaken(taken) => {
                (format!("order: {}", order_view(&taken.order)?), String::new())
            }
            SessionRecord::SystemMessage(SystemMessage { content }) => {
                let parts: Vec<String> = content.into_iter().map(|part| part.text).collect();
                ("message of the runtime".to_owned(), parts.join("\n"))
            }
            SessionRecord::CompactDone(done) => {
                let (from, through) = (done.from, done.through);
                (format!("context compacted: what records {from} to {through} hold"), String::new())
            }
            SessionRecord::Imported(imported) => {
                let whose = if imported.mine { "by its own user" } else { "from another user" };
                (format!("session imported {whose}"), String::new())
            }
            SessionRecord::Warning(warning) => ("warning to the user".to_owned(), warning.text),
            SessionRecord::ModelChanged(changed) => {
                (format!("model changed from {} to {}", changed.from, changed.to), changed.reason)
            }
            SessionRecord::ModeChanged(changed) => {
                (format!("permission mode changed from {} to {}", changed.from, changed.to), String::new())
            }
            SessionRecord::TurnStarted(started) => (format!("turn {} begins", started.turn), String::new()),
            SessionRecord::TurnEnded(ended) => turn_end_view(ended)?,
            SessionRecord::SessionCreated(_)
            | SessionRecord::EpochStarted(_)
            | SessionRecord::StepStarted(_)
            | SessionRecord::AttemptStarted(_)
            | SessionRecord::Checkpoint(_)
            | SessionRecord::ToolTask(_)
            | SessionRecord::AttemptEnded(_)
            | SessionRecord::Usage(_)
            | SessionRecord::ToolStarted(_)
            | SessionRecord::CompactStart(_)
            | SessionRecord::CompactFailed(_)
            | SessionRecord::Stubbed(_)
            | SessionRecord::Unknown { .. } => return None,
        };
        Some(Self { who, text })
    }
}

fn item_view(item: Item) -> (String, String) {
    match item {
        Item::Text { role: Role::Assistant, text } => ("assistant".to_owned(), text),
        Item::Text { role: Role::User, text } => ("user".to_owned(), text),
        Item::Text { role: Role::System, text } => ("message of the runtime".to_owned(), text),
        Item::Reasoning { text, .. } => ("assistant, thinking".to_owned(), text),
        Item::ToolCall { name, arguments, .. } => (format!("call of {}", to_single_line(&name)), arguments),
        Item::ToolResult { content, images, .. } => {
            ("result".to_owned(), with_picture_note(content, &images))
        }
        Item::Image(_) => ("picture".to_owned(), String::new()),
        Item::Note { text } => ("note".to_owned(), text),
    }
}

fn result_view(finished: ToolFinished) -> (String, String) {
    let ToolFinished { call, name, is_error, content, images, whole, .. } = finished;
    let mut who = format!("result of {}", to_single_line(&name));
    if is_error {
        who += ", which failed";
    }
    if whole.is_some() {
        who += &format!(" (head and tail; read_file with the path \"output:{call}\" reads the whole)");
    }
    (who, with_picture_note(content, &images))
}

fn task_end_view(ended: TaskEnded) -> (String, String) {
    let TaskEnded { task_id, status, exit_code, output, tail, message, .. } = ended;
    let mut who = format!("task {task_id} ended: {}", status.word());
    if let Some(code) = exit_code {
        who += &format!(", exit code {code}");
    }
    if output.is_some() {
        let call = task_id.call();
        who += &format!(" (the last it printed; read_file with the path \"output:{call}\" reads the whole)");
    }
    let lines: Vec<String> = message.into_iter().chain([tail]).filter(|text| !text.is_empty()).collect();
    (who, lines.join("\n"))
}

fn order_view(order: &Order) -> Option<&'static str> {
    Some(match order.kind {
        OrderKind::Cancel => "end the turn",
        OrderKind::Retry => "try again",
        OrderKind::Continue => "go on",
        OrderKind::Compact { .. } => "make the context smaller",
        OrderKind::Kill { .. } => "end a task",
        OrderKind::Remember { .. } => "remember",
        OrderKind::Withdraw { .. } => "take back a message that was not read yet",
        // The record that follows shows it.
        OrderKind::Answer { .. }
        | OrderKind::AddContext { .. }
        | OrderKind::Mode { .. }
        | OrderKind::Unknown => return None,
    })
}

/// A completed turn ended with an answer, which is already shown.
fn turn_end_view(ended: TurnEnded) -> Option<(String, String)> {
    let how = match ended.outcome {
        Outcome::Completed => return None,
        Outcome::Cancelled => "cancelled",
        Outcome::Failed => "failed",
        Outcome::Limit => "a limit was reached",
    };
    Some((format!("turn {} ended: {how}", ended.turn), ended.error.unwrap_or_default()))
}

/// A name that a model made up can't begin a line of its own.
fn to_single_line(name: &str) -> String {
    const LONGEST: usize = 80;
    name.chars().take(LONGEST).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// The remark for text of a model that did not become part of the conversation.
pub(super) fn status_suffix(status: BlockStatus) -> &'static str {
    match status {
        BlockStatus::InConversation => "",
        BlockStatus::Discarded => " (discarded: not part of the conversation)",
        BlockStatus::Unfinished => " (of an answer that is not over)",
    }
}

/// A time, to the minute.
pub(crate) fn minute(at: At) -> String {
    let exact = at.to_string();
    // `2026-11-15T20:22:35.123Z`. A time outside the calendar is shown unchanged.
    match exact.get(..16) {
        Some(minute) if exact.len() == 24 && exact.ends_with('Z') => format!("{minute}Z"),
        _ => exact,
    }
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
