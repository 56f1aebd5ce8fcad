use longhaul_protocol::CallId;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn call(name: &str, arguments: &str) -> Arc<Item> {
    let (call, wire_id, signature) = (CallId::generate(), None, None);
    let (name, arguments) = (name.to_owned(), arguments.to_owned());
    Arc::new(Item::ToolCall { call, wire_id, name, arguments, signature })
}

fn text(text: &str) -> Arc<Item> {
    Arc::new(Item::Text { role: Role::Assistant, text: text.to_owned() })
}

fn read(answer: &[Arc<Item>]) -> Result<Vec<Value>, String> {
    list_entries(answer, "write", "items")
}

#[test]
fn entries_come_in_a_call_or_in_several() {
    let (one, two) = (call("write", r#"{"items": [1]}"#), call(" Write", r#"{"items": "[2]"}"#));
    let (broken, other) = (call("write", r#"{"items": [3"#), call("read", r#"{"items": [4]}"#));

    assert_eq!(read(std::slice::from_ref(&one)), Ok(vec![json!(1)]));
    assert_eq!(read(&[text("Here:"), one, broken.clone(), other, two]), Ok(vec![json!(1), json!(2)]));
    let error = read(&[broken]).unwrap_err();
    assert!(error.starts_with("the arguments of write: not JSON: "), "{error}");
}

#[test]
fn an_object_in_a_text_does_in_place_of_a_call() {
    let texts = [
        r#" {"items": [1]} "#,
        "```json\n{\"items\": [1]}\n```",
        "Here {it} is, not {\"pages\": []}: {\"items\": [1]}, I hope. {\"items\": [2]}",
    ];

    for answer in texts {
        assert_eq!(read(&[text(answer)]), Ok(vec![json!(1)]), "{answer}");
    }
}

#[test]
fn an_answer_without_the_list_is_none() {
    for answer in
        ["", "no", "[]", "7", "null", "{}", r#"{"items": 7}"#, r#"{"items": {}}"#, r#"{"items": "x"}"#]
    {
        assert!(read(&[text(answer)]).is_err_and(|error| error.starts_with("there was neither")), "{answer}");
        assert!(read(&[call("write", answer)]).is_err(), "{answer}");
    }
    assert!(read(&[]).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(answer in ".{0,200}") {
        let _ = read(&[text(&answer)]);
        let _ = read(&[call("write", &answer)]);
    }
}
