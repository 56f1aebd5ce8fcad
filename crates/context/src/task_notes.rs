//! Messages about background tasks: the notification of an end, and notes on running tasks.
//!
//! The text of programs and commands is escaped, so that output can neither close its own notification nor look like a
//! note of the runtime.

use longhaul_protocol::{At, TaskEnded, TaskId, TaskStarted};

/// Characters of a description in a note.
const MAX_LINE_CHARS: usize = 200;
/// Characters of a command in a notification. The model wrote the command, so the beginning is enough.
const MAX_COMMAND_CHARS: usize = 1_000;

const OPENING_TAG: &str = "<task-notification>\n";
const CLOSING_TAG: &str = "</task-notification>";
const USER_COMMAND_OPENING: &str = "<user-command>\n";
const USER_COMMAND_CLOSING: &str = "</user-command>";

/// The notification of the end of a task.
pub fn task_notification(task: &TaskStarted, end: &TaskEnded) -> String {
    let mut text = String::from(OPENING_TAG);
    let mut child = |name: &str, value: &str| text += &format!("<{name}>{value}</{name}>\n");
    child("task-id", &task.task_id.to_string());
    child("status", end.status.word());
    child("command", &escape_xml(&truncate_chars(&task.command, MAX_COMMAND_CHARS)));
    child("description", &escape_xml(&truncate_chars(&task.description, MAX_COMMAND_CHARS)));
    child("exit-code", &end.exit_code.map(|code| code.to_string()).unwrap_or_default());
    child("duration-ms", &end.duration_ms.to_string());
    if let Some(message) = &end.message {
        child("message", &escape_xml(message));
    }
    text += &format!("<output untrusted=\"true\">{}</output>\n", escape_xml(&end.tail));
    text + CLOSING_TAG
}

/// Whether a message is a notification or a command that the user ran. It has the role of a user but contains the output
/// of a program, so code that looks for the user's words skips it.
pub fn is_task_notification(text: &str) -> bool {
    let is_in = |opening: &str, closing: &str| text.starts_with(opening) && text.ends_with(closing);
    is_in(OPENING_TAG, CLOSING_TAG) || is_in(USER_COMMAND_OPENING, USER_COMMAND_CLOSING)
}

/// A command that the user ran in a shell of their own, with its output: data for the model, not a request.
pub fn user_command_message(command: &str, ended: &str, output: &str) -> String {
    let (command, output) = (escape_xml(command), escape_xml(output));
    format!(
        "{USER_COMMAND_OPENING}<command>{command}</command>\n<ended>{ended}</ended>\n\
         <output untrusted=\"true\">{output}</output>\n{USER_COMMAND_CLOSING}"
    )
}

/// The note that lists the running tasks.
pub fn running_tasks_note<'a>(running: impl IntoIterator<Item = &'a TaskStarted>) -> String {
    let lines: Vec<String> = running.into_iter().map(running_line).collect();
    let heading = "Currently running background tasks:";
    if lines.is_empty() { format!("{heading} none") } else { format!("{heading}\n{}", lines.join("\n")) }
}

fn running_line(task: &TaskStarted) -> String {
    let started = task.started_at.and_then(rfc3339).map(|at| format!(", started {at}")).unwrap_or_default();
    format!("- {}: {}{started}", task.task_id, one_line(&task.description))
}

/// The note that a task seems to wait for input.
pub fn waiting_for_input_note(task: TaskId, line: &str) -> String {
    format!(
        "The task {task} has been silent for a while, and its last line looks like a question: {}. \
         Its standard input is closed, so nobody can answer it: end it with task_kill, and run it so that it does not ask.",
        one_line(line)
    )
}

fn truncate_chars(text: &str, longest: usize) -> String {
    let mut shown: String = text.chars().take(longest).collect();
    if shown.len() < text.len() {
        shown += " …";
    }
    shown
}

fn escape_xml(text: &str) -> String {
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

/// Text of a program in a note: escaped, and on one line, so that it can't begin another note.
fn one_line(text: &str) -> String {
    let line: String =
        text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(MAX_LINE_CHARS).collect();
    escape_xml(&line)
}

fn rfc3339(at: At) -> Option<String> {
    let rfc3339 = jiff::Timestamp::from_millisecond(at.0).ok()?;
    Some(rfc3339.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
#[path = "task_notes_tests.rs"]
mod tests;
