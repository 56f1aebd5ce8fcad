use clap::Parser;

use super::with_suggestion;
use crate::args::Arguments;

/// What is said about a command line that is refused.
fn said(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let line = std::iter::once("longhaul".to_owned()).chain(words.clone());
    let Err(error) = Arguments::try_parse_from(line) else { panic!("{words:?} is understood") };
    with_suggestion(error, &words).to_string()
}

#[test]
fn what_is_misspelt_is_answered_with_the_nearest_at_every_level() {
    let cases: &[(&[&str], &str)] = &[
        (&["sesions"], "'sessions'"),
        (&["sessions", "shwo"], "'show'"),
        (&["sessions", "shwo", "cli:a"], "'show'"),
        (&["tasks", "lsit"], "'list'"),
        (&["memory", "serach"], "'search'"),
        (&["config", "shema"], "'schema'"),
        (&["verify", "--jsno"], "'--json'"),
        (&["sessions", "list", "--jsno"], "'--json'"),
        (&["sessions", "show", "a", "--form", "3"], "'--from'"),
        (&["run", "--modl", "x", "hi"], "'--model'"),
        (&["--hoem", "x", "sessions"], "'--home'"),
        (&["send", "-s", "a", "--mode", "jion", "hi"], "'join'"),
        (&["completions", "bsh"], "'bash'"),
        (&["--jsno"], "--json is an option of longhaul run, longhaul resume"),
    ];

    for (words, nearest) in cases {
        let said = said(words);

        assert!(said.contains("tip: ") && said.contains(nearest), "{words:?}: {said}");
        assert!(said.contains("--help"), "it says where to read on: {said}");
    }
}

#[test]
fn something_said_without_a_command_is_answered_with_how_to_say_it() {
    let hint = "tip: to prompt the agent, use: longhaul run ";

    assert!(said(&["fix the bug"]).contains(&format!("{hint}'fix the bug'")));
    assert!(said(&["fix", "the", "bug"]).contains(&format!("{hint}'fix the bug'")));
    assert!(
        said(&["don't panic"]).contains(&format!("{hint}'don'\\''t panic'")),
        "{}",
        said(&["don't panic"])
    );
    assert!(said(&["fix", "it", "--now"]).contains(&format!("{hint}\"…\"")));
    assert!(said(&["run", "the", "tests"]).contains("quote the prompt: longhaul run 'the tests'"));
}

#[test]
fn what_has_a_nearest_name_or_belongs_to_a_command_is_not_taken_for_a_prompt() {
    assert!(!said(&["sesions"]).contains("longhaul run"));
    assert!(!said(&["sessions", "fix the bug"]).contains("longhaul run"));
    assert!(!said(&["--nothing-like-it"]).contains("tip:"), "{}", said(&["--nothing-like-it"]));
}
