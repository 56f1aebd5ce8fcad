//! Notices: what people want to know beside the answer, one line each. Every surface uses the same words.

use longhaul_protocol::{CompactedBy, OrderKind, Outcome, PermissionMode, TaskId, TaskStatus};

use crate::block::{Block, BlockContent, BlockState, Call, CallResult, CompactionOutcome, Retry, Update};
use crate::call::call_summary;
use crate::call::command_result::CommandResult;
use crate::text::{format_count, format_duration, format_number, outcome_text, sanitize, short_id, truncate};

/// Characters of a warning that are shown. Some name a command with paths to type, and half of one is of no use.
pub(crate) const MAX_WARNING_CHARS: usize = 600;

/// The mark of an input that no step has shown to the model.
pub(crate) const WAITING_INPUT: &str = "waiting: the model has not got it yet";

/// The notice of an input that no turn takes any more.
pub(crate) const WITHDRAWN_INPUT: &str = "· a message was taken back before it was read";

const MAX_NAME_CHARS: usize = 60;
const MAX_ARGUMENT_CHARS: usize = 90;
const MAX_DESCRIPTION_CHARS: usize = 90;
const MAX_REASON_CHARS: usize = 200;

/// How much is worth a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verbosity {
    Normal,
    /// Also what concerns the model more than the user: notes to it, notifications, settled questions.
    Verbose,
}

impl Verbosity {
    /// By how often the user gave `--verbose`.
    pub fn from_count(count: u8) -> Self {
        if count > 0 { Self::Verbose } else { Self::Normal }
    }
}

/// The notice for an update, if it is worth one. Messages and reasoning are no notices.
pub fn notice_text(update: &Update, verbosity: Verbosity) -> Option<String> {
    match update {
        Update::Started(block) => start_notice(&block.content),
        Update::Appended { .. } => None,
        Update::Ended(block) => {
            let verbose = || verbose_notice(block).filter(|_| verbosity == Verbosity::Verbose);
            end_notice(&block.content).or_else(verbose)
        }
    }
}

fn start_notice(content: &BlockContent) -> Option<String> {
    Some(match content {
        BlockContent::Call(call) => format!("· {}", call_text(call)),
        BlockContent::Retry(retry) => retry_text(retry),
        BlockContent::Question { text, diff, .. } => {
            let diff = diff.as_deref().map(|diff| format!("\n{}", sanitize(diff.trim_end())));
            question_text(text.as_deref().unwrap_or_default()) + &diff.unwrap_or_default()
        }
        BlockContent::Task { task, description, .. } => {
            format!("· {}", task_start_text(*task, description.as_deref().unwrap_or_default()))
        }
        BlockContent::Compaction { reason, .. } => {
            let reason = compaction_reason_text(reason.as_deref().unwrap_or_default());
            format!("compacting the context: {reason}")
        }
        _ => return None,
    })
}

fn end_notice(content: &BlockContent) -> Option<String> {
    Some(match content {
        BlockContent::Call(Call { name, result: Some(result), .. }) if result.is_error => {
            let content = truncate(&result.content, MAX_REASON_CHARS);
            format!("✗ {}: {content}", truncate(name, MAX_NAME_CHARS))
        }
        BlockContent::Call(Call { name, result: Some(CallResult { content, .. }), .. }) if name == "exec" => {
            format!("✗ {}", command_failure_text(content)?)
        }
        BlockContent::Task { task, status, exit_code, .. } => {
            let mark = if *status == TaskStatus::Completed { "·" } else { "✗" };
            format!("{mark} {}", task_text(*task, *status, *exit_code))
        }
        BlockContent::Question { answer: Some(answer), .. } => {
            format!("answer: {}", truncate(answer, MAX_REASON_CHARS))
        }
        BlockContent::Compaction { outcome: Some(outcome), .. } => compaction_outcome_text(outcome),
        BlockContent::Warning { code, text } if code == "resumed" => truncate(text, MAX_REASON_CHARS),
        BlockContent::Warning { text, .. } => format!("warning: {}", truncate(text, MAX_WARNING_CHARS)),
        BlockContent::WithdrawnInput => WITHDRAWN_INPUT.to_owned(),
        BlockContent::ModeChange { from, to } => mode_change_text(*from, *to),
        BlockContent::ModelChange { from, to, reason } => model_change_text(from, to, reason),
        BlockContent::Model { name } => format!("model: {}", truncate(name, 100)),
        BlockContent::MemoryChange { pages } => memory_change_text(pages),
        BlockContent::Import { work_dir, mine } => import_text(work_dir.as_deref(), *mine),
        BlockContent::PromptChange => "the system prompt or the tools changed".to_owned(),
        BlockContent::Stubs { results } => {
            let results = format_count(*results as u64, "old result");
            format!("{results} shortened to make room")
        }
        BlockContent::AttemptFailure { error } => {
            format!("✗ no answer: {}", truncate(error, MAX_REASON_CHARS))
        }
        BlockContent::Order(order) => order_text(order)?,
        BlockContent::UnfinishedTurn { turn } => format!("turn {turn} is unfinished"),
        _ => return None,
    })
}

