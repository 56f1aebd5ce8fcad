use serde_json::json;

use super::*;

fn parameters(names: &[&str]) -> Vec<PromptParameter> {
    let parameter = |name: &&str| PromptParameter {
        name: name.trim_end_matches('?').to_owned(),
        is_required: !name.ends_with('?'),
    };
    names.iter().map(parameter).collect()
}

fn parsed(names: &[&str], text: &str) -> Result<Value, String> {
    parse_arguments(&parameters(names), text).map(Value::Object)
}

#[test]
fn values_are_taken_by_name_and_in_order() {
    assert_eq!(parsed(&["topic"], "sea birds of the north"), Ok(json!({"topic": "sea birds of the north"})));
    assert_eq!(parsed(&["city", "day?"], "Graz"), Ok(json!({"city": "Graz"})));
    assert_eq!(parsed(&["city", "day?"], "day=today Graz"), Ok(json!({"city": "Graz", "day": "today"})));
    assert_eq!(
        parsed(&["city", "day"], "\"Bad Ischl\" next week"),
        Ok(json!({"city": "Bad Ischl", "day": "next week"}))
    );
    assert_eq!(parsed(&["resourceType"], "RESOURCETYPE=Blob"), Ok(json!({"resourceType": "Blob"})));
    // An equals sign behind a word that is no argument belongs to the value.
    assert_eq!(parsed(&["query"], "a=b"), Ok(json!({"query": "a=b"})));
    assert_eq!(parsed(&[], ""), Ok(json!({})));
}

#[test]
fn missing_and_needless_arguments_are_named() {
    assert_eq!(
        parsed(&["city", "day"], "day=today"),
        Err("the prompt needs city: type NAME=VALUE behind its name".to_owned())
    );
    assert_eq!(parsed(&[], "more"), Err("the prompt takes no arguments".to_owned()));
    assert_eq!(
        parsed(&["city"], "city=Graz and more"),
        Err("the prompt has no argument for \"and more\"".to_owned())
    );
}
