//! Whether a call may run: by the rules, by what a person said, and by whether commands can be held to the scope.

use std::path::Path;

use longhaul_protocol::{PrintablePath, Question, QuestionId};
use longhaul_tools::{Action, Verdict};
use serde_json::Value;

use crate::WithoutSandbox;
use crate::session::state::CallState;
use crate::worker::Worker;

/// Of what is asked about, so many characters are shown.
const LONGEST_SHOWN: usize = 8 << 10;
/// More blanks in a row, and lines in a row with nothing in them, are only counted.
const MAX_BLANKS: usize = 40;
const MAX_EMPTY_LINES: usize = 2;
/// The tool that the sandbox is for.
const EXEC: &str = "exec";

/// Whether a call may run.
pub(crate) enum Permission {
    Given,
    Refused(String),
    /// A person has to say.
    Asked(Question),
}

impl Worker {
    /// Whether a call may run that was checked and has not begun. `caution` is why a person has to agree whatever the rules say.
    pub(crate) async fn permission(&self, call: &CallState, caution: Option<&str>) -> Permission {
        if let Some(refused) = call.approval.as_ref().and_then(|answer| refused_by(&answer.text)) {
            return refused;
        }
        // The policy in force now decides, also about a call that a person approved under an earlier one; and a link may have been put on its
        // path since the question.
        let Verdict { action, reason } = self.runtime.approvals.judge(&call.name, &call.arguments);
        let mut reasons = match action {
            Action::Auto => vec![],
            Action::Ask => vec![reason],
            Action::Deny => {
                return Permission::Refused(format!("not run: {reason}; do it another way, or ask the user"));
            }
        };
        reasons.extend(caution.map(str::to_owned));
        if let Some(why) = self.without_bounds(call).await {
            match self.runtime.config.settings.sandbox.unavailable {
                WithoutSandbox::Allow => {}
                WithoutSandbox::Ask => reasons.push(format!("it would run without bounds: {why}")),
                WithoutSandbox::Refuse => {
                    let policy = "sandbox.unavailable is \"refuse\"; ask the user";
                    return Permission::Refused(format!("not run: {why}, and {policy}"));
                }
            }
        }
        // One that began before a crash was allowed then, and its start is on record: it can't be asked about any more.
        // Questions of earlier versions have no reasons on record. Theirs were those of the policy.
        let is_covered = |reason: &String| {
            let is_caution = caution == Some(reason.as_str());
            call.approval
                .as_ref()
                .is_some_and(|yes| yes.reasons.contains(reason) || (yes.reasons.is_empty() && !is_caution))
        };
        if call.started.is_some() || reasons.iter().all(is_covered) {
            Permission::Given
        } else {
            Permission::Asked(question(call, reasons))
        }
    }

    /// Why a command could not be held to the scope here, if it is one and should be.
    async fn without_bounds(&self, call: &CallState) -> Option<String> {
        if call.name == EXEC { self.runtime.not_enforced().await } else { None }
    }
}

/// The refusal in a person's answer, unless it is a yes.
fn refused_by(answer: &str) -> Option<Permission> {
    let said = answer.trim();
    let is = |words: &[&str]| words.iter().any(|word| said.eq_ignore_ascii_case(word));
    if is(&["yes", "y"]) {
        None
    } else if is(&["no", "n", ""]) {
        Some(Permission::Refused("not run: the user said no".to_owned()))
    } else {
        Some(Permission::Refused(format!("not run: the user did not say yes, but: {said}")))
    }
}

/// What a person is asked. A command stands first and whole: nobody should say yes to what they can't see.
fn question(call: &CallState, reasons: Vec<String>) -> Question {
    let arguments =
        (call.name == EXEC).then(|| serde_json::from_str::<Value>(&call.arguments).ok()).flatten();
    let command = arguments.as_ref().and_then(|arguments| Some((arguments, arguments["command"].as_str()?)));
    let what = match command {
        Some((arguments, command)) => in_sight(command) + &besides(arguments),
        None => format!(" with{}", in_sight(&call.arguments)),
    };
    let why = on_one_line(&reasons.join("; "));
    let text = format!("May {} run{what}\n({why})", call.name);
    Question { id: QuestionId::generate(), text, call: Some(call.id), reasons }
}

/// What else a command asks for that matters.
fn besides(arguments: &Value) -> String {
    let folder = arguments["work_dir"].as_str();
    let folder = folder.map(|folder| format!("\n(in {})", Path::new(folder).printable()));
    let background = (arguments["run_in_background"] == true).then_some("\n(in the background)");
    folder.unwrap_or_default() + background.unwrap_or_default()
}

/// A command as a person is asked about it: on one line, or with a bar before each of its lines, so that none of them passes for words of the
/// program. What is empty is counted, so that it pushes nothing out of sight.
fn in_sight(command: &str) -> String {
    let shown: String = command.chars().take(LONGEST_SHOWN).collect();
    let mut rows = Vec::new();
    for lines in
        shown.trim_end().lines().collect::<Vec<_>>().chunk_by(|one, next| is_empty(one) == is_empty(next))
    {
        match lines {
            [first, ..] if is_empty(first) && lines.len() > MAX_EMPTY_LINES => {
                rows.push(format!("({} empty lines)", lines.len()));
            }
            lines => rows.extend(lines.iter().map(|line| on_one_line(line))),
        }
    }
    let hidden = command.chars().count().saturating_sub(LONGEST_SHOWN);
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

fn is_empty(line: &str) -> bool {
    line.trim().is_empty()
}

/// A text without ends of lines, in which many blanks in a row are counted.
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
