use serde_json::json;

use super::*;

fn arguments(line: &str) -> String {
    json!({ "command": line }).to_string()
}

fn suggested(line: &str) -> ApprovalGrant {
    suggest_grant("exec", &arguments(line), vec![]).unwrap()
}

/// P4: a pattern only where it is certain what runs, else the exact line.
#[test]
fn a_grant_is_the_narrowest_sensible_one() {
    let patterns = [
        ("cargo test -p x", "cargo test *"),
        ("git commit -m 'a b'", "git commit *"),
        ("npm test", "npm test *"),
    ];
    let lines = [
        "rm -rf build",
        "cargo run",
        "cargo test && rm -rf x",
        "cargo test > log",
        "cargo test; $cmd",
        "PATH=. cargo test",
        "cargo testx",
        "make deploy",
        "git push origin main",
    ];

    for (line, pattern) in patterns {
        assert_eq!(suggested(line).command.as_deref(), Some(pattern), "{line}");
    }
    for line in lines {
        let grant = suggested(line);
        assert_eq!((grant.command, grant.line.as_deref()), (None, Some(line)));
    }
    let edit = suggest_grant("edit_file", "{}", vec![]).unwrap();
    assert_eq!((edit.tool.as_str(), edit.command, edit.line), ("edit_file", None, None));
}

/// P4: a grant never covers more than what was shown.
#[test]
fn a_grant_covers_what_was_shown_and_nothing_else() {
    let grants = [
        suggested("cargo test -p x"),
        suggested("make deploy"),
        suggest_grant("edit_file", "{}", vec![]).unwrap(),
    ];
    let covers = |line: &str| is_granted(&grants, "exec", &arguments(line));

    assert!(covers("cargo test") && covers("cargo test --release") && covers("make deploy"));
    assert!(covers("cargo test && cargo test -p y"), "each command of the line is covered");
    for line in [
        "cargo testx",
        "cargo test && ls",
        "cargo test $(x)",
        "make",
        "make deploy ",
        "make deploy && cargo test",
    ] {
        assert!(!covers(line), "{line}");
    }
    assert!(is_granted(&grants, "edit_file", r#"{"path":"b"}"#));
    assert!(!is_granted(&grants, "write_file", "{}"));
    let elsewhere = json!({"command": "make deploy", "work_dir": "other"}).to_string();
    assert!(!is_granted(&grants, "exec", &elsewhere), "another folder is another command");
    assert!(!is_granted([], "exec", &arguments("ls")));
}

/// P4: a pattern in the user's own line is no pattern in the grant.
#[test]
fn an_exact_line_is_compared_as_it_is() {
    let grant = suggested("rm build/*");

    assert!(is_granted([&grant], "exec", &arguments("rm build/*")));
    assert!(!is_granted([&grant], "exec", &arguments("rm build/x")));
}

/// P4: `always` for a page is about its host.
#[test]
fn a_grant_for_a_page_is_about_its_host() {
    let call = |url: &str| serde_json::json!({ "url": url }).to_string();
    let grant = suggest_grant("web_fetch", &call("https://Docs.rs/a"), vec![]).unwrap();

    assert_eq!(describe_grant(&grant), "web_fetch from docs.rs");
    assert!(is_granted([&grant], "web_fetch", &call("http://docs.rs./b")));
    for url in ["https://docs.rs.evil.org/", "https://evil.org/docs.rs", "https://docs.rs@evil.org/"] {
        assert!(!is_granted([&grant], "web_fetch", &call(url)), "{url}");
    }
}

/// W3: whoever agreed to one schedule has not agreed to the next. Not even a grant in a file of the project covers it.
#[test]
fn no_grant_lasts_for_schedules() {
    let arguments = r#"{"action": "add", "name": "build", "every": "1h", "prompt": "Look."}"#;
    let elsewhere = suggest_grant("edit_file", "{}", vec!["why".to_owned()]).unwrap();
    let wide = ApprovalGrant { tool: "schedule".to_owned(), ..elsewhere };

    assert_eq!(suggest_grant("schedule", arguments, vec!["why".to_owned()]), None);
    assert!(!is_granted([&wide], "schedule", arguments));
}
