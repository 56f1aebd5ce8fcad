//! Whether a call may run. This depends on the approval rules, the user's answer, and whether the sandbox works here.

use std::path::Path;

use longhaul_protocol::{PrintablePath, Question, QuestionId};
use longhaul_tools::{ApprovalAction, ApprovalVerdict};
use serde_json::Value;

use crate::config::WithoutSandbox;
use crate::session::state::CallState;
use crate::worker::Worker;

/// The most characters of a command or of arguments to show in the question.
const MAX_SHOWN_CHARS: usize = 8 << 10;
/// Longer runs of spaces or empty lines are shown as a count.
const MAX_BLANKS: usize = 40;
const MAX_EMPTY_LINES: usize = 2;
/// The tool that runs in the sandbox.
const EXEC: &str = "exec";

/// Whether a call may run.
pub(super) enum CallPermission {
    Granted,
    Refused(String),
    /// The user has to approve it.
    Ask(Question),
}

/// Whether a call that has not begun may run. `caution` is a reason to ask the user whatever the rules say.
pub(super) async fn check_permission(
    worker: &Worker,
    call: &CallState,
    caution: Option<&str>,
) -> CallPermission {
    if let Some(refused) = call.approval.as_ref().and_then(|answer| refusal(&answer.text)) {
        return refused;
    }
    // The current rules decide, even about a call that the user approved under earlier ones. Also, a link may have
    // been created on its path since the question.
    let ApprovalVerdict { action, reason } = worker.runtime().approvals.judge(&call.name, &call.arguments);
    let mut reasons = match action {
        ApprovalAction::Auto => vec![],
        ApprovalAction::Ask => vec![reason],
        ApprovalAction::Deny => {
            return CallPermission::Refused(format!("not run: {reason}; do it another way, or ask the user"));
        }
    };
    reasons.extend(caution.map(str::to_owned));
    let unenforced = if call.name == EXEC { worker.runtime().not_enforced().await } else { None };
    if let Some(reason) = unenforced {
        match worker.runtime().config.settings.sandbox.unavailable {
            WithoutSandbox::Allow => {}
            WithoutSandbox::Ask => reasons.push(format!("it would run without bounds: {reason}")),
            WithoutSandbox::Refuse => {
                let policy = "sandbox.unavailable is \"refuse\"; ask the user";
                return CallPermission::Refused(format!("not run: {reason}, and {policy}"));
            }
        }
    }
    // Questions of earlier versions have no recorded reasons. Their only reasons were the rules.
    let is_approved = |reason: &String| {
        let is_caution = caution == Some(reason.as_str());
        call.approval
            .as_ref()
            .is_some_and(|yes| yes.reasons.contains(reason) || (yes.reasons.is_empty() && !is_caution))
    };
    // A call that began before a crash had its permission then.
    if call.started.is_some() || reasons.iter().all(is_approved) {
        CallPermission::Granted
    } else {
        CallPermission::Ask(approval_question(call, reasons))
    }
}

/// The refusal in the user's answer, unless it is a yes.
fn refusal(answer: &str) -> Option<CallPermission> {
    let answer = answer.trim();
    let is = |words: &[&str]| words.iter().any(|word| answer.eq_ignore_ascii_case(word));
    if is(&["yes", "y"]) {
        None
    } else if is(&["no", "n", ""]) {
        Some(CallPermission::Refused("not run: the user said no".to_owned()))
    } else {
        Some(CallPermission::Refused(format!("not run: the user did not say yes, but: {answer}")))
    }
}

/// The question to the user. It shows the command first and in full, because the user must see what a yes allows.
fn approval_question(call: &CallState, reasons: Vec<String>) -> Question {
    let arguments =
        (call.name == EXEC).then(|| serde_json::from_str::<Value>(&call.arguments).ok()).flatten();
    let command = arguments.as_ref().and_then(|arguments| Some((arguments, arguments["command"].as_str()?)));
    let what = match command {
        Some((arguments, command)) => show_command(command) + &show_options(arguments),
        None => format!(" with{}", show_command(&call.arguments)),
    };
    let why = on_one_line(&reasons.join("; "));
    let text = format!("May {} run{what}\n({why})", call.name);
    Question { id: QuestionId::generate(), text, call: Some(call.id), reasons }
}

/// The folder of a command, and whether it runs in the background.
fn show_options(arguments: &Value) -> String {
    let folder = arguments["work_dir"].as_str();
    let folder = folder.map(|folder| format!("\n(in {})", Path::new(folder).printable()));
    let background = (arguments["run_in_background"] == true).then_some("\n(in the background)");
    folder.unwrap_or_default() + background.unwrap_or_default()
}

/// A command in the form that the question shows: on one line, or with a bar before each line, so that no line looks
/// like a part of the question. Empty lines are shown as a count, so that they can't push anything out of sight.
fn show_command(command: &str) -> String {
    let shown: String = command.chars().take(MAX_SHOWN_CHARS).collect();
    let mut rows = Vec::new();
    for lines in
        shown.trim_end().lines().collect::<Vec<_>>().chunk_by(|one, next| is_blank(one) == is_blank(next))
    {
        match lines {
            [first, ..] if is_blank(first) && lines.len() > MAX_EMPTY_LINES => {
                rows.push(format!("({} empty lines)", lines.len()));
            }
            lines => rows.extend(lines.iter().map(|line| on_one_line(line))),
        }
    }
    let hidden = command.chars().count().saturating_sub(MAX_SHOWN_CHARS);
    if hidden > 0 {
        rows.push(format!("[… {hidden} more characters are not shown]"));
    }
    match rows.as_slice() {
        [row] => format!(": {row}"),
        rows => {
            let lines = match command.trim_end().lines().count() {
                1 => "1 line".to_owned(),
                several => format!("{several} lines"),
            };
            format!(" ({lines}):\n│ {}", rows.join("\n│ "))
        }
    }
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// A text on one line, with long runs of spaces shown as a count.
fn on_one_line(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let runs = letters.chunk_by(|one, next| one.is_whitespace() == next.is_whitespace());
    let shown = runs.map(|run| match run.first() {
        Some(blank) if blank.is_whitespace() && run.len() > MAX_BLANKS => format!(" ({} blanks) ", run.len()),
        _ => run.iter().map(|letter| if *letter == '\n' { '⏎' } else { *letter }).collect(),
    });
    shown.collect()
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
