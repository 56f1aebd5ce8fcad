use super::*;

#[test]
fn servers_are_read_and_a_wrong_one_costs_only_itself() {
    let text = r#"{"mcpServers": {
        "files": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${TOKEN}", "MODE": "fast"}},
        "web": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${T}"}},
        "gemini": {"httpUrl": "https://example.org/gemini"},
        "windsurf": {"serverUrl": "https://example.org/windsurf"},
        "old": {"type": "sse", "url": "https://example.org/sse"},
        "none": {},
        "bad name": {"command": "x"}
    }}"#;

    let (servers, warnings) = parse_project_file(text).unwrap();

    assert_eq!(servers.keys().collect::<Vec<_>>(), ["files", "gemini", "web", "windsurf"]);
    assert_eq!(servers["files"].env, ["TOKEN"]);
    assert_eq!(servers["files"].variables["MODE"], "fast");
    assert_eq!(
        ["web", "gemini", "windsurf"].map(|name| servers[name].url.as_str()),
        ["https://example.org/mcp", "https://example.org/gemini", "https://example.org/windsurf"]
    );
    assert_eq!(warnings.len(), 3);
    assert!(parse_project_file(r#"{"mcpServers": 1}"#).is_err());
}
