//! Whether a call may run: by the rules, by what a person said, and by whether commands can be held to the scope.

use longhaul_protocol::{Question, QuestionId};
use longhaul_tools::{Action, Verdict};

use crate::state::CallState;
use crate::worker::Worker;
use crate::{SandboxMode, WithoutSandbox};

/// Of what is asked about, so much is shown.
const LONGEST_ARGUMENTS: usize = 500;
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
    /// Whether a call may run that was checked and has not begun.
    pub(crate) async fn permission(&self, call: &CallState) -> Permission {
        // It began before a crash, so somebody had said yes.
        if call.started.is_some() {
            return Permission::Given;
        }
        if let Some(answer) = &call.answer {
            return by_answer(answer);
        }
        let Verdict { action, reason } = self.runtime.approvals.judge(&call.name, &call.arguments);
        match action {
            Action::Deny => {
                Permission::Refused(format!("not run: {reason}; do it another way, or ask the user"))
            }
            Action::Ask => Permission::Asked(question(call, &reason)),
            Action::Auto => self.without_bounds(call).await,
        }
    }

    /// Commands that can't be held to the scope here.
    async fn without_bounds(&self, call: &CallState) -> Permission {
        let settings = &self.runtime.config.settings.sandbox;
        if call.name != EXEC || settings.mode == SandboxMode::Off {
            return Permission::Given;
        }
        let Some(why) = self.runtime.not_enforced().await else { return Permission::Given };
        match settings.unavailable {
            WithoutSandbox::Allow => Permission::Given,
            WithoutSandbox::Ask => Permission::Asked(question(call, &why)),
            WithoutSandbox::Refuse => Permission::Refused(format!(
                "not run: {why}, and sandbox.unavailable is \"refuse\"; ask the user"
            )),
        }
    }
}

fn by_answer(answer: &str) -> Permission {
    let said = answer.trim();
    let is = |words: &[&str]| words.iter().any(|word| said.eq_ignore_ascii_case(word));
    if is(&["yes", "y"]) {
        Permission::Given
    } else if is(&["no", "n", ""]) {
        Permission::Refused("not run: the user said no".to_owned())
    } else {
        Permission::Refused(format!("not run: the user did not say yes, but: {said}"))
    }
}

fn question(call: &CallState, reason: &str) -> Question {
    let arguments: String = call.arguments.chars().take(LONGEST_ARGUMENTS).collect();
    let cut = if arguments.len() < call.arguments.len() { " …" } else { "" };
    let text = format!("May {} run with {arguments}{cut}? ({reason})", call.name);
    Question { id: QuestionId::generate(), text, call: Some(call.id) }
}
