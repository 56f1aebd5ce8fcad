use super::*;

#[test]
fn a_server_is_added_and_removed_and_the_rest_of_the_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    let before = "# mine\n[agent]\nname = \"x\" # a comment\n\n[mcp.servers.other]\ncommand = \"y\"\n";
    std::fs::write(&file, before).unwrap();
    let settings = ServerSettings {
        command: "npx".to_owned(),
        args: vec!["-y".to_owned(), "it's \"a\" \\ path".to_owned()],
        env: vec!["TOKEN".to_owned()],
        ..ServerSettings::default()
    };

    add_server(&file, "files", &settings).unwrap();
    let added = Config::from_toml(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let twice = add_server(&file, "files", &settings);
    remove_server(&file, "files").unwrap();
    let removed = std::fs::read_to_string(&file).unwrap();

    assert_eq!(added.settings.mcp.servers["files"], settings);
    assert!(twice.unwrap_err().to_string().contains("there is already"));
    assert_eq!(removed.trim_end(), before.trim_end());
    assert!(remove_server(&file, "files").is_err());
}

#[test]
fn a_comment_above_the_next_section_stays_when_a_server_is_removed() {
    let text = "[mcp.servers.files]\n# its own\ncommand = \"npx\"\n\n[mcp.servers.files.headers]\nA = \"b\"\n\n# mine too\n[exec]\ntimeout_s = 5\n# the end\n";

    let rest = without_section(text, "files");

    assert_eq!(rest, "\n# mine too\n[exec]\ntimeout_s = 5\n# the end\n");
}
