use super::*;

/// E1
#[test]
fn a_server_gets_the_variables_that_are_named_and_no_others() {
    let all = [("PATH", "/bin"), ("LC_ALL", "C"), ("TOKEN", "t"), ("OPENAI_API_KEY", "k")];
    let lookup =
        |name: &str| all.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let settings = ServerSettings {
        env: vec!["TOKEN".to_owned(), "MISSING".to_owned()],
        variables: BTreeMap::from([("URL".to_owned(), "http://x/${TOKEN}".to_owned())]),
        ..ServerSettings::default()
    };

    let everything = all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let (environment, warnings) = server_environment(&settings, lookup, everything);

    let expected = [("LC_ALL", "C"), ("PATH", "/bin"), ("TOKEN", "t"), ("URL", "http://x/t")];
    assert_eq!(environment.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(), expected);
    assert_eq!(warnings, ["the variable MISSING is not set"]);
}

fn settings(command: &str, args: &[&str]) -> ServerSettings {
    let args = args.iter().map(|word| (*word).to_owned()).collect();
    ServerSettings { command: command.to_owned(), args, ..ServerSettings::default() }
}

#[test]
fn the_words_of_a_command_reach_it_as_they_are() {
    let args = ["a b".to_owned(), "$HOME".to_owned(), "it's".to_owned()];

    assert_eq!(command_line("npx", &args), r"exec 'npx' 'a b' '$HOME' 'it'\''s'");
}

#[test]
fn a_missing_program_is_named_before_anything_starts() {
    let error = find_program("no-such-program", Some("/bin:/usr/bin"), Path::new("/")).unwrap_err();

    let expected = "the command `no-such-program` is not on the PATH; install it, or correct `command`";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_project_may_name_variables_in_a_command_and_a_user_writes_what_is_meant() {
    let words = settings("${NO_SUCH_VARIABLE:-npx}", &["${NO_SUCH_VARIABLE}", "${CARGO_PKG_NAME}"]);
    let of_project = ServerSettings { is_of_folder: true, ..words.clone() };
    let mut warnings = Vec::new();

    let expanded = expand_command(&of_project, &mut warnings);

    assert_eq!((expanded.command.as_str(), expanded.args[1].as_str()), ("npx", "longhaul-mcp"));
    assert_eq!((warnings.len(), expand_command(&words, &mut warnings)), (1, words));
}

/// E1: a server's script in a folder that the sandbox hides "does not exist"; the reason says why, and how to open it.
#[test]
fn a_path_in_the_command_that_the_sandbox_hides_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let script = folder.join("src/server.py");
    std::fs::create_dir(folder.join("src")).unwrap();
    std::fs::write(&script, "").unwrap();
    let started = settings("python3", &["--check", script.to_str().unwrap(), "/no/such/file"]);
    let bounds = |read: &[&Path], hidden: &[&Path]| Bounds {
        read: read.iter().map(|path| path.to_path_buf()).collect(),
        hidden: hidden.iter().map(|path| path.to_path_buf()).collect(),
        ..Bounds::default()
    };

    let not_opened = find_hidden_path(&started, &bounds(&[Path::new("/usr")], &[]));
    let hidden = find_hidden_path(&started, &bounds(&[&folder], &[script.parent().unwrap()]));
    let opened = find_hidden_path(&started, &bounds(&[&script], &[&folder]));

    assert_eq!((not_opened, hidden, opened), (Some(script.clone()), Some(script), None));
}
