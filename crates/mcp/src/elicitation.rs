//! An elicitation: a server asks the user for something while it works on a call. It becomes a question of the session.
//!
//! An answer is a text. A server that asks for one value gets it; one that asks for several gets them from lines of
//! `name: value` or from a JSON object. A field that is left out gets the server's default. An answer that does not fit is asked for
//! again, with the reason; no value is made up.

use longhaul_tools::{CallLine, CallQuestion};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value};

/// Answers that do not fit, after which the request is declined.
const MAX_ATTEMPTS: usize = 5;
/// Characters of an answer that its refusal quotes.
const MAX_QUOTED_CHARS: usize = 60;

/// Asks the user what the server asks, and returns the answer in the server's form.
pub(crate) async fn ask(line: &CallLine, request: ElicitRequestParams) -> ElicitResult {
    let decline = || ElicitResult::new(ElicitationAction::Decline);
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
        // We don't open addresses that a server names.
        return decline();
    };
    let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
    let CallQuestion { text, choices } = question(&message, &schema);
    let mut problem = String::new();
    for _ in 0..MAX_ATTEMPTS {
        let question = CallQuestion { text: format!("{problem}{text}"), choices: choices.clone() };
        let Some(answer) = line.ask(question).await else { break };
        match parse_answer(&answer, &schema) {
            ParsedAnswer::Content(content) => {
                return ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(content));
            }
            ParsedAnswer::Declined => break,
            ParsedAnswer::Unfit(reason) => {
                problem = format!("That answer does not fit: {reason}. Answer again, or `decline`.\n\n");
            }
        }
    }
    decline()
}

/// The question for the user: the server's words, and the fields that it wants.
fn question(message: &str, schema: &Value) -> CallQuestion {
    let fields = fields(schema);
    let mut text = message.trim().to_owned();
    let mut choices = Vec::new();
    match fields.as_slice() {
        [] => choices = vec!["yes".to_owned(), "no".to_owned()],
        [(_, field)] => {
            choices = choices_of(field).iter().map(FieldChoice::label).collect();
            if field["type"] == "boolean" {
                choices = vec!["yes".to_owned(), "no".to_owned()];
            } else if is_list(field) && !choices.is_empty() {
                // More than one may be chosen.
                text.push_str(&format!(
                    "\n\nAnswer with any of these, separated by commas: {}",
                    choices.join(", ")
                ));
                choices.clear();
            }
        }
        several => {
            text.push_str("\n\nAnswer with one line for each, as `name: value`, or `decline`. A field that you leave out gets the value in brackets, if it has one:");
            for (name, field) in several {
                let about = field["description"].as_str().or(field["title"].as_str()).unwrap_or_default();
                let kind = kind_of(field).map(|kind| format!("({kind})"));
                let default = field.get("default").map(|default| format!("[{}]", plain_text(default)));
                let required =
                    if default.is_none() && is_required(schema, name) { " (required)" } else { "" };
                let parts = [Some(about.to_owned()).filter(|about| !about.is_empty()), kind, default];
                let parts: Vec<String> = parts.into_iter().flatten().collect();
                text.push_str(&format!("\n{name}{required}: {}", parts.join(" ")));
            }
        }
    }
    CallQuestion { text, choices }
}

enum ParsedAnswer {
    Content(Map<String, Value>),
    Declined,
    /// It is no answer to the question, and why.
    Unfit(String),
}

fn parse_answer(answer: &str, schema: &Value) -> ParsedAnswer {
    let fields = fields(schema);
    let answer = answer.trim();
    let is_no = matches!(answer.to_lowercase().as_str(), "no" | "n" | "decline" | "cancel");
    let content = match fields.as_slice() {
        [] if is_no => return ParsedAnswer::Declined,
        [] => Ok(Map::new()),
        [(_, field)] if is_no && !takes_no(field, answer) => return ParsedAnswer::Declined,
        [_, _, ..] if is_no => return ParsedAnswer::Declined,
        _ if answer.starts_with('{') => json_values(answer, &fields),
        // Everything that is left out has its default, below.
        _ if answer.is_empty() => Ok(Map::new()),
        [(name, field)] => typed(answer, field)
            .map(|value| Map::from_iter([(name.clone(), value)]))
            .map_err(|expected| refusal(name, &expected, answer)),
        several => line_values(answer, several),
    };
    match content.and_then(|content| complete(content, schema, &fields)) {
        Ok(content) => ParsedAnswer::Content(content),
        Err(reason) => ParsedAnswer::Unfit(reason),
    }
}

