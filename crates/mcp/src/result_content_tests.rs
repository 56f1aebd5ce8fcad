use serde_json::json;

use super::*;

fn outcome(result: serde_json::Value) -> ToolOutcome {
    outcome_of(serde_json::from_value(result).unwrap())
}

#[test]
fn texts_are_joined_and_an_error_stays_one() {
    let found = outcome(json!({
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "isError": true,
    }));

    assert_eq!((found.content.as_str(), found.is_error), ("one\ntwo", true));
}

#[test]
fn an_image_is_kept_and_a_damaged_one_is_named() {
    let good = STANDARD.encode(b"\x89PNG");
    let found = outcome(json!({"content": [
        {"type": "image", "data": good, "mimeType": "image/png"},
        {"type": "image", "data": "***", "mimeType": "image/png"},
        {"type": "image", "data": good, "mimeType": "image/tiff"},
    ]}));

    assert_eq!(found.images, [ToolImage { media: "image/png".to_owned(), bytes: b"\x89PNG".to_vec() }]);
    let expected =
        "[an image that is left out: it is damaged]\n[an image that is left out: no model takes its type]";
    assert_eq!(found.content, expected);
}

#[test]
fn data_without_a_text_is_shown_and_nothing_is_never_empty() {
    assert_eq!(outcome(json!({"content": [], "structuredContent": {"n": 1}})).content, r#"{"n":1}"#);
    assert_eq!(outcome(json!({"content": []})).content, "(no output)");
}
