use super::*;

#[test]
fn settled_keys_that_are_not_used_yet_are_no_mistake() {
    let text =
        "[agent]\nname = \"a\"\n[retry]\nmax_retries = 2\n[exec]\ntimeout_s = 9\noutput_cap_bytes = 7\n";

    let config = Config::at("/home").with_toml(text, "config.toml").unwrap();

    assert_eq!((config.settings.agent.name.as_str(), config.settings.exec.output_cap_bytes), ("a", 7));
}

#[test]
fn a_key_that_nobody_knows_is_refused_with_where_it_is() {
    let error =
        Config::at("/home").with_toml("[retry]\nx = 1\n[agent]\nnaem = 1\n", "config.toml").unwrap_err();

    let text = error.to_string();
    assert!(text.starts_with("config.toml: unknown field `naem`") && text.contains("agent"), "{text}");
}

#[test]
fn scopes_are_read_as_they_are_written() {
    let text =
        "[[scope.allow]]\ntarget = \"./\"\npermission = \"write\"\n[[scope.deny]]\ntarget = \"secret\"\n";

    let config = Config::at("/home").with_toml(text, "config.toml").unwrap();

    assert_eq!(
        (config.settings.scope.allow.len(), config.settings.scope.deny[0].target.as_str()),
        (1, "secret")
    );
}

/// P1: a rule that can't be kept is refused, not passed over.
#[test]
fn a_pattern_is_no_target() {
    let error =
        Config::at("/home").with_toml("[[scope.deny]]\ntarget = \"**/.env\"\n", "config.toml").unwrap_err();

    assert_eq!(
        error.to_string(),
        "config.toml: scope: \"**/.env\" is a pattern; a target is a folder or a file"
    );
}
