use super::*;

#[test]
fn a_variable_in_a_header_is_replaced_and_a_missing_one_is_named() {
    let lookup = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());

    assert_eq!(expand_variables("Bearer ${TOKEN}!", lookup), Ok("Bearer secret!".to_owned()));
    assert_eq!(expand_variables("${OTHER:-none}", lookup), Ok("none".to_owned()));
    assert_eq!(expand_variables("${OTHER}", lookup), Err("OTHER".to_owned()));
    assert_eq!(expand_variables("costs $5 {x} ${", lookup), Ok("costs $5 {x} ${".to_owned()));
}

#[test]
fn a_server_name_fits_into_the_name_of_a_tool() {
    for name in ["git", "my-server", "a_b", "X1"] {
        assert_eq!(check_server_name(name), Ok(()), "{name}");
    }
    for name in ["", "a b", "a__b", "a_", "späti", "x/y", &"n".repeat(33)] {
        assert!(check_server_name(name).is_err(), "{name}");
    }
}

#[test]
fn a_server_needs_exactly_one_of_command_and_url() {
    let with = |command: &str, url: &str| ServerSettings {
        command: command.to_owned(),
        url: url.to_owned(),
        ..ServerSettings::default()
    };

    assert_eq!(with("x", "").transport(), Ok(TransportKind::Stdio));
    assert_eq!(with("", "http://x").transport(), Ok(TransportKind::Http));
    assert!(with("", "").transport().is_err());
    assert!(with("x", "http://x").transport().is_err());
}

fn settings_of(text: &str) -> ServerSettings {
    crate::parse_project_file(text).unwrap().0.remove("x").unwrap()
}

/// J8: a token is a secret by the name under which the server gets it, and by the name that it has here.
#[test]
fn the_variables_that_a_project_passes_on_are_secrets_by_either_name() {
    let text = r#"{"mcpServers": {"x": {"command": "x", "env": {
        "GITHUB_TOKEN": "${GH_PAT}", "WHERE": "http://${HOST}/${API_KEY}", "OWN_TOKEN": "${OWN_TOKEN}", "LEVEL": "${LEVEL_OF_LOGS}"}}}}"#;

    let mut names = settings_of(text).secret_variables();
    names.sort();

    assert_eq!(names, ["API_KEY", "GH_PAT", "OWN_TOKEN"]);
}

/// J8
#[test]
fn tokens_that_stand_in_the_settings_are_secrets_too() {
    let text = r#"{"mcpServers": {"x": {"url": "http://x", "headers": {"Authorization": "Bearer abcdef", "X-Api-Key": "${KEY}", "X-Team": "blue"},
        "env": {"GITHUB_TOKEN": "ghp_123", "PLACE": "Graz"}}}}"#;

    assert_eq!(settings_of(text).written_secrets(), ["ghp_123", "abcdef"]);
}

/// E1: what a server keeps for itself is neither another folder's nor another session's, and does not depend on how it is called.
#[test]
fn only_what_starts_a_program_decides_what_it_keeps() {
    let settings = ServerSettings { command: "x".to_owned(), ..ServerSettings::default() };
    let fingerprint = settings.program_fingerprint(Path::new("/a"), None);
    let session = Some(SessionId::generate());

    assert_ne!(settings.program_fingerprint(Path::new("/b"), None), fingerprint);
    assert_ne!(settings.program_fingerprint(Path::new("/a"), session), fingerprint);
    let other = ServerSettings { args: vec!["y".to_owned()], ..settings.clone() };
    assert_ne!(other.program_fingerprint(Path::new("/a"), None), fingerprint);
    let same = ServerSettings { timeout_s: 7, tools: vec!["z".to_owned()], ..settings.clone() };
    assert_eq!(same.program_fingerprint(Path::new("/a"), None), fingerprint);
}

/// E1: as in the example of those who invented the file.
#[test]
fn the_variables_of_a_projects_address_are_replaced_and_a_missing_one_is_named() {
    let at = |url: &str, is_of_folder| {
        ServerSettings { url: url.to_owned(), is_of_folder, ..ServerSettings::default() }.with_expanded_url()
    };
    let check = |settings: &ServerSettings| {
        crate::http_connection::check_url(settings).map_err(|error| error.to_string())
    };

    let set = at("${LONGHAUL_NOT_SET:-https://api.example}/${CARGO_PKG_NAME}/mcp", true);
    let missing = at("https://${LONGHAUL_NOT_SET}/mcp", true);
    let of_user = at("https://${CARGO_PKG_NAME}/mcp", false);

    assert_eq!(set.url, "https://api.example/longhaul-mcp/mcp");
    assert_eq!(check(&set), Ok(()));
    assert_eq!(
        check(&missing),
        Err("its url needs the variable LONGHAUL_NOT_SET, which is not set".to_owned())
    );
    let refused = check(&of_user).unwrap_err();
    assert!(refused.contains("variables are for `headers`"), "{refused}");
}

/// J8: `.mcp.json` may put a token into the command line, from where a program prints it.
#[test]
fn the_variables_in_a_projects_command_line_are_secrets_if_they_are_named_like_one() {
    let text = r#"{"mcpServers": {"x": {"command": "${TOOLS_DIR}/x", "args": ["--token=${TICKETS_TOKEN}", "${PLACE:-Graz}"]}}}"#;
    let of_project = settings_of(text);
    // In the user's own config they are no variables.
    let own = ServerSettings { is_of_folder: false, ..of_project.clone() };

    assert_eq!(of_project.secret_variables(), ["TICKETS_TOKEN"]);
    assert_eq!(own.secret_variables(), Vec::<String>::new());
}

/// J8
#[test]
fn the_password_and_the_keys_in_an_address_are_secrets() {
    let url = "https://me:pa55word@host/mcp?api_key=one%2Ftwo&page=3".to_owned();
    let settings = ServerSettings { url, ..ServerSettings::default() };

    assert_eq!(settings.written_secrets(), ["pa55word", "one%2Ftwo", "one/two"]);
}

/// P8
#[test]
fn a_program_lists_its_tools_for_the_folder_that_it_begins_in_and_an_address_for_all() {
    let program = ServerSettings { command: "npx".to_owned(), ..ServerSettings::default() };
    let address = ServerSettings { url: "https://host".to_owned(), ..ServerSettings::default() };
    let [one, other] = ["/one", "/other"].map(|folder| Some(Path::new(folder)));

    assert_eq!(program.catalogue_fingerprint(one), program.catalogue_fingerprint(one));
    assert_ne!(program.catalogue_fingerprint(one), program.catalogue_fingerprint(other));
    assert_eq!(address.catalogue_fingerprint(one), address.catalogue_fingerprint(other));
}