/// Whether a no is a value of the field.
fn takes_no(field: &Value, answer: &str) -> bool {
    let is_truth = field["type"] == "boolean" && answer.to_lowercase().starts_with('n');
    is_truth || choices_of(field).iter().any(|choice| choice.label() == answer)
}

/// The values with the defaults of those that were left out, if no required one is missing.
fn complete(
    mut content: Map<String, Value>,
    schema: &Value,
    fields: &[(String, &Value)],
) -> Result<Map<String, Value>, String> {
    for (name, field) in fields {
        if let (None, Some(default)) = (content.get(name), field.get("default")) {
            content.insert(name.clone(), default.clone());
        }
    }
    let missing: Vec<String> = fields
        .iter()
        .filter(|(name, _)| is_required(schema, name) && !content.contains_key(name))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    match missing.as_slice() {
        [] => Ok(content),
        [one] => Err(format!("{one} is required")),
        several => Err(format!("{} are required", several.join(", "))),
    }
}

fn line_values(answer: &str, fields: &[(String, &Value)]) -> Result<Map<String, Value>, String> {
    let mut content = Map::new();
    for line in answer.lines().filter(|line| !line.trim().is_empty()) {
        let (name, value) = line
            .split_once(':')
            .ok_or_else(|| format!("each line must be `name: value`, not {}", quoted(line.trim())))?;
        let (name, field) = find_field(name.trim(), fields)?;
        let value = typed(value.trim(), field).map_err(|expected| refusal(name, &expected, value.trim()))?;
        content.insert(name.clone(), value);
    }
    Ok(content)
}

fn json_values(answer: &str, fields: &[(String, &Value)]) -> Result<Map<String, Value>, String> {
    let content: Map<String, Value> =
        serde_json::from_str(answer).map_err(|error| format!("it is no JSON object ({error})"))?;
    for (name, value) in &content {
        let (name, field) = find_field(name, fields)?;
        check(value, field).map_err(|expected| refusal(name, &expected, &plain_text(value)))?;
    }
    Ok(content)
}

fn find_field<'a, 'v>(
    name: &str,
    fields: &'a [(String, &'v Value)],
) -> Result<(&'a String, &'v Value), String> {
    let found = fields.iter().find(|(known, _)| known == name);
    found.map(|(name, field)| (name, *field)).ok_or_else(|| format!("there is no field {}", quoted(name)))
}

fn refusal(name: &str, expected: &str, value: &str) -> String {
    format!("`{name}` must be {expected}, not {}", quoted(value))
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(MAX_QUOTED_CHARS).collect();
    format!("`{short}`")
}

/// A value as a person writes it.
fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The text as a value of the field's type, or what the field takes.
fn typed(text: &str, field: &Value) -> Result<Value, String> {
    let choices = choices_of(field);
    let chosen = |text: &str| {
        let choice = choices.iter().find(|choice| choice.value == text);
        let choice = choice.or_else(|| choices.iter().find(|choice| choice.title == Some(text)));
        Value::from(choice.map_or(text, |choice| choice.value))
    };
    let value = match field["type"].as_str() {
        Some("boolean") => match text.to_lowercase().as_str() {
            "yes" | "y" | "true" => true.into(),
            "no" | "n" | "false" => false.into(),
            _ => Value::Null,
        },
        Some("integer") => text.parse::<i64>().map(Value::from).unwrap_or_default(),
        Some("number") => text.parse::<f64>().map(Value::from).unwrap_or_default(),
        Some("array") => text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(chosen).collect(),
        _ => chosen(text),
    };
    check(&value, field).map(|()| value)
}

