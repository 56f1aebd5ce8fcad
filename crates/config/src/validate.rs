//! Checks a file against the schema: every key is known and every value has its type. Finds all mistakes at once,
//! each with its line.

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::ConfigError;
use crate::format::{ConfigFormat, TextCheck, choices};
use crate::suggestion::describe_unknown_key;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigMistake {
    pub(crate) line: usize,
    pub(crate) reason: String,
}

/// All mistakes of a file as one error, one on each line.
pub(crate) fn mistakes_error(file: &str, mut mistakes: Vec<ConfigMistake>) -> ConfigError {
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
    ConfigError { origin, reason }
}

/// The line of a byte offset, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

pub(crate) fn find_mistakes<S>(
    text: &str,
    table: &DeTable<'_>,
    format: &ConfigFormat<S>,
) -> Vec<ConfigMistake> {
    let (schema, check_text) = (format.schema(), format.check_text);
    let mut validator = Validator { text, schema, check_text, mistakes: Vec::new() };
    validator.check_table("", 1, table, schema);
    validator.mistakes
}

struct Validator<'a> {
    text: &'a str,
    /// The schema of the whole file.
    schema: &'a Value,
    check_text: TextCheck,
    mistakes: Vec<ConfigMistake>,
}

impl Validator<'_> {
    fn line_of<T>(&self, part: &Spanned<T>) -> usize {
        line_at(self.text, part.span().start)
    }

    fn report(&mut self, line: usize, reason: String) {
        self.mistakes.push(ConfigMistake { line, reason });
    }

    fn check_table(&mut self, path: &str, line: usize, table: &DeTable<'_>, schema: &Value) {
        for (key, value) in table.iter() {
            let name: &str = key.get_ref();
            let line = self.line_of(key);
            // A map has names that the user chooses, and one schema for all its values.
            let of_map = schema.get("additionalProperties").filter(|field| field.is_object());
            match schema["properties"].get(name).or(of_map) {
                Some(field) => {
                    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                    self.check_value(&path, line, value, field);
                }
                None => {
                    let known: Vec<&str> = property_names(&schema["properties"]).collect();
                    self.report(line, describe_unknown_key(self.schema, path, name, value.get_ref(), &known));
                }
            }
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for missing in required.filter(|name| !table.contains_key(*name)) {
            self.report(line, format!("{path} needs a {missing}"));
        }
    }

    fn check_value(&mut self, path: &str, line: usize, value: &Spanned<DeValue<'_>>, schema: &Value) {
        let kind = schema["type"].as_str().unwrap_or("string");
        match (kind, value.get_ref()) {
            ("object", DeValue::Table(table)) => self.check_table(path, line, table, schema),
            ("array", DeValue::Array(items)) => {
                let of_tables = schema["items"]["type"] == "object";
                let path = if of_tables { path.to_owned() } else { format!("each of {path}") };
                for item in items {
                    self.check_value(&path, self.line_of(item), item, &schema["items"]);
                }
            }
            ("string", DeValue::String(text)) => {
                let wrong = match choices(schema) {
                    Some(words) if words.contains(&text.as_ref()) => None,
                    Some(_) => Some(format!("must be {}, not {text:?}", expected(path, schema))),
                    None => (self.check_text)(path, text),
                };
                if let Some(wrong) = wrong {
                    self.report(line, format!("{path} {wrong}"));
                }
            }
            ("boolean", DeValue::Boolean(_)) => {}
            ("integer" | "number", DeValue::Integer(whole)) => {
                let number = i64::from_str_radix(whole.as_str(), whole.radix()).ok();
                self.check_number(path, line, number.map(|number| number as f64), whole.as_str(), schema);
            }
            ("number", DeValue::Float(number)) => {
                self.check_number(path, line, number.as_str().parse().ok(), number.as_str(), schema);
            }
            (_, other) => {
                self.report(line, format!("{path} must be {}, not {}", expected(path, schema), given(other)));
            }
        }
    }

    fn check_number(&mut self, path: &str, line: usize, number: Option<f64>, written: &str, schema: &Value) {
        let least = schema["minimum"].as_f64().unwrap_or(f64::MIN);
        let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
        // NaN is in no range.
        if number.is_some_and(|number| (least..=most).contains(&number)) {
            return;
        }
        let kind = expected(path, schema);
        let bounds = match (schema["minimum"].as_f64(), schema["maximum"].as_f64()) {
            (Some(least), Some(most)) => format!("{kind} from {least} to {most}"),
            (Some(least), None) => format!("{kind} of at least {least}"),
            _ => kind,
        };
        self.report(line, format!("{path} must be {bounds}, not {written}"));
    }
}

pub(crate) fn property_names(properties: &Value) -> impl Iterator<Item = &str> {
    properties.as_object().into_iter().flat_map(|fields| fields.keys().map(String::as_str))
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
        Some("array") => "a list of strings".to_owned(),
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        _ => "a string".to_owned(),
    }
}

fn given(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "a string".to_owned(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a section".to_owned(),
    }
}