fn verbose_notice(block: &Block) -> Option<String> {
    Some(match &block.content {
        BlockContent::Note { text } => format!("note: {}", truncate(text, 400)),
        BlockContent::Notification { task } => {
            format!("· told the agent that task {} ended", short_id(*task))
        }
        BlockContent::Question { question, .. } if block.state == BlockState::Finished => {
            format!("· question {question} answered")
        }
        BlockContent::Extraction { through } => {
            format!("· memory: read the session up to entry {through}")
        }
        _ => return None,
    })
}

/// `exec  ls`: a call as the terminal shows it.
pub fn call_text(call: &Call) -> String {
    let summary = truncate(&call_summary(call), MAX_ARGUMENT_CHARS);
    format!("{}  {summary}", truncate(&call.name, MAX_NAME_CHARS)).trim_end().to_owned()
}

/// How a command ended, unless it completed or goes on in the background: its task tells the rest.
pub(crate) fn command_failure_text(content: &str) -> Option<String> {
    let result = CommandResult::parse(content)?;
    let status = result.status();
    let code = result.exit_code().map(|code| format!(", exit code {code}")).unwrap_or_default();
    let is_ok = matches!(status, "completed" | "background_started" | "auto_backgrounded");
    (!is_ok).then(|| format!("exec {}{code}", truncate(status, MAX_NAME_CHARS)))
}

/// `throttled: waiting 3 s, retry 1 of 4: …`.
pub(crate) fn retry_text(retry: &Retry) -> String {
    let of = if retry.max_attempts > 0 { format!(" of {}", retry.max_attempts) } else { String::new() };
    let (delay, reason) = (format_duration(retry.delay_ms), truncate(&retry.reason, 300));
    format!("{}: waiting {delay}, retry {}{of}: {reason}", retry.class.replace('_', " "), retry.attempt)
}

/// What the new mode does, in one line.
pub fn mode_change_text(from: PermissionMode, to: PermissionMode) -> String {
    let meaning = match to {
        PermissionMode::Ask => "edits and commands ask first",
        PermissionMode::AutoEdit => "commands ask first, edits don't",
        PermissionMode::Auto => "nothing asks, unless a rule does",
        PermissionMode::Plan => "nothing is changed or run until you accept a plan",
    };
    format!("mode: {to} instead of {from}: {meaning}")
}

pub(crate) fn model_change_text(from: &str, to: &str, reason: &str) -> String {
    let (from, to) = (truncate(from, 100), truncate(to, 100));
    format!("model: switched from {from} to {to}: {}", truncate(reason, MAX_REASON_CHARS))
}

/// The whole question, on as many lines as it has: a user who approves something must see it to its end. The agent bounds it.
pub fn question_text(text: &str) -> String {
    format!("question: {}", sanitize(text.trim_end()).replace('\n', "\n  "))
}

pub(crate) fn task_start_text(task: TaskId, description: &str) -> String {
    let description = truncate(description, MAX_DESCRIPTION_CHARS);
    format!("task {} runs in the background: {description}", short_id(task))
}

