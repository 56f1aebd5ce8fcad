//! An elicitation: a server asks the user for something while it works on a call. It becomes a question of the session.
//!
//! An answer is a text. A server that asks for one value gets it; one that asks for several gets them from lines of
//! `name: value` or from a JSON object. A field that is left out gets the server's default. An answer that does not fit is declined;
//! no value is made up.

use longhaul_tools::{CallLine, CallQuestion};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

/// Asks the user what the server asks, and returns the answer in the server's form.
pub(crate) async fn ask(line: &CallLine, request: ElicitRequestParams) -> ElicitResult {
    let decline = || ElicitResult::new(ElicitationAction::Decline);
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
        // We don't open addresses that a server names.
        return decline();
    };
    let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
    let Some(answer) = line.ask(question(&message, &schema)).await else { return decline() };
    match parse_answer(&answer, &schema) {
        ParsedAnswer::Content(content) => {
            ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content))
        }
        ParsedAnswer::Declined => decline(),
    }
}

/// The question for the user: the server's words, and the fields that it wants.
fn question(message: &str, schema: &Value) -> CallQuestion {
    let fields = fields(schema);
    let mut text = message.trim().to_owned();
    let mut choices = Vec::new();
    match fields.as_slice() {
        [] => choices = vec!["yes".to_owned(), "no".to_owned()],
        [(_, field)] => {
            choices = words_of(field);
            if field["type"] == "boolean" {
                choices = vec!["yes".to_owned(), "no".to_owned()];
            }
        }
        several => {
            text.push_str("\n\nAnswer with one line for each, as `name: value`. A field that you leave out gets the value in brackets, if it has one:");
            for (name, field) in several {
                let about = field["description"].as_str().or(field["title"].as_str()).unwrap_or_default();
                let words = words_of(field);
                let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
                let default = field.get("default").map(|default| format!(" [{}]", plain_text(default)));
                text.push_str(&format!("\n{name}: {about}{words}{}", default.unwrap_or_default()));
            }
        }
    }
    CallQuestion { text, choices }
}

enum ParsedAnswer {
    Content(Map<String, Value>),
    Declined,
}

fn parse_answer(answer: &str, schema: &Value) -> ParsedAnswer {
    let fields = fields(schema);
    let answer = answer.trim();
    let is_no = matches!(answer.to_lowercase().as_str(), "no" | "n" | "decline" | "cancel");
    let content = match fields.as_slice() {
        [] if is_no => None,
        [] => Some(Map::new()),
        _ if answer.starts_with('{') => serde_json::from_str(answer).ok(),
        // Everything that is left out has its default, below.
        _ if answer.is_empty() => Some(Map::new()),
        [(name, field)]
            if is_no && field["type"] != "boolean" && !words_of(field).iter().any(|word| word == answer) =>
        {
            let _ = name;
            None
        }
        [(name, field)] => typed(answer, field).map(|value| Map::from_iter([(name.clone(), value)])),
        several => several_values(answer, several),
    };
    let content = content.map(|mut content: Map<String, Value>| {
        for (name, field) in &fields {
            if let (None, Some(default)) = (content.get(name), field.get("default")) {
                content.insert(name.clone(), default.clone());
            }
        }
        content
    });
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let is_complete = |content: &Map<String, Value>| {
        required.iter().filter_map(Value::as_str).all(|name| content.contains_key(name))
    };
    content.filter(is_complete).map_or(ParsedAnswer::Declined, ParsedAnswer::Content)
}

fn several_values(answer: &str, fields: &[(String, &Value)]) -> Option<Map<String, Value>> {
    let mut content = Map::new();
    for line in answer.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line.split_once(':')?;
        let (name, field) = fields.iter().find(|(known, _)| known == name.trim())?;
        content.insert(name.clone(), typed(value.trim(), field)?);
    }
    Some(content)
}

/// A value as a person writes it.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text as a value of the field's type. `None` if it can't be one.
fn typed(text: &str, field: &Value) -> Option<Value> {
    match field["type"].as_str() {
        Some("boolean") => match text.to_lowercase().as_str() {
            "yes" | "y" | "true" => Some(true.into()),
            "no" | "n" | "false" => Some(false.into()),
            _ => None,
        },
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text.parse::<f64>().ok().map(Value::from),
        Some("array") => Some(text.split(',').map(|part| Value::from(part.trim())).collect()),
        _ => {
            let words = words_of(field);
            (words.is_empty() || words.iter().any(|word| word == text)).then(|| text.into())
        }
    }
}

fn fields(schema: &Value) -> Vec<(String, &Value)> {
    let properties = schema["properties"].as_object();
    properties.into_iter().flatten().map(|(name, field)| (name.clone(), field)).collect()
}

/// The words that a field may have.
fn words_of(field: &Value) -> Vec<String> {
    let named = field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let titled =
        field["oneOf"].as_array().into_iter().flatten().filter_map(|choice| choice["const"].as_str());
    named.chain(titled).map(str::to_owned).collect()
}

#[cfg(test)]
#[path = "elicitation_tests.rs"]
mod tests;
