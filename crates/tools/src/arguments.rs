//! Parses the arguments that the model wrote. Nothing is repaired by guessing: the model is told the field, its value
//! and what is expected.
//!
//! Two cases are no repairs: an empty text is an object without fields, and `null` for an optional field is a missing
//! field.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::display::{truncate_str, truncate_with_ellipsis};
use crate::{ToolDefinition, ToolOutcome};

/// Bytes of a wrong value to quote in an error.
const MAX_QUOTED_BYTES: usize = 80;

/// Parses the arguments of a call into the type that the tool's schema was made from.
pub fn parse<T: DeserializeOwned>(definition: &ToolDefinition, arguments: &str) -> Result<T, ToolOutcome> {
    let wrong = |what: String| {
        let name = &definition.name;
        ToolOutcome::error(format!("{name} was not run, because its arguments don't fit: {what}"))
    };
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(format!("not JSON: {error}")))?;
    check("", &value, &definition.schema).map_err(wrong)?;
    serde_json::from_str(text).map_err(|error| wrong(error.to_string()))
}

/// Checks a value against the part of JSON Schema that our schemas use.
fn check(at: &str, value: &Value, schema: &Value) -> Result<(), String> {
    let name = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
    let expected = || format!("{name} must be {}, not {}", describe_schema(schema), quoted_value(value));
    match (schema["type"].as_str(), value) {
        (Some("object"), Value::Object(fields)) => check_fields(at, fields, schema),
        (Some("array"), Value::Array(items)) => {
            if schema["minItems"].as_u64().is_some_and(|least| (items.len() as u64) < least) {
                return Err(format!("{name} must not be empty"));
            }
            let each = |(index, item)| check(&format!("{at}[{index}]"), item, &schema["items"]);
            items.iter().enumerate().try_for_each(each)
        }
        (Some("string"), Value::String(text)) => {
            let length = text.chars().count() as u64;
            match (schema["enum"].as_array(), schema["maxLength"].as_u64()) {
                (Some(words), _) if !words.contains(value) => Err(expected()),
                (_, Some(most)) if length > most => {
                    Err(format!("{name} must have at most {most} characters, not {length}"))
                }
                _ => Ok(()),
            }
        }
        (Some("integer"), Value::Number(number)) => {
            let least = schema["minimum"].as_u64().unwrap_or(0);
            let most = schema["maximum"].as_u64().unwrap_or(u64::MAX);
            match number.as_u64() {
                Some(number) if (least..=most).contains(&number) => Ok(()),
                _ => Err(expected()),
            }
        }
        (Some("number"), Value::Number(_)) | (Some("boolean"), Value::Bool(_)) | (None, _) => Ok(()),
        _ => Err(expected()),
    }
}

fn check_fields(at: &str, fields: &Map<String, Value>, schema: &Value) -> Result<(), String> {
    let inner = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let known = schema["properties"].as_object();
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, value) in fields {
        let Some(schema) = known.and_then(|known| known.get(name)) else {
            let names: Vec<_> = known.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
            let there = if names.is_empty() {
                "there are none".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            return Err(format!(
                "there is no field `{}`; {there}",
                inner(truncate_str(name, MAX_QUOTED_BYTES))
            ));
        };
        if !value.is_null() || required.contains(&name.as_str()) {
            check(&inner(name), value, schema)?;
        }
    }
    match required.into_iter().find(|name| !fields.contains_key(*name)) {
        Some(missing) => {
            let expected = describe_schema(&schema["properties"][missing]);
            Err(format!("the field `{}` is missing; it must be {expected}", inner(missing)))
        }
        None => Ok(()),
    }
}

/// What a schema expects, in words.
fn describe_schema(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
    }
    match schema["type"].as_str() {
        Some("string") => "a text".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("number") => "a number".to_owned(),
        Some("array") => "a list".to_owned(),
        Some("object") => "an object".to_owned(),
        Some("integer") => match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
            (least, Some(most)) => format!("a whole number from {} to {most}", least.unwrap_or(0)),
            (Some(least), None) => format!("a whole number, at least {least}"),
            (None, None) => "a whole number".to_owned(),
        },
        _ => "something else".to_owned(),
    }
}

/// A value for a message: its JSON, cut if it is long.
pub fn quoted_value(value: &Value) -> String {
    truncate_with_ellipsis(&value.to_string(), MAX_QUOTED_BYTES)
}
