use proptest::prelude::*;

use super::*;
use crate::histories::{answered, any_item, call, shared, user_item};

fn read_call(arguments: &str) -> Result<ParsedSummary, String> {
    parse_summary(&shared(vec![answered("Here it is."), call(1, WRITE_SUMMARY, arguments)]))
}

fn read_text(text: &str) -> Result<ParsedSummary, String> {
    parse_summary(&shared(vec![answered(text)]))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn the_arguments_of_a_call_are_read_whatever_their_forms() {
    let written = read_call(
        r#"{"goal": " Ship it ", "directives": ["\"Never push\nto main.\""], "constraints": null,
            "decisions": "- use tabs\n- no unsafe", "done": ["one", 2, true, ["three"], null, "none"], "in_progress": "N/A",
            "next_action": ["run it", "then stop"], "files": {"a.rs": "the core"}, "unknown": 7,
            "withdrawn": ["“Use spaces”"]}"#,
    );

    let summary = Summary {
        goal: "Ship it".to_owned(),
        directives: owned(&["Never push to main."]),
        decisions: owned(&["use tabs", "no unsafe"]),
        done: owned(&["one", "2", "true", "three"]),
        next_action: "run it\nthen stop".to_owned(),
        files: owned(&[r#"{"a.rs":"the core"}"#]),
        ..Summary::default()
    };
    let withdrawn = owned(&["Use spaces"]);
    assert_eq!(written, Ok(ParsedSummary::InForm(WrittenSummary { summary, withdrawn })));
}

/// C6
#[test]
fn an_answer_that_says_nothing_is_an_error() {
    let empty = Err("the summary is empty".to_owned());

    assert_eq!(read_call("{}"), empty);
    assert_eq!(read_call(r#"{"goal": "", "done": ["none"], "files": [" "], "next_action": null}"#), empty);
    assert_eq!(read_text("  \n"), empty);
    assert_eq!(parse_summary(&[]), empty);
    assert_eq!(parse_summary(&shared(vec![user_item("a user's words"), call(1, "exec", "{}")])), empty);
}

#[test]
fn arguments_that_are_no_object_are_an_error_that_says_so() {
    let broken = read_call(r#"{"goal": "Ship"#).unwrap_err();

    assert!(broken.starts_with("the arguments of write_summary are not JSON: EOF"), "{broken}");
    assert_eq!(read_call("[1]").unwrap_err(), "the arguments of write_summary are not a JSON object");
}

/// M18
#[test]
fn a_text_is_read_under_its_headings_in_any_form() {
    let written = read_text(
        "Here is what I know.\n\n# Goal\nShip it\nsoon\n\n**Constraints and directives:**\n> \"Never push to main\"\n\
         ## Decisions ##\n1. use tabs\n2) no unsafe,\n   because of Ada\nDone\n- one\n* two\n\nIN PROGRESS:\n- [ ] three\n\
         Next action: run it\nCommands and results\n- `cargo test`: 3 failed\n- Files: two of them\n# Files\n- none\n\
         # Strange\nmore\n__Withdrawn__\n- 'Use spaces'\n",
    );

    let summary = Summary {
        goal: "Ship it\nsoon".to_owned(),
        directives: owned(&["Never push to main"]),
        decisions: owned(&["use tabs", "no unsafe, because of Ada"]),
        done: owned(&["one", "two"]),
        in_progress: owned(&["three"]),
        next_action: "run it".to_owned(),
        commands: owned(&["`cargo test`: 3 failed", "Files: two of them"]),
        notes: "Here is what I know.\n# Strange\nmore".to_owned(),
        ..Summary::default()
    };
    let withdrawn = owned(&["Use spaces"]);
    assert_eq!(written, Ok(ParsedSummary::InForm(WrittenSummary { summary, withdrawn })));
}

/// C6: it may be a summary, or talk: who asks has to be able to tell it from one that has a form.
#[test]
fn a_text_without_headings_is_notes_and_prose() {
    for text in ["We were\n\nbuilding a bridge.", "Sure! Let me read the next file.", "{\"file\": \"a.rs\"}"]
    {
        let read = read_text(text);

        let summary = Summary { notes: text.to_owned(), ..Summary::default() };
        assert_eq!(read, Ok(ParsedSummary::Prose(WrittenSummary { summary, withdrawn: vec![] })));
    }
    let heard = parse_summary(&shared(vec![answered("I look at it."), call(1, "read_file", "{}")]));
    assert!(matches!(heard, Ok(ParsedSummary::Prose(_))), "{heard:?}");
}

#[test]
fn a_heading_of_any_kind_is_a_form() {
    for text in ["# State of things\nhalf done", "Goal: ship it", "Sure!\n**Done**\n- it"] {
        let read = read_text(text);

        assert!(matches!(read, Ok(ParsedSummary::InForm(_))), "{text}: {read:?}");
    }
}

#[test]
fn a_text_in_a_block_of_code_is_read_as_what_is_in_it() {
    let summary = Summary { goal: "Ship it".to_owned(), ..Summary::default() };
    let expected = ParsedSummary::InForm(WrittenSummary { summary, withdrawn: vec![] });

    for text in [
        "```markdown\n# Goal\nShip it\n```",
        "```json\n{\"goal\": \"Ship it\"}\n```",
        "{\"goal\": \"Ship it\"}",
    ] {
        assert_eq!(read_text(text), Ok(expected.clone()), "{text}");
    }
}

proptest! {
    #[test]
    fn no_answer_makes_it_panic_and_every_entry_is_one_line(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        text in "(#|\\*|Goal|Directives|Next|:|- |> |\"|`|\n|\r| |1. |none|[{}]|🦀|\u{2028}){0,60}",
        items in proptest::collection::vec(any_item(), 0..5),
    ) {
        let noise = String::from_utf8_lossy(&bytes).into_owned();
        let json = serde_json::json!({"goal": &text, "directives": [&text, &noise], "done": &text}).to_string();

        let answers = [read_text(&noise), read_call(&noise), read_text(&text), read_call(&text), read_call(&json)];
        let _ = parse_summary(&shared(items));

        for read in answers.into_iter().flatten() {
            let (ParsedSummary::InForm(mut written) | ParsedSummary::Prose(mut written)) = read;
            for field in Field::ALL {
                if let FieldValue::List(list) = field.value_in(&mut written) {
                    prop_assert!(list.iter().all(|entry| !entry.is_empty() && *entry == one_line(entry)));
                }
            }
        }
    }
}
