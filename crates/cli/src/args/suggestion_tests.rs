use super::with_suggestion;
use crate::args::Arguments;

/// What is said about a command line that is refused.
fn said(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let line = std::iter::once("longhaul".to_owned()).chain(words.clone()).map(Into::into).collect();
    let Err(error) = Arguments::parse_words(line) else { panic!("{words:?} is understood") };
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
        (&["mpc", "list"], "'mcp'"),
        (&["mcp", "add", "time", "uvx", "x"], "longhaul mcp add time -- uvx x"),
        (&["--jsno"], "--json is an option of longhaul run, longhaul resume"),
    ];

    for (words, nearest) in cases {
        let said = said(words);

        assert!(said.contains("tip: ") && said.contains(nearest), "{words:?}: {said}");
        assert!(said.contains("--help"), "it says where to read on: {said}");
    }
}

#[test]
fn a_prompt_without_quotes_is_answered_with_how_to_say_it() {
    let hint = "tip: quote the prompt: longhaul ";

    for (words, prompt) in [
        (&["fix", "the", "bug"][..], "'fix the bug'"),
        (&["don't", "panic"], "'don'\\''t panic'"),
        (&["fix", "it", "--now"], "\"…\""),
        (&["run", "the", "tests"], "run 'the tests'"),
    ] {
        assert!(said(words).contains(&format!("{hint}{prompt}")), "{}", said(words));
    }
}

#[test]
fn a_single_word_that_is_no_command_is_answered_with_how_to_say_it() {
    assert!(said(&["hi"]).contains("there is no command 'hi'"), "{}", said(&["hi"]));
    assert!(said(&["hi"]).contains("tip: to send it to the agent, use: longhaul -- hi"));
    assert!(said(&["--plain", "stauts"]).contains("tip: did you mean 'status'?"));
}

#[test]
fn what_has_a_nearest_name_or_belongs_to_a_command_is_not_taken_for_a_prompt() {
    assert!(!said(&["sesions", "list"]).contains("quotes"), "{}", said(&["sesions", "list"]));
    assert!(!said(&["sessions", "fix the bug"]).contains("quotes"));
    assert!(!said(&["status", "-p"]).contains("quotes"), "-p behind a command is no command");
    assert!(!said(&["--nothing-like-it"]).contains("a flag of"), "{}", said(&["--nothing-like-it"]));
}

#[test]
fn what_is_said_on_the_command_line_is_understood() {
    let parsed = |words: &[&str]| {
        let line = std::iter::once(&"longhaul").chain(words).map(Into::into).collect();
        Arguments::parse_words(line).unwrap_or_else(|error| panic!("{words:?}: {error}"))
    };
    let prompt_of_run = |words: &[&str]| match parsed(words).command {
        Some(crate::args::Command::Run(options)) => options.prompt,
        _ => panic!("{words:?} is no run"),
    };

    assert_eq!(parsed(&["fix the bug"]).talk.first_words(), Some("fix the bug"));
    assert_eq!(parsed(&["--", "status"]).talk.first_words(), Some("status"));
    assert_eq!(parsed(&["修复测试"]).talk.first_words(), Some("修复测试"));
    assert_eq!(prompt_of_run(&["-p", "status"]).as_deref(), Some("status"));
    assert_eq!(prompt_of_run(&["-s", "a", "-p", "hi", "--json"]).as_deref(), Some("hi"));
    assert_eq!(prompt_of_run(&["-c", "--json", "-p", "hi"]).as_deref(), Some("hi"));
    for command in ["schedules", "sessions", "mcp", "nodes"] {
        for verb in ["remove", "delete", "rm"] {
            assert!(parsed(&[command, verb, "a"]).command.is_some(), "{command} {verb}");
        }
    }
    for words in [["-s", "a", "status"], ["status", "-s", "a"]] {
        assert_eq!(parsed(&words).globals.session.as_deref(), Some("a"));
    }
}