/// Whether the field takes the value. If not, what it takes.
fn check(value: &Value, field: &Value) -> Result<(), String> {
    let choices = choices_of(field);
    let is_choice = |value: &Value| {
        value
            .as_str()
            .is_some_and(|word| choices.is_empty() || choices.iter().any(|choice| choice.value == word))
    };
    let is_within = |least: &str, most: &str, value: f64| {
        field[least].as_f64().is_none_or(|least| value >= least)
            && field[most].as_f64().is_none_or(|most| value <= most)
    };
    let fits = match field["type"].as_str() {
        Some("boolean") => value.is_boolean(),
        Some("integer") => {
            value.is_i64() && value.as_f64().is_some_and(|number| is_within("minimum", "maximum", number))
        }
        Some("number") => value.as_f64().is_some_and(|number| is_within("minimum", "maximum", number)),
        Some("array") => value.as_array().is_some_and(|values| {
            values.iter().all(is_choice) && is_within("minItems", "maxItems", values.len() as f64)
        }),
        _ => {
            let chars = value.as_str().unwrap_or_default().chars().count();
            is_choice(value) && is_within("minLength", "maxLength", chars as f64)
        }
    };
    if fits { Ok(()) } else { Err(kind_of(field).unwrap_or_else(|| "a text".to_owned())) }
}

/// What the field takes, in words. `None` for any text.
fn kind_of(field: &Value) -> Option<String> {
    let choices: Vec<String> = choices_of(field).iter().map(FieldChoice::label).collect();
    let choices = choices.join(", ");
    let range = |least: &str, most: &str| match (field[least].as_f64(), field[most].as_f64()) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    };
    Some(match field["type"].as_str() {
        Some("boolean") => "yes or no".to_owned(),
        Some("integer") => format!("a whole number{}", range("minimum", "maximum")),
        Some("number") => format!("a number{}", range("minimum", "maximum")),
        Some("array") => {
            let count = match (field["minItems"].as_u64(), field["maxItems"].as_u64()) {
                (Some(least), Some(most)) => format!("{least} to {most} "),
                (Some(least), None) => format!("at least {least} "),
                (None, Some(most)) => format!("at most {most} "),
                (None, None) => String::new(),
            };
            let of = if choices.is_empty() { String::new() } else { format!(" of {choices}") };
            format!("{count}values{of}, separated by commas")
        }
        _ if !choices.is_empty() => format!("one of {choices}"),
        _ => match (field["minLength"].as_u64(), field["maxLength"].as_u64(), field["format"].as_str()) {
            (None, None, None) => return None,
            (None, None, Some(format)) => format!("a text, format {format}"),
            (Some(least), Some(most), _) => format!("a text of {least} to {most} characters"),
            (Some(least), None, _) => format!("a text of at least {least} characters"),
            (None, Some(most), _) => format!("a text of at most {most} characters"),
        },
    })
}

fn fields(schema: &Value) -> Vec<(String, &Value)> {
    let properties = schema["properties"].as_object();
    properties.into_iter().flatten().map(|(name, field)| (name.clone(), field)).collect()
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema["required"].as_array().is_some_and(|required| required.iter().any(|required| required == name))
}

fn is_list(field: &Value) -> bool {
    field["type"] == "array"
}

/// A word that a field may have, and the server's name for it.
struct FieldChoice<'a> {
    value: &'a str,
    title: Option<&'a str>,
}

impl FieldChoice<'_> {
    /// What the user sees, and may answer.
    fn label(&self) -> String {
        self.title.unwrap_or(self.value).to_owned()
    }
}

/// The words that a field may have, or the items of a list.
fn choices_of(field: &Value) -> Vec<FieldChoice<'_>> {
    let field = if is_list(field) { &field["items"] } else { field };
    let list = |key: &str| field[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let titles = list("enumNames");
    let named = list("enum").iter().enumerate().filter_map(|(place, value)| {
        Some(FieldChoice { value: value.as_str()?, title: titles.get(place).and_then(Value::as_str) })
    });
    let titled = list("oneOf").iter().chain(list("anyOf")).filter_map(|choice| {
        Some(FieldChoice { value: choice["const"].as_str()?, title: choice["title"].as_str() })
    });
    let mut choices: Vec<FieldChoice<'_>> = named.chain(titled).collect();
    // Only a title of its own names a choice.
    for place in 0..choices.len() {
        let title = choices[place].title;
        let is_other = |(other, choice): (usize, &FieldChoice<'_>)| {
            other != place && (choice.title == title || Some(choice.value) == title)
        };
        if choices.iter().enumerate().any(is_other) {
            choices[place].title = None;
        }
    }
    choices
}

#[cfg(test)]
#[path = "elicitation_tests.rs"]
mod tests;
