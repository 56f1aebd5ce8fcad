use super::*;

/// What is said about a file, a line each.
fn said(text: &str) -> Vec<String> {
    let error = parse_layer(text, "c.toml").unwrap_err();
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn a_value_of_the_wrong_kind_is_named_with_its_line_and_what_was_expected() {
    let text = "# one\n\n[retry]\nbase_ms = 5\nmax_retries = \"four\"\ncap_ms = 1.5\n[model]\ntools = 1\nfallback = [\n  \"a\",\n  1,\n]\n";

    assert_eq!(
        said(text),
        [
            "c.toml:5: retry.max_retries must be a whole number, not a string",
            "c.toml:6: retry.cap_ms must be a whole number, not 1.5",
            "c.toml:8: model.tools must be true or false, not 1",
            "c.toml:11: each of model.fallback must be a string, not 1",
        ]
    );
}

#[test]
fn a_section_that_is_none_and_a_list_that_is_none_are_named() {
    assert_eq!(said("retry = 4\n"), ["c.toml:1: retry must be a section ([retry]), not 4"]);
    assert_eq!(said("[[retry]]\n"), ["c.toml:1: retry must be a section ([retry]), not a list"]);
    assert_eq!(
        said("[scope.allow]\ntarget = \"x\"\n"),
        ["c.toml:1: scope.allow must be a list of tables ([[scope.allow]]), not a section"]
    );
    assert_eq!(said("[[scope.deny]]\n"), ["c.toml:1: scope.deny needs a target"]);
}

#[test]
fn every_unknown_key_is_named_with_the_nearest_one() {
    let text = "[agent]\nnaem = \"x\"\n[retry]\nmax_retry = 1\n[exec]\ntimeout = 1\n[[scope.deny]]\ntarget = \"a\"\npermision = \"read\"\n";

    assert_eq!(
        said(text),
        [
            "c.toml:2: unknown key \"naem\" in [agent]; did you mean \"name\"?",
            "c.toml:4: unknown key \"max_retry\" in [retry]; did you mean \"max_retries\"?",
            "c.toml:6: unknown key \"timeout\" in [exec]; did you mean \"timeout_s\"?",
            "c.toml:9: unknown key \"permision\" in [scope.deny]; did you mean \"permission\"?",
        ]
    );
}

#[test]
fn a_key_of_another_section_is_sent_there() {
    assert_eq!(
        said("[model]\nmax_retries = 4\n"),
        ["c.toml:2: unknown key \"max_retries\" in [model]; `max_retries` belongs in [retry]"]
    );
    assert_eq!(
        said("max_retries = 4\n"),
        ["c.toml:1: unknown key \"max_retries\" outside all sections; `max_retries` belongs in [retry]"]
    );
    assert_eq!(
        said("[server]\nname = \"x\"\n"),
        ["c.toml:2: unknown key \"name\" in [server]; `name` belongs in [agent] or [model]"]
    );
    assert_eq!(
        said("[agent]\nmax_retry = 4\n"),
        ["c.toml:2: unknown key \"max_retry\" in [agent]; did you mean \"max_retries\" in [retry]?"]
    );
}

#[test]
fn a_section_that_nobody_knows_is_named_once() {
    assert_eq!(
        said("[modle]\nname = \"x\"\nfoo = 1\n"),
        ["c.toml:1: unknown section [modle]; did you mean [model]?"]
    );
    assert!(
        said("[zzzzzzzz]\n")[0].starts_with("c.toml:1: unknown section [zzzzzzzz]; the sections are agent,")
    );
}

#[test]
fn a_key_that_is_like_none_gets_the_list() {
    assert_eq!(
        said("[sandbox]\nqqqq = 1\n"),
        ["c.toml:2: unknown key \"qqqq\" in [sandbox]; known are mode, network, unavailable"]
    );
}

#[test]
fn what_is_not_toml_is_named_with_its_line() {
    let lines = said("[agent]\nname = \"a\"\nname = \"b\"\n");

    assert!(lines[0].starts_with("c.toml:3: this is not TOML: "), "{lines:?}");
    assert!(said("[agent\n")[0].starts_with("c.toml:1: this is not TOML: "));
}

#[test]
fn numbers_outside_their_range_are_refused() {
    let text = "[context]\ncompact_at = 1.5\ncompact_now_at = nan\ncompact_idle_at = -0.1\n[limits]\nsteps = -1\ncost_per_turn = -0.5\ncost_per_day = inf\n[exec]\ntimeout_s = 0\n[retry]\nmax_retries = 9999999999\n";

    assert_eq!(
        said(text),
        [
            "c.toml:2: context.compact_at must be a number from 0 to 1, not 1.5",
            "c.toml:3: context.compact_now_at must be a number from 0 to 1, not nan",
            "c.toml:4: context.compact_idle_at must be a number from 0 to 1, not -0.1",
            "c.toml:6: limits.steps must be a whole number of at least 0, not -1",
            "c.toml:7: limits.cost_per_turn must be a number of at least 0, not -0.5",
            "c.toml:8: limits.cost_per_day must be a number of at least 0, not inf",
            "c.toml:10: exec.timeout_s must be a whole number of at least 1, not 0",
            "c.toml:12: retry.max_retries must be a whole number from 0 to 1000, not 9999999999",
        ]
    );
}

#[test]
fn a_word_that_is_none_of_the_choices_is_refused_with_them() {
    assert_eq!(
        said("[approval]\ndefault = \"maybe\"\n[[approval.rule]]\ntool = \"exec\"\naction = \"aks\"\n"),
        [
            "c.toml:2: approval.default must be \"auto\", \"ask\" or \"deny\", not \"maybe\"",
            "c.toml:5: approval.rule.action must be \"auto\", \"ask\" or \"deny\", not \"aks\"",
        ]
    );
}

#[test]
fn an_address_begins_with_http() {
    for wrong in ["127.0.0.1:8080", "ftp://x", "http://", "https:///v1", "http://a b"] {
        let lines = said(&format!("[model]\nbase_url = \"{wrong}\"\n"));

        assert_eq!(
            lines,
            ["c.toml:2: model.base_url must be an address that starts with http:// or https://"]
        );
    }
    for right in ["http://127.0.0.1:8080/v1", "https://[::1]/v1", ""] {
        parse_layer(&format!("[model]\nbase_url = \"{right}\"\n"), "c.toml").unwrap();
    }
}

/// A key that was written where its variable's name belongs is not repeated to anybody.
#[test]
fn a_key_in_place_of_its_variable_is_refused_and_not_shown() {
    let lines = said("[model]\napi_key_env = \"sk-very-secret\"\napi_key = \"sk-very-secret\"\n");

    assert_eq!(
        lines,
        [
            "c.toml:2: model.api_key_env must be the name of an environment variable, not its value",
            "c.toml:3: unknown key \"api_key\" in [model]; did you mean \"api_key_env\"?",
        ]
    );
}

/// P1: a rule that can't be kept is refused, not passed over.
#[test]
fn a_pattern_is_no_target() {
    assert_eq!(
        said("[[scope.deny]]\ntarget = \"**/.env\"\n"),
        ["c.toml:2: scope.deny.target must be a folder or a file; \"**/.env\" is a pattern"]
    );
    assert_eq!(
        said("[[scope.allow]]\ntarget = \"\"\n"),
        ["c.toml:2: scope.allow.target must be a folder or a file, not empty"]
    );
}

#[test]
fn what_a_file_says_can_not_command_the_terminal() {
    for line in said("\"a\\u001b[2J\" = 1\n[\"b\\u001b[2J\"]\n[agent]\n\"c\\u009b\" = 1\n") {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}
