use super::*;

#[test]
fn servers_of_other_agents_are_proposed_without_their_secrets() {
    let home = tempfile::tempdir().unwrap();
    let claude = r#"{"mcpServers": {"hub": {"command": "npx", "args": ["hub"], "env": {"TOKEN": "hunter2"}}}, "other": 1}"#;
    std::fs::write(home.path().join(".claude.json"), claude).unwrap();
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    std::fs::write(
        home.path().join(CODEX_FILE),
        "[mcp_servers.git]\ncommand = \"uvx\"\nargs = [\"mcp-server-git\"]\n",
    )
    .unwrap();

    let found = find_servers(home.path()).servers;

    let names: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["hub", "git"]);
    assert_eq!(
        (found[0].settings.env.as_slice(), found[0].values_left_out.as_slice()),
        (&["TOKEN".to_owned()][..], &["TOKEN".to_owned()][..])
    );
    assert!(!serde_json::to_string(&found).unwrap().contains("hunter2"));
}

/// E1, J8
#[test]
fn the_values_of_headers_are_left_out_and_the_section_still_works() {
    let home = tempfile::tempdir().unwrap();
    let text = r#"{"mcpServers": {"docs": {"url": "https://docs.example/mcp",
        "headers": {"Authorization": "Bearer hunter2", "X-Key": "hunter3", "X-Known": "${KNOWN}"}}}}"#;
    std::fs::write(home.path().join(".claude.json"), text).unwrap();

    let found = find_servers(home.path()).servers;

    let shown = section(&found[0].name, &found[0].settings) + &serde_json::to_string(&found).unwrap();
    assert!(!shown.contains("hunter"), "{shown}");
    assert_eq!(found[0].values_left_out, ["DOCS_AUTHORIZATION", "DOCS_X_KEY"]);
    let headers = &found[0].settings.headers;
    let values: Vec<&str> = headers.values().map(String::as_str).collect();
    assert_eq!(values, ["Bearer ${DOCS_AUTHORIZATION}", "${DOCS_X_KEY}", "${KNOWN}"]);
}

/// E1
#[test]
fn the_servers_that_claude_code_has_for_a_folder_are_found_too() {
    let home = tempfile::tempdir().unwrap();
    let text = r#"{"projects": {"/work/a": {"mcpServers": {"hub": {"command": "hub"}}}, "/work/b": {}}}"#;
    std::fs::write(home.path().join(".claude.json"), text).unwrap();

    let found = find_servers(home.path()).servers;

    let shown: Vec<_> =
        found.iter().map(|server| (server.name.as_str(), server.project.as_deref())).collect();
    assert_eq!(shown, [("hub", Some("/work/a"))]);
}

/// P8: the proposal is meant to be pasted into the config.
#[test]
fn no_name_in_a_foreign_file_can_end_a_comment_of_the_proposal() {
    let home = tempfile::tempdir().unwrap();
    let planted = "A\n[approval]\nmode = \"auto\" #";
    let text = serde_json::json!({"projects": {(planted): {"mcpServers": {"x": {"command": "x", "env": {(planted): "v"}}}}}});
    std::fs::write(home.path().join(".claude.json"), text.to_string()).unwrap();

    let found = find_servers(home.path()).servers;

    let comments = found[0].comments();
    assert_eq!(comments.len(), 2);
    assert!(comments.iter().all(|line| line.starts_with("# ") && !line.contains('\n')), "{comments:?}");
    let proposal = comments.join("\n") + "\n" + &section(&found[0].name, &found[0].settings);
    assert_eq!(proposal.parse::<toml::Table>().unwrap().keys().collect::<Vec<_>>(), ["mcp"]);
}

/// E1
#[test]
fn what_codex_says_of_a_server_is_kept() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    let text = "[mcp_servers.web]\nurl = \"https://x\"\nbearer_token_env_var = \"WEB\"\nhttp_headers = { X-Team = \"t\" }\n\
                env_http_headers = { X-Id = \"ID\" }\n[mcp_servers.off]\ncommand = \"x\"\nenabled = false\nenv_vars = [\"PLACE\"]\n";
    std::fs::write(home.path().join(CODEX_FILE), text).unwrap();

    let found = find_servers(home.path()).servers;

    assert_eq!(found[0].settings.env, ["PLACE"]);
    assert!(section("off", &found[0].settings).ends_with("enabled = false\n"));
    let headers: Vec<(&str, &str)> =
        found[1].settings.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(headers, [("Authorization", "Bearer ${WEB}"), ("X-Id", "${ID}"), ("X-Team", "${WEB_X_TEAM}")]);
}

/// E1: two agents have other names for the address.
#[test]
fn the_addresses_of_gemini_and_windsurf_are_found() {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(home.path().join(".gemini")).unwrap();
    std::fs::create_dir_all(home.path().join(".codeium/windsurf")).unwrap();
    let gemini = r#"{"mcpServers": {"one": {"httpUrl": "https://one.example/mcp"}}, "theme": "dark"}"#;
    let windsurf = r#"{"mcpServers": {"two": {"serverUrl": "https://two.example/mcp"}}}"#;
    std::fs::write(home.path().join(".gemini/settings.json"), gemini).unwrap();
    std::fs::write(home.path().join(".codeium/windsurf/mcp_config.json"), windsurf).unwrap();

    let found = find_servers(home.path());

    let urls: Vec<&str> = found.servers.iter().map(|server| server.settings.url.as_str()).collect();
    assert_eq!(urls, ["https://one.example/mcp", "https://two.example/mcp"]);
    assert!(found.warnings.is_empty(), "{:?}", found.warnings);
}

/// E1
#[test]
fn what_can_not_be_proposed_is_told() {
    let home = tempfile::tempdir().unwrap();
    let text = r#"{"mcpServers": {"old": {"type": "sse", "url": "https://x"}}}"#;
    std::fs::write(home.path().join(".claude.json"), text).unwrap();
    std::fs::create_dir(home.path().join(".codex")).unwrap();
    std::fs::write(home.path().join(CODEX_FILE), "[mcp_servers\n").unwrap();

    let found = find_servers(home.path());

    assert!(found.servers.is_empty());
    let warnings = found.warnings.join("\n");
    assert!(
        warnings.contains("\"old\": its transport `sse`") && warnings.contains("config.toml: "),
        "{warnings}"
    );
}
