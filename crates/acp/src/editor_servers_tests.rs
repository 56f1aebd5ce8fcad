use serde_json::json;

use super::*;

#[test]
fn programs_and_http_servers_are_taken_with_their_variables_and_headers() {
    let (name, program) = parse_server(&json!({
        "name": "My Notes", "command": "notes", "args": ["-v"], "env": [{"name": "KEY", "value": "k"}]
    }))
    .unwrap();
    let (_, remote) = parse_server(&json!({
        "type": "http", "name": "docs", "url": "https://docs.example.org/mcp",
        "headers": [{"name": "Authorization", "value": "Bearer t"}]
    }))
    .unwrap();

    assert_eq!(name, "My-Notes");
    assert_eq!((program.command.as_str(), program.args.as_slice()), ("notes", &["-v".to_owned()][..]));
    assert_eq!(program.variables["KEY"], "k");
    assert!(!program.shared);
    assert_eq!(
        (remote.url.as_str(), remote.headers["Authorization"].as_str()),
        ("https://docs.example.org/mcp", "Bearer t")
    );
}

#[test]
fn a_server_that_can_not_be_used_says_why() {
    let refused = |server: Value| parse_server(&server).unwrap_err();

    assert!(refused(json!({"type": "sse", "name": "a", "url": "http://x"})).contains("sse is not supported"));
    assert!(refused(json!({"name": "a"})).contains("`command` or a `url`"));
    assert!(refused(json!({"command": "a"})).contains("name"));
    assert!(refused(json!({"name": "!!", "command": "a"})).contains("can't be the name"));
}

#[test]
fn names_become_names_of_tools() {
    assert_eq!(usable_name("a__b"), "a_b");
    assert_eq!(usable_name("Größe 1"), "Gr--e-1");
    assert_eq!(usable_name(&"x".repeat(40)).len(), 32);
}
