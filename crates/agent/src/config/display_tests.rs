use serde_json::json;

use super::*;

fn shown(text: &str) -> Vec<ResolvedSetting> {
    let mut layers = default_layers();
    layers.put(parse_layer(text, "c.toml").unwrap());
    list_settings(&layers.settings().unwrap(), &layers.origins)
}

fn line(text: &str, key: &str) -> String {
    shown(text).into_iter().find(|shown| shown.key == key).unwrap().to_string()
}

#[test]
fn a_key_is_a_line_with_its_source() {
    let text = "[retry]\nmax_retries = 2\n[model]\nprotocol = \"\"\n";

    assert_eq!(line(text, "retry.max_retries"), "retry.max_retries = 2  # c.toml:2");
    assert_eq!(line(text, "retry.base_ms"), "retry.base_ms = 1000  # default");
    assert_eq!(line(text, "model.protocol"), "model.protocol = \"\"  # c.toml:4");
    assert_eq!(line(text, "model.base_url"), "# model.base_url is not set");
    assert_eq!(line(text, "sandbox.mode"), "sandbox.mode = \"on\"  # default");
    assert_eq!(line(text, "memory.scope"), "memory.scope = \"project\"  # default");
}

#[test]
fn what_is_shown_is_a_config_that_says_the_same() {
    let text = "[agent]\nname = \"a \\\"b\\\" \\\\ \\u001b\"\ninstructions = \"one\\ntwo\\t\"\n[[scope.deny]]\ntarget = \"x\"\n\
        [[approval.rule]]\ntool = \"exec\"\naction = \"ask\"\n[limits]\ncost_per_turn = 1.5\n[secrets]\npatterns = ['\\d+']\n";
    let lines: Vec<String> = shown(text).iter().map(ResolvedSetting::to_string).collect();

    let again: Vec<_> = shown(&lines.join("\n")).into_iter().map(|shown| (shown.key, shown.value)).collect();

    let first: Vec<_> = shown(text).into_iter().map(|shown| (shown.key, shown.value)).collect();
    assert_eq!(again, first);
}

#[test]
fn keys_are_shown_in_the_order_in_which_they_are_declared() {
    let keys: Vec<String> = shown("").into_iter().map(|shown| shown.key).collect();

    assert_eq!(keys[..4], ["agent.name", "agent.instructions", "agent.instructions_file", "model.name"]);
    assert_eq!(keys.last().map(String::as_str), Some("mcp.servers"));
}

#[test]
fn every_name_of_a_key_that_is_not_used_is_that_of_a_key() {
    let unused: Vec<String> =
        shown("").into_iter().filter(|shown| !shown.used).map(|shown| shown.key).collect();

    for (key, is_unused) in [
        ("exec.max_tasks", false),
        ("context.keep_tokens", false),
        ("memory.scope", false),
        ("sessions.keep", false),
        ("server.listen", false),
        ("journal.url", false),
    ] {
        assert_eq!(unused.contains(&key.to_owned()), is_unused, "{key}");
    }
}

#[test]
fn the_password_of_an_address_is_not_shown() {
    let text = "[model]\nbase_url = \"http://me:pa@ss@host:1/v1?a=b@c\"\n[journal]\nurl = \"postgres://me:pass@host/db\"\n";

    assert_eq!(line(text, "model.base_url"), "model.base_url = \"http://me:…@host:1/v1?a=…\"  # c.toml:2");
    assert_eq!(line(text, "journal.url"), "journal.url = \"postgres://me:…@host/db\"  # c.toml:4");
    assert_eq!(hide_password("model.base_url", json!("http://host/v1")), "http://host/v1");
}

/// H5: a key in the query of an address is not shown either.
#[test]
fn the_query_of_an_address_is_hidden() {
    let shown = |address: &str| hide_password("model.base_url", json!(address));

    assert_eq!(shown("https://host/v1?key=s3cret&debug"), "https://host/v1?key=…&…");
    assert_eq!(shown("https://me:s3cret@host?key=s3cret"), "https://me:…@host?key=…");
}

/// H5: the tokens that a user wrote into the config of MCP servers.
#[test]
fn the_secrets_of_mcp_servers_are_not_shown() {
    let text = "[mcp.servers.docs]\nurl = \"https://me:s3cret@host/mcp?key=s3cret\"\n\
                headers = { Authorization = \"Bearer s3cret\", X-Api-Key = \"${DOCS_KEY}\", X-Team = \"blue\" }\n";

    let shown = line(text, "mcp.servers");

    assert!(!shown.contains("s3cret"), "{shown}");
    for kept in [
        "https://me:…@host/mcp?key=…",
        "Authorization = \"…\"",
        "X-Api-Key = \"${DOCS_KEY}\"",
        "X-Team = \"blue\"",
    ] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
}
