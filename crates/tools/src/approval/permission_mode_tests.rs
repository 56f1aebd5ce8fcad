use ApprovalAction::{Ask, Auto, Deny};
use serde_json::json;

use super::*;

const ALL: [PermissionMode; 4] = PermissionMode::ALL;

fn rule(tool: &str, command: Option<&str>, action: ApprovalAction) -> ToolApprovalRule {
    ToolApprovalRule { tool: tool.to_owned(), command: command.map(str::to_owned), host: None, action }
}

fn policy(default: ApprovalAction, rules: Vec<ToolApprovalRule>) -> ApprovalPolicy {
    ApprovalPolicy::new(default, rules).unwrap()
}

fn actions(policy: &ApprovalPolicy, effect: Effect, tool: &str, arguments: &str) -> [ApprovalAction; 4] {
    ALL.map(|mode| {
        policy.judge_in_mode(&JudgedCall { mode, effect, tool, arguments, is_sandboxed: true }).action
    })
}

fn exec(policy: &ApprovalPolicy, line: &str) -> [ApprovalAction; 4] {
    actions(policy, Effect::Command, "exec", &json!({ "command": line }).to_string())
}

/// P4
#[test]
fn a_mode_decides_by_the_effect_of_the_tool() {
    let no_rules = policy(Auto, vec![]);

    //                                                                 ask   auto-edit auto plan
    assert_eq!(actions(&no_rules, Effect::Read, "x", "{}"), [Auto, Auto, Auto, Auto]);
    assert_eq!(actions(&no_rules, Effect::Idempotent, "x", "{}"), [Auto, Auto, Auto, Auto]);
    assert_eq!(actions(&no_rules, Effect::CheckedWrite, "x", "{}"), [Ask, Auto, Auto, Deny]);
    assert_eq!(actions(&no_rules, Effect::Command, "x", "{}"), [Ask, Ask, Auto, Deny]);
    assert_eq!(actions(&no_rules, Effect::Unknown, "x", "{}"), [Ask, Ask, Auto, Deny]);
}

/// P4: rules win over the mode, deny over all, and plan mode runs nothing but reads.
#[test]
fn rules_win_over_the_mode_except_in_plan_mode() {
    let rules = policy(
        Auto,
        vec![
            rule("exec", Some("make *"), Auto),
            rule("exec", Some("git push*"), Ask),
            rule("exec", Some("rm *"), Deny),
            rule("edit_file", None, Auto),
            rule("read_file", None, Ask),
        ],
    );

    assert_eq!(exec(&rules, "make all"), [Auto, Auto, Auto, Deny]);
    assert_eq!(exec(&rules, "make all && touch x"), [Ask, Ask, Auto, Deny]);
    assert_eq!(exec(&rules, "git push"), [Ask, Ask, Ask, Deny]);
    assert_eq!(exec(&rules, "rm x"), [Deny, Deny, Deny, Deny]);
    assert_eq!(actions(&rules, Effect::CheckedWrite, "edit_file", "{}"), [Auto, Auto, Auto, Deny]);
    assert_eq!(actions(&rules, Effect::CheckedWrite, "write_file", "{}"), [Ask, Auto, Auto, Deny]);
    assert_eq!(actions(&rules, Effect::Read, "read_file", "{}"), [Ask, Ask, Ask, Ask]);
}

/// P4
#[test]
fn of_the_mode_and_the_default_the_stricter_holds() {
    let asks = policy(Ask, vec![]);
    let denies = policy(Deny, vec![]);

    assert_eq!(actions(&asks, Effect::CheckedWrite, "x", "{}"), [Ask, Ask, Ask, Deny]);
    assert_eq!(actions(&asks, Effect::Read, "x", "{}"), [Ask, Ask, Ask, Ask]);
    assert_eq!(actions(&denies, Effect::CheckedWrite, "x", "{}"), [Deny, Deny, Deny, Deny]);
}

/// P4: only what certainly reads, and nothing of it in plan mode.
#[test]
fn a_command_that_only_reads_runs_without_asking() {
    let no_rules = policy(Auto, vec![]);
    let reads = ["ls -la src", "rg -n 'fn main' src", "cat a | head -3", "wc -l < a"];
    let asks = [
        "ls > list",
        "git push",
        "git status",
        "./git-log",
        "git-log --output=x",
        "git -C docs/x status",
        "cat < /dev/tcp/example.org/80",
        "cat < $x",
        "git log --output=x",
        "git -c core.pager=x log",
        "git diff --ext-diff",
        "rg --pre ./x main",
        "rg main --pre=./x",
        "rg --pre=./x --regexp=main",
        "cat a | sh",
        "ls $(touch x)",
        "./ls",
        "PATH=. ls",
        "find . -delete",
        "echo x",
    ];

    for line in reads {
        assert_eq!(exec(&no_rules, line), [Auto, Auto, Auto, Deny], "{line}");
    }
    for line in asks {
        assert_eq!(exec(&no_rules, line), [Ask, Ask, Auto, Deny], "{line}");
    }
}

