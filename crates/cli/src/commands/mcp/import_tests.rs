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

    let found = find_servers(home.path());

    let names: Vec<&str> = found.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["hub", "git"]);
    assert_eq!(
        (found[0].settings.env.as_slice(), found[0].values_left_out.as_slice()),
        (&["TOKEN".to_owned()][..], &["TOKEN".to_owned()][..])
    );
    assert!(!serde_json::to_string(&found).unwrap().contains("hunter2"));
}
