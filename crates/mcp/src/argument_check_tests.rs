use serde_json::json;

use super::*;

fn check(schema: &Value, arguments: &str) -> Result<Map<String, Value>, String> {
    check_arguments("s__t", schema, arguments).map_err(|outcome| outcome.content)
}

/// T6, E2
#[test]
fn arguments_that_fit_go_through_as_they_are() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "x": {"type": ["number", "null"]},
            "of": {"$ref": "#/$defs/kind"},
            "any": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
        },
        "required": ["n"],
        "$defs": {"kind": {"enum": ["a", "b"]}},
    });

    for arguments in [r#"{"n": 1}"#, r#"{"n": 2.0, "x": null, "of": "b", "any": ["z"], "more": 1}"#] {
        let found = check(&schema, arguments);
        assert_eq!(found.map(Value::Object), Ok(serde_json::from_str(arguments).unwrap()));
    }
    assert_eq!(check(&json!({"type": "object"}), ""), Ok(Map::new()));
}

/// T6, E2
#[test]
fn what_does_not_fit_is_not_sent_and_the_field_is_named() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "maximum": 5},
            "names": {"type": "array", "items": {"type": "string", "maxLength": 2}},
        },
        "required": ["n"],
        "additionalProperties": false,
    });
    let cases = [
        ("{", "not JSON"),
        ("[1]", "must be of type object"),
        ("{}", "the field `n` is missing"),
        (r#"{"n": "1"}"#, r#"`n` must be of type integer, not "1""#),
        (r#"{"n": 1.5}"#, "`n` must be of type integer"),
        (r#"{"n": 6}"#, "`n` must be at most 5, not 6"),
        (r#"{"n": 1, "names": ["abc"]}"#, "`names[0]` must be at most 2 characters, not 3"),
        (r#"{"n": 1, "m": 2}"#, "there is no field `m`; there are: `n`, `names`"),
    ];

    for (arguments, expected) in cases {
        let found = check(&schema, arguments).unwrap_err();
        assert!(found.starts_with("s__t was not run") && found.contains(expected), "{arguments}: {found}");
    }
}

/// T6
#[test]
fn a_schema_that_refers_to_itself_ends() {
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}});

    assert!(check(&schema, r#"{"a": 1}"#).is_ok());
}

/// E1: a server's schema costs bounded work, whatever it refers to.
#[test]
fn a_schema_that_refers_to_itself_in_many_ways_is_checked_in_bounded_time() {
    let itself = json!({"$ref": "#"});
    let schema = json!({"type": "object", "anyOf": vec![itself; 10], "required": ["never"]});

    let outcome = check(&schema, "{}");

    assert!(outcome.is_err_and(|error| error.contains("never")));
}

/// T6, E2: null in place of an optional field says that it is left out. The server gets it as the model wrote it.
#[test]
fn null_is_taken_for_an_optional_field_and_for_no_other() {
    let schema = json!({
        "type": "object",
        "properties": {"flag": {"type": "boolean"}, "name": {"type": "string"}},
        "required": ["name"],
        "additionalProperties": false,
    });

    let found = check(&schema, r#"{"name": "a", "flag": null}"#);
    assert_eq!(found.map(Value::Object), Ok(json!({"name": "a", "flag": null})));
    assert!(check(&schema, r#"{"name": null}"#).unwrap_err().contains("`name`"));
    assert!(check(&schema, r#"{"name": "a", "other": null}"#).unwrap_err().contains("other"));
}
