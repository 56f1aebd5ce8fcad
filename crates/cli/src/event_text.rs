//! What happens in a turn, in words for people: the same ones wherever it is shown.

use std::ops::Range;

use longhaul_journal::ImportMark;
use longhaul_protocol::{CompactedBy, EventKind, Outcome, TaskId, TaskStatus};

use crate::output::{grouped, in_words, safe, shortened};
use crate::questions::question;
use crate::short_id::short;

/// So much of a warning is shown: some name a command to type, with paths in it, and half of one is of no use.
pub(crate) const MAX_WARNING_CHARS: usize = 600;

/// Where an imported session came from, and how much of it is somebody else's. Nothing for a session that began here.
pub(crate) fn imported(mark: &ImportMark) -> Option<String> {
    match (mark.seq, mark.foreign_through) {
        (0, _) => None,
        (_, 0) => Some("from a file, as a session of your own".to_owned()),
        (_, last) => Some(format!("from a file: up to record {}, its user is somebody else", grouped(last))),
    }
}

/// What people want to know while a turn runs, besides its answer; one line.
pub(crate) fn aside(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::ToolStarted { name, arguments, .. } => {
            format!("· {} {}", shortened(name, 60), shortened(arguments, 90))
        }
        EventKind::ToolFinished { name, is_error: true, content, .. } => {
            format!("✗ {}: {}", shortened(name, 60), shortened(content, 200))
        }
        EventKind::ToolFinished { name, content, .. } if name == "exec" => format!("✗ {}", ended(content)?),
        EventKind::Warning { code, text } if code == "resumed" => shortened(text, 200),
        EventKind::Warning { text, .. } => format!("warning: {}", shortened(text, MAX_WARNING_CHARS)),
        EventKind::RetryWait { .. } => wait(kind)?,
        EventKind::ModelChanged { .. } => model_change(kind)?,
        EventKind::Question { text, .. } => question(text),
        EventKind::TaskStarted { task_id, description } => {
            format!("· task {} goes on in the background: {}", short(*task_id), shortened(description, 90))
        }
        EventKind::TaskEnded { task_id, status, exit_code } => {
            let mark = if *status == TaskStatus::Completed { "·" } else { "✗" };
            format!("{mark} {}", task(*task_id, *status, *exit_code))
        }
        EventKind::CompactStart { reason } => {
            format!("the context is made smaller: {}", why_smaller(reason))
        }
        EventKind::CompactDone { by, before, after, .. } => {
            let became =
                if after < before { "was made smaller" } else { "was compacted, but is not smaller" };
            let (before, after) = (grouped(*before), grouped(*after));
            format!("the context {became}: {before} → {after} tokens, {}", made_by(*by))
        }
        EventKind::MemoryChanged { pages } => {
            format!("memory: {} changed (longhaul memory log)", shortened(&pages.join(", "), 200))
        }
        EventKind::CompactFailed { reason } => {
            format!("the context could not be made smaller: {}", shortened(reason, 200))
        }
        EventKind::Imported { work_dir, mine } => {
            let whose = if *mine { "" } else { " from another user" };
            let folder = work_dir.as_ref().map(|folder| format!("; it works in {}", shortened(folder, 200)));
            let folder = folder.unwrap_or_default();
            format!("· the session was imported{whose}{folder}; whatever was unfinished was stopped")
        }
        _ => return None,
    })
}

/// What only those want to know who want to know everything.
pub(crate) fn aside_in_detail(kind: &EventKind) -> Option<String> {
    Some(match kind {
        EventKind::Note { text } => format!("note: {}", shortened(text, 400)),
        EventKind::Notification { task_id } => {
            format!("· the agent is told of the end of task {}", short(*task_id))
        }
        EventKind::Answered { id } => format!("· question {id} is settled"),
        EventKind::ExtractDone { through } => {
            format!("· the session is gone through for memory up to record {through}")
        }
        _ => return None,
    })
}

