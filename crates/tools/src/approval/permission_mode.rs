//! What a permission mode does with a call that no rule matches.
//!
//! | mode | reads | web pages | the agent's own bookkeeping | edits | commands |
//! | --- | --- | --- | --- | --- | --- |
//! | `ask` | run | ask | run | ask | ask |
//! | `auto-edit` | run | ask | run | run | ask |
//! | `auto` | run | run | run | run | run |
//! | `plan` | run | ask | run | refused | refused |
//!
//! Fetching a page changes nothing, but its address can carry out what the agent has read. Where commands ask, which could do the same, it asks,
//! too: once for each host, with the answer `always`. A search goes only to the searcher that the user configured, so it is a plain read.
//!
//! The class of a call comes from the [`Effect`] of its tool. An idempotent tool keeps the agent's own books: the todo list, notes, ending
//! its own tasks. It changes no file and runs no command.

use longhaul_protocol::{Effect, PermissionMode};

use super::{ApprovalAction, ApprovalPolicy, ApprovalVerdict, ToolApprovalRule, WEB_FETCH};

/// Why the modes `ask` and `auto-edit` ask. The same in both, so that a yes stays one when the user goes from one to the other.
const ASKS_BEFORE_EDITS: &str = "the permission mode asks before edits";
const ASKS_BEFORE_COMMANDS: &str = "the permission mode asks before commands";
const ASKS_BEFORE_FETCHES: &str = "the permission mode asks before pages are fetched";
const REFUSED_IN_PLAN: &str = "plan mode is on, and only reads run in it";

/// Commands that only read, whatever their arguments. Options with which one of them runs a program ask.
/// Git is not among them: the config of a repository, which may be a folder of the project, names programs that even `git status` runs.
const READING_COMMANDS: [&str; 8] = ["ls *", "pwd *", "cat *", "head *", "tail *", "wc *", "grep *", "rg *"];
const RUNNING_OPTIONS: [&str; 2] = ["rg --pre*", "rg --hostname-bin*"];

/// Commands that ask how things are. Not permitted by themselves, see above.
const LOOKING_COMMANDS: [&str; 22] = [
    "date *",
    "df *",
    "du *",
    "echo *",
    "free *",
    "ps *",
    "stat *",
    "uptime *",
    "git status *",
    "git log *",
    "git diff *",
    "git show *",
    "gh issue list *",
    "gh issue view *",
    "gh pr checks *",
    "gh pr diff *",
    "gh pr list *",
    "gh pr status *",
    "gh pr view *",
    "gh run list *",
    "gh run view *",
    "gh status *",
];
/// Options with which one of those changes something.
const CHANGING_OPTIONS: [&str; 4] = ["date -s*", "date --set*", "git --output*", "git --ext-diff*"];

/// A call, for the rules and the mode.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCall<'a> {
    pub mode: PermissionMode,
    /// The effect of the tool.
    pub effect: Effect,
    pub tool: &'a str,
    /// JSON.
    pub arguments: &'a str,
    /// Whether the sandbox holds commands to the scope. Then a command that only reads can't read more than the file tools can.
    pub is_sandboxed: bool,
}

impl ApprovalPolicy {
    /// Judges a call in a permission mode. Rules win over the mode, except in plan mode: there nothing but reads runs.
    pub fn judge_in_mode(&self, call: &JudgedCall<'_>) -> ApprovalVerdict {
        let (action, reason) = action_of_mode(call.mode, call.effect, call.tool);
        if action == ApprovalAction::Deny {
            return ApprovalVerdict { action, reason: reason.to_owned() };
        }
        // The stricter of the mode and the configured default applies where no rule matches.
        if action <= self.default || (call.is_sandboxed && only_reads(call)) {
            return self.judge(call.tool, call.arguments);
        }
        self.with_default(action, reason).judge(call.tool, call.arguments)
    }
}

/// What the mode does with calls of this effect, and why.
fn action_of_mode(mode: PermissionMode, effect: Effect, tool: &str) -> (ApprovalAction, &'static str) {
    if tool == WEB_FETCH && mode != PermissionMode::Auto {
        return (ApprovalAction::Ask, ASKS_BEFORE_FETCHES);
    }
    let is_edit = match effect {
        Effect::Read | Effect::Idempotent => return (ApprovalAction::Auto, ""),
        Effect::CheckedWrite => true,
        Effect::Command | Effect::Unknown => false,
    };
    match (mode, is_edit) {
        (PermissionMode::Auto, _) | (PermissionMode::AutoEdit, true) => (ApprovalAction::Auto, ""),
        (PermissionMode::Ask, true) => (ApprovalAction::Ask, ASKS_BEFORE_EDITS),
        (PermissionMode::Ask | PermissionMode::AutoEdit, false) => {
            (ApprovalAction::Ask, ASKS_BEFORE_COMMANDS)
        }
        (PermissionMode::Plan, _) => (ApprovalAction::Deny, REFUSED_IN_PLAN),
    }
}

/// Whether a command line certainly does nothing but read.
fn only_reads(call: &JudgedCall<'_>) -> bool {
    call.effect == Effect::Command
        && has_only(call.tool, call.arguments, READING_COMMANDS.iter(), RUNNING_OPTIONS.iter())
}

/// Whether a command line changes nothing that anybody would want to remember: it reads, or asks a program how things are. It may run
/// programs that a project's config names, so this permits nothing.
pub fn only_looks(tool: &str, arguments: &str) -> bool {
    let commands = READING_COMMANDS.iter().chain(&LOOKING_COMMANDS);
    has_only(tool, arguments, commands, RUNNING_OPTIONS.iter().chain(&CHANGING_OPTIONS))
}

/// Whether a command line has only these commands, without these options.
fn has_only<'a>(
    tool: &str,
    arguments: &str,
    commands: impl Iterator<Item = &'a &'a str>,
    options: impl Iterator<Item = &'a &'a str>,
) -> bool {
    let rule = |command: &str, action| ToolApprovalRule {
        tool: tool.to_owned(),
        command: Some(command.to_owned()),
        host: None,
        action,
    };
    let commands = commands.map(|command| rule(command, ApprovalAction::Auto));
    let options = options.map(|command| rule(command, ApprovalAction::Ask));
    ApprovalPolicy::new(ApprovalAction::Ask, commands.chain(options).collect())
        .is_ok_and(|policy| policy.judge(tool, arguments).action == ApprovalAction::Auto)
}

#[cfg(test)]
#[path = "permission_mode_tests.rs"]
mod tests;
