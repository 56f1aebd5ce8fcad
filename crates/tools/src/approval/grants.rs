//! What the user always allows: which calls a grant covers, and the narrowest grant that a question offers.

use longhaul_protocol::{ApprovalGrant, SCHEDULE};
use serde::Deserialize;

use super::{ApprovalAction, ApprovalPolicy, EXEC_TOOL, ToolApprovalRule, fetched_host};

/// Commands that people repeat with other arguments, and that do the same kind of thing whatever these are. A grant for one of them is a
/// pattern; a grant for any other command is its exact line.
const REPEATED_COMMANDS: [&str; 35] = [
    "cargo bench",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo doc",
    "cargo fmt",
    "cargo nextest run",
    "cargo test",
    "cargo tree",
    "git add",
    "git blame",
    "git commit",
    "git diff",
    "git log",
    "git show",
    "git status",
    "go build",
    "go fmt",
    "go test",
    "go vet",
    "gofmt",
    "jest",
    "mypy",
    "npm run build",
    "npm run lint",
    "npm run test",
    "npm test",
    "pnpm test",
    "pytest",
    "ruff check",
    "ruff format",
    "rustfmt",
    "tsc",
    "vitest run",
    "yarn test",
];

/// The arguments of `exec` that a grant is about.
#[derive(Deserialize)]
struct GrantedCommand {
    command: String,
    work_dir: Option<String>,
}

/// The narrowest sensible grant for calls like this one. `reasons` are the reasons to ask, apart from rules and the mode, that the user
/// would accept with it. `None` for a schedule: a yes to one says nothing about the next.
pub fn suggest_grant(tool: &str, arguments: &str, reasons: Vec<String>) -> Option<ApprovalGrant> {
    if tool == SCHEDULE {
        return None;
    }
    let (command, line, work_dir, host) = (None, None, None, fetched_host(tool, arguments));
    let plain = ApprovalGrant { tool: tool.to_owned(), command, line, work_dir, host, reasons };
    if tool != EXEC_TOOL {
        return Some(plain);
    }
    let GrantedCommand { command, work_dir } = serde_json::from_str(arguments).ok()?;
    if let Some(repeated) = REPEATED_COMMANDS.iter().find(|repeated| begins_with(&command, repeated)) {
        let grant = ApprovalGrant { command: Some(format!("{repeated} *")), ..plain.clone() };
        // The analysis of the line must be certain that nothing else runs.
        if is_granted([&grant], tool, arguments) {
            return Some(grant);
        }
    }
    Some(ApprovalGrant { line: Some(command), work_dir, ..plain })
}

fn begins_with(command: &str, repeated: &str) -> bool {
    let mut words = command.split_whitespace();
    repeated.split(' ').all(|word| words.next() == Some(word))
}

/// Whether the grants together cover a call: for `exec`, every command of its line. Nothing covers a schedule.
pub fn is_granted<'a>(
    grants: impl IntoIterator<Item = &'a ApprovalGrant>,
    tool: &str,
    arguments: &str,
) -> bool {
    if tool == SCHEDULE {
        return false;
    }
    let grants: Vec<&ApprovalGrant> = grants.into_iter().filter(|grant| grant.tool == tool).collect();
    if tool != EXEC_TOOL {
        let host = fetched_host(tool, arguments);
        return grants.iter().any(|grant| {
            grant.command.is_none() && grant.line.is_none() && (grant.host.is_none() || grant.host == host)
        });
    }
    let Ok(GrantedCommand { command, work_dir }) = serde_json::from_str(arguments) else { return false };
    if grants.iter().any(|grant| grant.line.as_ref() == Some(&command) && grant.work_dir == work_dir) {
        return true;
    }
    let patterns = grants.iter().filter_map(|grant| grant.command.clone());
    let rules: Vec<ToolApprovalRule> = patterns
        .map(|command| ToolApprovalRule {
            tool: EXEC_TOOL.to_owned(),
            command: Some(command),
            host: None,
            action: ApprovalAction::Auto,
        })
        .collect();
    !rules.is_empty()
        && ApprovalPolicy::new(ApprovalAction::Ask, rules)
            .is_ok_and(|policy| policy.judge(tool, arguments).action == ApprovalAction::Auto)
}

/// What a grant allows, in words for a person.
pub fn describe_grant(grant: &ApprovalGrant) -> String {
    if let Some(host) = &grant.host {
        return format!("{} from {host}", grant.tool);
    }
    match (&grant.command, &grant.line) {
        (Some(command), _) => format!("{} {command}", grant.tool),
        (None, Some(_)) => "this exact command".to_owned(),
        (None, None) => format!("every {}", grant.tool),
    }
}

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