/// Why a context is made smaller, for people.
fn why_smaller(reason: &str) -> String {
    match reason {
        "before_turn" => "it is nearly full, and a turn begins".to_owned(),
        "within_turn" => "it is nearly full, and the turn goes on".to_owned(),
        "idle" => "it is rather full, and nobody waits".to_owned(),
        "overflow" => "the model says that it is too long".to_owned(),
        "asked" => "somebody asked for it".to_owned(),
        other => shortened(other, 90),
    }
}

/// How it was made smaller.
pub(crate) fn made_by(by: CompactedBy) -> &'static str {
    match by {
        CompactedBy::Model => "by a summary",
        CompactedBy::Rule => "by rule",
    }
}

/// How a task is, or ended: `task 3f9k2a failed, exit code 3`.
pub(crate) fn task(id: TaskId, status: TaskStatus, exit_code: Option<i32>) -> String {
    let is = match status {
        TaskStatus::Running => "is running",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "was killed",
        TaskStatus::TimedOut => "ran out of time and was ended",
        TaskStatus::Lost => "is lost: its keeper died, and how it ended is not known",
    };
    let code = exit_code.filter(|_| status == TaskStatus::Failed);
    let code = code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    format!("task {} {is}{code}", short(id))
}

/// A part of an output that is not there any more.
pub(crate) fn dropped(range: &Range<u64>) -> String {
    let (bytes, from) = (grouped(range.end - range.start), grouped(range.start));
    format!("[{bytes} bytes, from byte {from} on, were printed here and not kept]")
}

/// A wait before a retry: `throttled: waiting 3 s, retry 1 of 4: …`.
pub(crate) fn wait(kind: &EventKind) -> Option<String> {
    let EventKind::RetryWait { class, attempt, of, delay_ms, reason } = kind else { return None };
    let of = if *of > 0 { format!(" of {of}") } else { String::new() };
    let (delay, reason) = (duration(*delay_ms), shortened(reason, 300));
    Some(format!("{}: waiting {delay}, retry {attempt}{of}: {reason}", class.replace('_', " ")))
}

/// That another model answers from here on.
pub(crate) fn model_change(kind: &EventKind) -> Option<String> {
    let EventKind::ModelChanged { from, to, reason } = kind else { return None };
    Some(format!(
        "model: {} instead of {}: {}",
        shortened(to, 100),
        shortened(from, 100),
        shortened(reason, 200)
    ))
}

/// How a command ended, if not as it should. One that goes on has not: that it does is told with its task.
pub(crate) fn ended(content: &str) -> Option<String> {
    let result: serde_json::Value = serde_json::from_str(content).ok()?;
    let is_fine = |status: &str| matches!(status, "completed" | "background_started" | "auto_backgrounded");
    let status = result["status"].as_str().filter(|status| !is_fine(status))?;
    let code = result["exit_code"].as_i64().map(|code| format!(", exit code {code}")).unwrap_or_default();
    Some(format!("exec {status}{code}"))
}

/// That commands are not held to the scope, for whoever begins something.
pub(crate) fn not_enforced(why: &str) -> String {
    format!(
        "commands can't be held to the scope here, and sandbox.unavailable says what becomes of them. {why}"
    )
}

/// A time for people: `0.2 s`, `3 s`, `2 min 5 s`, `1 h 20 min`.
pub(crate) fn duration(milliseconds: u64) -> String {
    let seconds = milliseconds.div_ceil(1_000);
    match (milliseconds, seconds) {
        (0..950, _) => format!("0.{} s", milliseconds.div_ceil(100)),
        (_, 0..=90) => format!("{seconds} s"),
        (_, 91..=5_400) => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// How a turn ended that did not complete, with what was wrong.
pub(crate) fn end_of_turn(outcome: Outcome, error: Option<&str>) -> Option<String> {
    let error = error.map(|error| format!(": {}", safe(error))).unwrap_or_default();
    match outcome {
        Outcome::Completed => None,
        Outcome::Cancelled => Some("the turn is cancelled".to_owned()),
        Outcome::Failed => Some(format!("the turn failed{error}")),
        Outcome::Limit => Some(format!("{}{error}", in_words(outcome))),
    }
}

#[cfg(test)]
#[path = "event_text_tests.rs"]
mod tests;
