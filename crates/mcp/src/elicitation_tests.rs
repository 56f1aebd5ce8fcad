use serde_json::json;

use super::*;

fn content(answer: &str, schema: &Value) -> Option<Value> {
    match parse_answer(answer, schema) {
        ParsedAnswer::Content(content) => Some(Value::Object(content)),
        ParsedAnswer::Declined => None,
    }
}

/// E1
#[test]
fn one_field_takes_the_answer_as_its_value_and_no_declines() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});

    assert_eq!(question("Your name?", &schema), CallQuestion { text: "Your name?".into(), choices: vec![] });
    assert_eq!(content("Ada", &schema), Some(json!({"name": "Ada"})));
    assert_eq!(content("no", &schema), None);
}

/// E1
#[test]
fn a_choice_and_a_truth_offer_their_words_and_nothing_else_is_taken() {
    let choice =
        json!({"properties": {"size": {"type": "string", "enum": ["S", "M"]}}, "required": ["size"]});
    let truth = json!({"properties": {"sure": {"type": "boolean"}}, "required": ["sure"]});

    assert_eq!(question("?", &choice).choices, ["S", "M"]);
    assert_eq!(content("M", &choice), Some(json!({"size": "M"})));
    assert_eq!(content("XL", &choice), None);
    assert_eq!(content("yes", &truth), Some(json!({"sure": true})));
    assert_eq!(content("no", &truth), Some(json!({"sure": false})));
}

/// E1
#[test]
fn several_fields_come_as_lines_or_as_an_object() {
    let schema = json!({
        "properties": {"age": {"type": "integer"}, "name": {"type": "string"}}, "required": ["name"],
    });

    assert!(question("Who?", &schema).text.contains("\nage: "));
    assert_eq!(content("name: Ada\nage: 36", &schema), Some(json!({"age": 36, "name": "Ada"})));
    assert_eq!(content(r#"{"name": "Ada"}"#, &schema), Some(json!({"name": "Ada"})));
    assert_eq!(content("age: 36", &schema), None);
    assert_eq!(content("name: Ada\nage: old", &schema), None);
}

/// E1: what the user leaves out has the default that the server gave it, and the question shows it.
#[test]
fn what_is_left_out_has_its_default() {
    let schema = json!({"properties": {
        "name": {"type": "string", "default": "Ada"},
        "age": {"type": "integer", "default": 30},
        "note": {"type": "string"},
    }});

    assert!(question("?", &schema).text.contains("age:  [30]"), "{:?}", question("?", &schema));
    assert_eq!(content("", &schema), Some(json!({"name": "Ada", "age": 30})));
    assert_eq!(content("age: 31", &schema), Some(json!({"name": "Ada", "age": 31})));
    assert_eq!(content("{\"note\": \"x\"}", &schema), Some(json!({"name": "Ada", "age": 30, "note": "x"})));
}
