//! What the model is told of tasks.
//!
//! Whatever a program printed, and whatever a command is called, is escaped and marked: no output can look like the end of its
//! own notification, and none can look like a note of the runtime.

use longhaul_protocol::{At, TaskEnded, TaskId, TaskStarted};

/// A description in a note is at most so long.
const LONGEST_LINE: usize = 200;
/// So much of a command is repeated: the model has written it.
const LONGEST_COMMAND: usize = 1_000;

/// The first and the last line of a notification.
const OPENS: &str = "<task-notification>\n";
const CLOSES: &str = "</task-notification>";

/// The message with which the model is told that a task has ended.
pub fn task_notification(task: &TaskStarted, end: &TaskEnded) -> String {
    let mut text = String::from(OPENS);
    let mut child = |name: &str, value: &str| text += &format!("<{name}>{value}</{name}>\n");
    child("task-id", &task.task_id.to_string());
    child("status", end.status.word());
    child("command", &escape(&shortened(&task.command, LONGEST_COMMAND)));
    child("description", &escape(&shortened(&task.description, LONGEST_COMMAND)));
    child("exit-code", &end.exit_code.map(|code| code.to_string()).unwrap_or_default());
    child("duration-ms", &end.duration_ms.to_string());
    if let Some(message) = &end.message {
        child("message", &escape(message));
    }
    text += &format!("<output untrusted=\"true\">{}</output>\n", escape(&end.tail));
    text + CLOSES
}

/// Whether a message is such a notification. It has the role of a user and is full of what a program printed, so whoever
/// looks for what a person said must pass it over.
pub fn is_task_notification(text: &str) -> bool {
    text.starts_with(OPENS) && text.ends_with(CLOSES)
}

/// The note that says which tasks run.
pub fn running_tasks_note<'a>(running: impl IntoIterator<Item = &'a TaskStarted>) -> String {
    let lines: Vec<String> = running.into_iter().map(running_line).collect();
    let heading = "Currently running background tasks:";
    if lines.is_empty() { format!("{heading} none") } else { format!("{heading}\n{}", lines.join("\n")) }
}

fn running_line(task: &TaskStarted) -> String {
    let started = task.started_at.and_then(moment).map(|at| format!(", started {at}")).unwrap_or_default();
    format!("- {}: {}{started}", task.task_id, one_line(&task.description))
}

/// The note that says that a task seems to wait for input.
pub fn waiting_for_input_note(task: TaskId, line: &str) -> String {
    format!(
        "The task {task} has been silent for a while, and its last line looks like a question: {}. \
         Its standard input is closed, so nobody can answer it: end it with task_kill, and run it so that it does not ask.",
        one_line(line)
    )
}

fn shortened(text: &str, longest: usize) -> String {
    let mut shown: String = text.chars().take(longest).collect();
    if shown.len() < text.len() {
        shown += " …";
    }
    shown
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            other => escaped.push(other),
        }
    }
    escaped
}

/// Words of others within a note: one line, so that they can't begin another one, and escaped like everywhere.
fn one_line(text: &str) -> String {
    let line: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_LINE).collect();
    escape(&line)
}

fn moment(at: At) -> Option<String> {
    let moment = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(moment.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
#[path = "notices_tests.rs"]
mod tests;