/// The state of a task: `task 3f9k2a failed, exit code 3`.
pub fn task_text(id: TaskId, status: TaskStatus, exit_code: Option<i32>) -> String {
    let is = match status {
        TaskStatus::Running => "is running",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "was killed",
        TaskStatus::TimedOut => "timed out and was killed",
        TaskStatus::Lost => "was lost: how it ended is unknown",
    };
    let code = exit_code.filter(|_| status == TaskStatus::Failed);
    let code = code.map(|code| format!(", exit code {code}")).unwrap_or_default();
    format!("task {} {is}{code}", short_id(id))
}

fn compaction_reason_text(reason: &str) -> String {
    match reason {
        "before_turn" => "nearly full at the start of a turn".to_owned(),
        "within_turn" => "nearly full in the middle of a turn".to_owned(),
        "idle" => "filling up, and the session is idle".to_owned(),
        "overflow" => "too long for the model".to_owned(),
        "asked" => "requested".to_owned(),
        other => truncate(other, 90),
    }
}

fn compaction_outcome_text(outcome: &CompactionOutcome) -> String {
    match outcome {
        CompactionOutcome::Done { by, before, after, .. } => {
            let became = if after < before {
                "compacted the context"
            } else {
                "compacted the context, but it is no smaller"
            };
            let (before, after) = (format_number(*before), format_number(*after));
            format!("{became}: {before} → {after} tokens, {}", compacted_by_text(*by))
        }
        CompactionOutcome::Failed { reason } => {
            format!("could not compact the context: {}", truncate(reason, MAX_REASON_CHARS))
        }
    }
}

pub fn compacted_by_text(by: CompactedBy) -> &'static str {
    match by {
        CompactedBy::Model => "by a summary",
        CompactedBy::Rule => "by dropping old turns",
    }
}

pub(crate) fn memory_change_text(pages: &[String]) -> String {
    format!("memory: updated {} (see `longhaul memory log`)", truncate(&pages.join(", "), MAX_REASON_CHARS))
}

fn import_text(work_dir: Option<&str>, mine: bool) -> String {
    let whose = if mine { "" } else { " from another user" };
    let folder = work_dir.map(|folder| format!("; it works in {}", truncate(folder, 200)));
    let folder = folder.unwrap_or_default();
    format!("· session imported{whose}{folder}; unfinished work was stopped")
}

/// What a user asked of the session. Answers, changes of mode, compactions and withdrawals have notices of their own.
fn order_text(order: &OrderKind) -> Option<String> {
    Some(match order {
        OrderKind::Cancel => "· the user asked to cancel".to_owned(),
        OrderKind::Retry => "· the user asked to retry".to_owned(),
        OrderKind::Continue => "· the user asked to continue the answer".to_owned(),
        OrderKind::Kill { task } => format!("· the user killed task {}", short_id(*task)),
        OrderKind::AddContext { text } => {
            format!("· the user ran a command and showed it to the model\n{text}")
        }
        OrderKind::Remember { token: Some(token), .. } => format!("· the token {token:?} asked to remember"),
        OrderKind::Remember { .. } => "· the user asked to remember".to_owned(),
        OrderKind::Compact { .. }
        | OrderKind::Answer { .. }
        | OrderKind::Mode { .. }
        | OrderKind::Withdraw { .. }
        | OrderKind::Unknown => return None,
    })
}

/// How a turn ended that did not complete, with its error.
pub fn turn_failure_text(outcome: Outcome, error: Option<&str>) -> Option<String> {
    let error = error.map(|error| format!(": {}", sanitize(error))).unwrap_or_default();
    match outcome {
        Outcome::Completed => None,
        Outcome::Cancelled => Some("turn cancelled".to_owned()),
        Outcome::Failed => Some(format!("turn failed{error}")),
        Outcome::Limit => Some(format!("{}{error}", outcome_text(outcome))),
    }
}

#[cfg(test)]
#[path = "notice_tests.rs"]
mod tests;
