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
