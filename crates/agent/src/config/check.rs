//! Whether a file says what can be said: every key is known and every value is of its kind. All mistakes are found at once,
//! each with its line.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::unknown;
use super::schema::{choices, config_schema};
use crate::Error;

/// Something that a file may not say.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// All mistakes of a file as one error: a line each.
pub(crate) fn refusal(file: &str, mut mistakes: Vec<Mistake>) -> Error {
    mistakes.sort_by_key(|mistake| mistake.line);
    let mut origin = file.to_owned();
    let mut reason = String::new();
    for (number, mistake) in mistakes.into_iter().enumerate() {
        match number {
            0 => origin = format!("{file}:{}", mistake.line),
            _ => reason.push_str(&format!("\n{file}:{}: ", mistake.line)),
        }
        reason.push_str(&mistake.reason);
    }
    Error::Config { origin, reason }
}

/// The line, from 1 on, of a place in a text.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

/// What is wrong with a file.
pub(crate) fn mistakes(text: &str, table: &DeTable<'_>) -> Vec<Mistake> {
    let mut check = Check { text, found: Vec::new() };
    check.table("", 1, table, config_schema());
    check.found
}

struct Check<'a> {
    text: &'a str,
    found: Vec<Mistake>,
}

impl Check<'_> {
    fn line_of<T>(&self, part: &Spanned<T>) -> usize {
        line_at(self.text, part.span().start)
    }

    fn say(&mut self, line: usize, reason: String) {
        self.found.push(Mistake { line, reason });
    }

    fn table(&mut self, path: &str, line: usize, table: &DeTable<'_>, schema: &Value) {
        for (key, value) in table.iter() {
            let name: &str = key.get_ref();
            let line = self.line_of(key);
            match schema["properties"].get(name) {
                Some(field) => {
                    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                    self.value(&path, line, value, field);
                }
                None => {
                    let known: Vec<&str> = names(&schema["properties"]).collect();
                    self.say(line, unknown(path, name, value.get_ref(), &known));
                }
            }
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for missing in required.filter(|name| !table.contains_key(*name)) {
            self.say(line, format!("{path} needs a {missing}"));
        }
    }

    fn value(&mut self, path: &str, line: usize, value: &Spanned<DeValue<'_>>, schema: &Value) {
        let kind = schema["type"].as_str().unwrap_or("string");
        match (kind, value.get_ref()) {
            ("object", DeValue::Table(table)) => self.table(path, line, table, schema),
            ("array", DeValue::Array(items)) => {
                let of_tables = schema["items"]["type"] == "object";
                let path = if of_tables { path.to_owned() } else { format!("each of {path}") };
                for item in items {
                    self.value(&path, self.line_of(item), item, &schema["items"]);
                }
            }
            ("string", DeValue::String(text)) => {
                let wrong = match choices(schema) {
                    Some(words) if words.contains(&text.as_ref()) => None,
                    Some(_) => Some(format!("should be {}, not {text:?}", expected(path, schema))),
                    None => wrong_text(path, text),
                };
                if let Some(wrong) = wrong {
                    self.say(line, format!("{path} {wrong}"));
                }
            }
            ("boolean", DeValue::Boolean(_)) => {}
            ("integer" | "number", DeValue::Integer(whole)) => {
                let number = i64::from_str_radix(whole.as_str(), whole.radix()).ok();
                self.number(path, line, number.map(|number| number as f64), whole.as_str(), schema);
            }
            ("number", DeValue::Float(number)) => {
                self.number(path, line, number.as_str().parse().ok(), number.as_str(), schema);
            }
            (_, other) => {
                self.say(line, format!("{path} should be {}, not {}", expected(path, schema), given(other)));
            }
        }
    }

    fn number(&mut self, path: &str, line: usize, number: Option<f64>, written: &str, schema: &Value) {
        let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
        let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
        // What is not a number lies in no range.
        if number.is_some_and(|number| (least..=most).contains(&number)) {
            return;
        }
        let kind = expected(path, schema);
        let bounds = match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
            (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
            (Some(least), None) => format!("{kind} from {least} on"),
            _ => kind,
        };
        self.say(line, format!("{path} should be {bounds}, not {written}"));
    }
}

pub(super) fn names(properties: &Value) -> impl Iterator<Item = &str> {
    properties.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str))
}

/// What is wrong with a text, for keys where not every text will do. None of these sentences repeats what was written: it may be
/// a key that was put into the wrong place.
fn wrong_text(path: &str, text: &str) -> Option<String> {
    match path {
        "model.base_url" if !text.is_empty() && !is_web_address(text) => {
            Some("should be an address that begins with http:// or https://".to_owned())
        }
        "model.api_key_env" | "server.token_env" if !text.is_empty() && !is_variable(text) => {
            Some("should be the name of an environment variable, not what it holds".to_owned())
        }
        // One that matched nothing would leave open what it was meant to close.
        "scope.allow.target" | "scope.deny.target" if text.contains(['*', '?', '[']) => {
            Some(format!("should be a folder or a file; {text:?} is a pattern"))
        }
        "scope.allow.target" | "scope.deny.target" if text.is_empty() => {
            Some("should be a folder or a file, not an empty text".to_owned())
        }
        _ => None,
    }
}

fn is_web_address(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.starts_with(['/', ':', '?']) && !rest.contains(char::is_whitespace)
    })
}

fn is_variable(text: &str) -> bool {
    let in_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    text.chars().all(in_name) && !text.starts_with(|first: char| first.is_ascii_digit())
}

fn expected(path: &str, schema: &Value) -> String {
    if let Some(words) = choices(schema) {
        let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
        return match words.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "nothing".to_owned(),
        };
    }
    match schema["type"].as_str() {
        Some("object") if !path.contains('.') => format!("a section ([{path}])"),
        Some("object") => "a table".to_owned(),
        Some("array") if schema["items"]["type"] == "object" => format!("a list of tables ([[{path}]])"),
        Some("array") => "a list of texts".to_owned(),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        _ => "a text".to_owned(),
    }
}

fn given(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "a text".to_owned(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
