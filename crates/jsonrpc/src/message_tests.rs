use serde_json::{Value, json};

use super::{Message, parse_message};

/// The id and the code of the answer to a line that is no message.
fn refusal(line: &str) -> (Value, i32) {
    match parse_message(line.as_bytes()) {
        Ok(message) => panic!("{line}: {message:?}"),
        Err(bad) => (bad.id, bad.error.code()),
    }
}

/// E3, E6.
#[test]
fn garbage_is_answered_with_the_code_that_fits() {
    assert_eq!(refusal("{"), (Value::Null, -32_700));
    assert_eq!(refusal("hello"), (Value::Null, -32_700));
    assert_eq!(refusal("\u{0}\u{1}"), (Value::Null, -32_700));
    assert_eq!(refusal(&"[".repeat(100_000)), (Value::Null, -32_700));
    assert_eq!(refusal("[]"), (Value::Null, -32_600));
    assert_eq!(refusal("3"), (Value::Null, -32_600));
    assert_eq!(refusal(r#"{"id":7,"method":"initialize"}"#), (json!(7), -32_600));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#), (Value::Null, -32_600));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":7,"method":3}"#), (Value::Null, -32_600));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0","id":"a"}"#), (json!("a"), -32_600));
    assert_eq!(refusal(r#"{"jsonrpc":"2.0"}"#), (Value::Null, -32_600));
}

#[test]
fn bytes_that_are_no_text_are_no_json() {
    let bad = parse_message(b"{\"jsonrpc\":\"\xff\"}").unwrap_err();

    assert_eq!((bad.id, bad.error.code()), (Value::Null, -32_700));
}

#[test]
fn an_id_of_null_is_an_id() {
    let message = parse_message(br#"{"jsonrpc":"2.0","id":null,"method":"initialize"}"#).unwrap();

    assert!(matches!(message, Message::Request { id: Value::Null, .. }), "{message:?}");
}
