//! Whether a call may run: by the rules, by what a person said, and by whether commands can be held to the scope.

use longhaul_protocol::{Question, QuestionId};
use longhaul_tools::{Action, Verdict};
use serde_json::Value;

use crate::WithoutSandbox;
use crate::state::CallState;
use crate::worker::Worker;

/// Of what is asked about, so many characters are shown.
const LONGEST_SHOWN: usize = 8 << 10;
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
        if let Some(refused) = call.answer.as_ref().and_then(|answer| refused_by(&answer.words)) {
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
            call.answer
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
    let command = command_of(call);
    let what = command.as_deref().unwrap_or(&call.arguments);
    let mut shown: String = what.chars().take(LONGEST_SHOWN).collect();
    let hidden = what.chars().count().saturating_sub(LONGEST_SHOWN);
    if hidden > 0 {
        shown += &format!(" [… {hidden} more characters are not shown]");
    }
    let besides = if command.is_some() { "" } else { " with" };
    let text = format!("May {} run{besides}: {shown}\n({})", call.name, reasons.join("; "));
    Question { id: QuestionId::generate(), text, call: Some(call.id), reasons }
}

/// The command of a call, with what else it asks for that matters.
fn command_of(call: &CallState) -> Option<String> {
    let arguments: Value = (call.name == EXEC).then(|| serde_json::from_str(&call.arguments).ok())??;
    let mut command = arguments["command"].as_str()?.to_owned();
    if let Some(folder) = arguments["work_dir"].as_str() {
        command += &format!("\n(in {folder})");
    }
    if arguments["run_in_background"] == true {
        command += "\n(in the background)";
    }
    Some(command)
}
