use longhaul_protocol::CallId;
use longhaul_tools::CallMessageContent;
use serde_json::json;

use super::*;

fn content(answer: &str, schema: &Value) -> Option<Value> {
    match parse_answer(answer, schema) {
        ParsedAnswer::Content(content) => Some(Value::Object(content)),
        ParsedAnswer::Declined | ParsedAnswer::Unfit(_) => None,
    }
}

/// Why an answer does not fit.
fn problem(answer: &str, schema: &Value) -> String {
    match parse_answer(answer, schema) {
        ParsedAnswer::Content(content) => panic!("{answer:?} fits: {content:?}"),
        ParsedAnswer::Declined => "declined".to_owned(),
        ParsedAnswer::Unfit(reason) => reason,
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

    assert!(
        question("?", &schema).text.contains("age: (a whole number) [30]"),
        "{:?}",
        question("?", &schema)
    );
    assert_eq!(content("", &schema), Some(json!({"name": "Ada", "age": 30})));
    assert_eq!(content("age: 31", &schema), Some(json!({"name": "Ada", "age": 31})));
    assert_eq!(content("{\"note\": \"x\"}", &schema), Some(json!({"name": "Ada", "age": 30, "note": "x"})));
}

/// E1: a slip is no refusal. The reason is told, and only a no declines.
#[test]
fn an_answer_that_does_not_fit_says_why_and_does_not_decline() {
    let schema = json!({
        "properties": {
            "age": {"type": "integer", "minimum": 0, "maximum": 150},
            "hero": {"type": "string", "oneOf": [{"const": "h-1", "title": "Superman"}, {"const": "h-2", "title": "Batman"}]},
            "name": {"type": "string"},
            "pets": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["cat", "dog"]}},
        },
        "required": ["name"],
    });

    let reasons = [
        "age: abc",
        "age: 151",
        "age: 5",
        "Bob",
        "name: Bob\nhero: Robin",
        "name: Bob\npets: cat, cow",
        "nme: Bob",
        "{\"name\": 5}",
    ]
    .map(|answer| problem(answer, &schema));

    assert_eq!(
        reasons,
        [
            "`age` must be a whole number from 0 to 150, not `abc`",
            "`age` must be a whole number from 0 to 150, not `151`",
            "`name` is required",
            "each line must be `name: value`, not `Bob`",
            "`hero` must be one of Superman, Batman, not `Robin`",
            "`pets` must be at least 1 values of cat, dog, separated by commas, not `cat, cow`",
            "there is no field `nme`",
            "`name` must be a text, not `5`",
        ]
    );
    assert_eq!(problem("no", &schema), "declined");
    assert_eq!(
        content("name: Bob\nhero: Batman\npets: cat, dog", &schema),
        Some(json!({"name": "Bob", "hero": "h-2", "pets": ["cat", "dog"]}))
    );
}

/// E1
#[test]
fn a_form_marks_what_is_required_and_lists_what_each_field_takes() {
    let schema = json!({
        "properties": {
            "colours": {"type": "array", "items": {"anyOf": [{"const": "#f00", "title": "Red"}, {"const": "#00f", "title": "Blue"}]}},
            "name": {"type": "string", "description": "Your name"},
        },
        "required": ["name"],
    });

    let text = question("Who?", &schema).text;

    assert!(text.contains("\ncolours: (values of Red, Blue, separated by commas)"), "{text}");
    assert!(text.ends_with("\nname (required): Your name"), "{text}");
}

/// E1: the server hears nothing of an answer that does not fit. The question comes again, with the reason.
#[tokio::test]
async fn the_question_comes_again_after_an_answer_that_does_not_fit() {
    let schema = json!({"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]});
    let request = json!({"mode": "form", "message": "How old?", "requestedSchema": schema});
    let request: ElicitRequestParams = serde_json::from_value(request).unwrap();
    let (sender, mut asked) = tokio::sync::mpsc::unbounded_channel();
    let line = CallLine::new(CallId::generate(), sender);

    let asking = tokio::spawn(async move { ask(&line, request).await });
    let mut texts = Vec::new();
    for reply in ["old", "36"] {
        let CallMessageContent::Ask { question, answer } = asked.recv().await.unwrap().content else {
            panic!("no question")
        };
        texts.push(question.text);
        answer.send(reply.to_owned()).unwrap();
    }
    let result = asking.await.unwrap();

    assert_eq!(
        texts,
        [
            "How old?",
            "That answer does not fit: `age` must be a whole number, not `old`. Answer again, or `decline`.\n\nHow old?",
        ]
    );
    assert_eq!(result.action, ElicitationAction::Accept);
    assert_eq!(result.content, Some(json!({"age": 36})));
}
