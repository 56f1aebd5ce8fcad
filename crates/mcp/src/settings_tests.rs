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
