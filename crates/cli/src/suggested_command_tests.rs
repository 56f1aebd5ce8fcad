use clap::Parser;

use super::*;
use crate::args::Arguments;

#[test]
fn words_that_a_shell_would_take_apart_are_quoted() {
    let words = ["cli:work-1a2b3c4d", "run:01J", "my work", "it's", "$HOME", "", "-s", "über"];

    let quoted = words.map(quoted);

    let expected =
        ["cli:work-1a2b3c4d", "run:01J", "'my work'", r"'it'\''s'", "'$HOME'", "''", "-s", "'über'"];
    assert_eq!(quoted, expected);
}

/// S1: what was said on the command line must be said again.
#[test]
fn the_way_on_names_the_home_the_config_and_the_model_that_were_named() {
    let plain = Arguments::parse_from(["longhaul", "run", "x"]);
    let given = ["longhaul", "--home", "/h o", "--model", "m/x", "--config", "/c.toml", "run", "x"];
    let given = Arguments::parse_from(given);

    let ways = [plain, given].map(|arguments| resume(&arguments.globals, "a b"));

    let full = "longhaul --home '/h o' --config /c.toml --model m/x resume 'a b'";
    assert_eq!(ways, ["longhaul resume 'a b'", full]);
}

/// S1: also for a key that looks like a flag.
#[test]
fn the_way_on_is_taken_for_what_it_is() {
    let Arguments { globals, .. } = Arguments::parse_from(["longhaul"]);

    let ways = [resume(&globals, "-x"), open_chat(&globals, "-x")];

    assert_eq!(ways, ["longhaul resume -- -x", "longhaul -s=-x"]);
    for way in ways {
        Arguments::try_parse_from(way.split(' ')).unwrap_or_else(|error| panic!("{way}: {error}"));
    }
}