/// P4: without the sandbox, `cat` reads what the file tools may not.
#[test]
fn without_a_sandbox_a_command_that_reads_asks_too() {
    let arguments = json!({"command": "cat /etc/passwd"}).to_string();
    let call = JudgedCall {
        mode: PermissionMode::Ask,
        effect: Effect::Command,
        tool: "exec",
        arguments: &arguments,
        is_sandboxed: false,
    };

    assert_eq!(policy(Auto, vec![]).judge_in_mode(&call).action, Ask);
}

/// P4: an ask rule for a command that only reads holds in every mode.
#[test]
fn a_rule_about_a_reading_command_holds() {
    let rules = policy(Auto, vec![rule("exec", Some("git log *"), Ask)]);

    assert_eq!(exec(&rules, "git log"), [Ask, Ask, Ask, Deny]);
}

fn fetch(policy: &ApprovalPolicy, url: &str) -> [ApprovalAction; 4] {
    actions(policy, Effect::Read, "web_fetch", &json!({ "url": url }).to_string())
}

fn host_rule(host: &str, action: ApprovalAction) -> ToolApprovalRule {
    ToolApprovalRule { host: Some(host.to_owned()), ..rule("web_fetch", None, action) }
}

/// W3: a heartbeat that ran something else has done something.
#[test]
fn a_command_only_looks_if_it_is_known_to_change_nothing() {
    let looks = |line: &str| only_looks("exec", &json!({ "command": line }).to_string());

    for line in [
        "git status",
        "git log --oneline -5 | head -3",
        "gh pr list && gh run view 7",
        "echo all green",
        "cat a.txt",
    ] {
        assert!(looks(line), "{line}");
    }
    for line in [
        "git push",
        "git status && git push",
        "git diff --output=a.txt",
        "gh pr merge 7",
        "gh api -X POST /repos",
        "echo green > log.txt",
        "cargo test",
        "date --set=now",
        "date -s now",
        "date -u --set=now",
        "$(git push)",
    ] {
        assert!(!looks(line), "{line}");
    }
    assert!(!only_looks("write_file", r#"{"path": "ls"}"#));
}

/// P4, P5: the address of a page can carry out what the agent has read, so it is asked about where commands are.
#[test]
fn pages_are_asked_about_where_commands_are_and_searches_are_not() {
    let no_rules = policy(Auto, vec![]);

    assert_eq!(fetch(&no_rules, "https://example.org/"), [Ask, Ask, Auto, Ask]);
    assert_eq!(actions(&no_rules, Effect::Read, "web_search", r#"{"query": "x"}"#), [Auto; 4]);
    assert_eq!(actions(&no_rules, Effect::Idempotent, "ask_user", r#"{"question": "x"}"#), [Auto; 4]);
}

/// P4
#[test]
fn rules_can_name_hosts() {
    let rules = policy(
        Auto,
        vec![
            host_rule("docs.rs", Auto),
            host_rule("*.example.org", Auto),
            host_rule("evil.*", Deny),
            host_rule("a.example.org", Ask),
        ],
    );

    for url in ["https://docs.rs/x", "http://DOCS.rs.:8080/", "https://www.example.org/?a=evil.org"] {
        assert_eq!(fetch(&rules, url), [Auto; 4], "{url}");
    }
    assert_eq!(fetch(&rules, "https://a.example.org/"), [Ask; 4]);
    for url in ["https://evil.org/", "https://docs.rs@evil.org/", "https://EVIL.org\\docs.rs/"] {
        assert_eq!(fetch(&rules, url), [Deny; 4], "{url}");
    }
    for url in ["https://notdocs.rs/", "https://example.org/", "https://docs.rs.evil-not.org/", "no url"] {
        assert_eq!(fetch(&rules, url), [Ask, Ask, Auto, Ask], "{url}");
    }
}

/// P4
#[test]
fn a_host_rule_that_could_never_hold_is_an_error() {
    let wrong = |tool: &str, host: &str| {
        let rule = ToolApprovalRule { tool: tool.to_owned(), ..host_rule(host, Ask) };
        ApprovalPolicy::new(Auto, vec![rule]).map(drop).map_err(|error| error.problem)
    };

    assert!(wrong("*", "docs.rs").is_ok());
    for (tool, host) in
        [("exec", "docs.rs"), ("web_fetch", ""), ("web_fetch", "https://docs.rs"), ("web_fetch", "docs.rs/x")]
    {
        assert!(wrong(tool, host).is_err(), "{tool} {host}");
    }
}
