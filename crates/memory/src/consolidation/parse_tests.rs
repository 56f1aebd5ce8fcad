use longhaul_protocol::{CallId, Role};

use super::*;

fn call(arguments: &str) -> Vec<Arc<Item>> {
    vec![Arc::new(Item::ToolCall {
        call: CallId::generate(),
        wire_id: None,
        name: WRITE_PAGES.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
    })]
}

fn text(text: &str) -> Vec<Arc<Item>> {
    vec![Arc::new(Item::Text { role: Role::Assistant, text: text.to_owned() })]
}

fn edit() -> PageEditRequest {
    PageEditRequest {
        page: "core".to_owned(),
        text: "- tea".to_owned(),
        reason: "said".to_owned(),
        items: vec![1, 2],
        dropped: vec!["coffee".to_owned()],
    }
}

const OBJECT: &str =
    r#"{"pages":[{"page":"core","text":"- tea","reason":"said","items":[1,"[2]"],"dropped":["coffee"]}]}"#;

#[test]
fn a_call_and_the_same_object_in_a_text_are_understood() {
    let listed = format!(r#"{{"pages":{}}}"#, serde_json::to_string(&OBJECT[9..OBJECT.len() - 1]).unwrap());
    let answers =
        [call(OBJECT), text(&format!("Here {{it}} is:\n```json\n{OBJECT}\n```\nDone.")), call(&listed)];

    for answer in answers {
        assert_eq!(parse_edits(&answer), Ok(ParsedEdits { edits: vec![edit()], refused: vec![] }));
    }
}

/// Y8: how far was read counts for all of them.
#[test]
fn several_calls_count_together() {
    let other = OBJECT.replace("core", "tea");

    let answered = parse_edits(&[call(OBJECT), call(&other)].concat()).unwrap();

    assert_eq!(answered.edits, [edit(), PageEditRequest { page: "tea".to_owned(), ..edit() }]);
}

#[test]
fn an_empty_list_changes_nothing() {
    assert_eq!(parse_edits(&call(r#"{"pages":[]}"#)), Ok(ParsedEdits::default()));
}

#[test]
fn an_answer_of_another_form_is_told_what_is_wrong_with_it() {
    let cases = [
        (text("I have nothing to say"), "neither a call of write_pages nor"),
        (call("{\"pages\":[{"), "not JSON"),
        (call("[]"), "no list `pages`"),
        (call(r#"{"pages":"all"}"#), "no list `pages`"),
        (call(r#"{"pages":[{"page":"core"}]}"#), "missing field `text`"),
        (vec![], "neither a call"),
    ];

    for (answer, expected) in cases {
        let reason = parse_edits(&answer).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn what_is_no_edit_is_refused_and_the_rest_is_kept() {
    let answer =
        r#"{"pages":[7,{"page":"a"},{"page":"a","text":"","items":["x"]},{"page":"b","text":"- b"}]}"#;

    let answered = parse_edits(&call(answer)).unwrap();

    assert_eq!(answered.edits.iter().map(|edit| edit.page.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(answered.refused.len(), 3);
    assert!(
        answered.refused[2].contains("page 3 of the answer: `items` has something"),
        "{:?}",
        answered.refused
    );
}
