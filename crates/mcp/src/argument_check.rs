//! Checks the arguments of a call against the schema that the server gave, before the server gets them (T6).
//!
//! The keywords that tools use are checked. Others are left to the server, which checks again.

use std::cell::Cell;

use longhaul_tools::{ToolOutcome, quoted_value};
use serde_json::{Map, Value};

/// How deep schemas may refer to each other.
const MAX_DEPTH: usize = 32;
/// How many parts of a schema are checked. A schema that refers to itself could have any number; the server checks the rest.
const MAX_CHECKS: u32 = 10_000;

/// The arguments for a tool as an object that fits its schema, or the result that says what is wrong. Nothing is repaired.
pub(crate) fn check_arguments(
    tool: &str,
    schema: &Value,
    arguments: &str,
) -> Result<Map<String, Value>, ToolOutcome> {
    let wrong = |what: String| {
        ToolOutcome::error(format!("{tool} was not run, because its arguments don't fit: {what}"))
    };
    let text = if arguments.trim().is_empty() { "{}" } else { arguments };
    let value: Value = serde_json::from_str(text).map_err(|error| wrong(format!("not JSON: {error}")))?;
    let check = SchemaCheck { root: schema, checks_left: Cell::new(MAX_CHECKS) };
    check.check("", &value, schema, 0).map_err(wrong)?;
    match value {
        Value::Object(fields) => Ok(fields),
        other => Err(wrong(format!("the arguments must be an object, not {}", quoted_value(&other)))),
    }
}

struct SchemaCheck<'a> {
    /// The whole schema, in which references are looked up.
    root: &'a Value,
    checks_left: Cell<u32>,
}

impl SchemaCheck<'_> {
    fn check(&self, at: &str, value: &Value, schema: &Value, depth: usize) -> Result<(), String> {
        let name = if at.is_empty() { "the arguments".to_owned() } else { format!("`{at}`") };
        let left = self.checks_left.get();
        if depth > MAX_DEPTH || left == 0 {
            return Ok(());
        }
        self.checks_left.set(left - 1);
        if *schema == Value::Bool(false) {
            return Err(format!("{name} is not allowed"));
        }
        if let Some(reference) = schema["$ref"].as_str() {
            let target = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
            return target.map_or(Ok(()), |target| self.check(at, value, target, depth + 1));
        }
        check_type(&name, value, schema)?;
        if let Some(words) = schema["enum"].as_array()
            && !words.contains(value)
        {
            let words: Vec<String> = words.iter().map(Value::to_string).collect();
            return Err(format!("{name} must be {}, not {}", words.join(" or "), quoted_value(value)));
        }
        if let Some(expected) = schema.get("const").filter(|expected| *expected != value) {
            return Err(format!("{name} must be {expected}, not {}", quoted_value(value)));
        }
        for choices in ["anyOf", "oneOf"] {
            let Some(choices) = schema[choices].as_array() else { continue };
            let failures = choices.iter().map(|choice| self.check(at, value, choice, depth + 1).err());
            // All of them, or none as soon as one choice fits.
            let failures: Option<Vec<String>> = failures.collect();
            if let Some(failures) = failures.filter(|failures| !failures.is_empty()) {
                return Err(failures.join(", or "));
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.check(at, value, part, depth + 1)?;
        }
        match value {
            Value::Object(fields) => self.check_fields(at, fields, schema, depth),
            Value::Array(items) => {
                check_range(&name, items.len() as f64, "items", schema, ["minItems", "maxItems"])?;
                let each =
                    |(index, item)| self.check(&format!("{at}[{index}]"), item, &schema["items"], depth + 1);
                items.iter().enumerate().filter(|_| schema["items"].is_object()).try_for_each(each)
            }
            Value::String(text) => {
                let length = text.chars().count() as f64;
                check_range(&name, length, "characters", schema, ["minLength", "maxLength"])
            }
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                check_range(&name, number, "", schema, ["minimum", "maximum"])
            }
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn check_fields(
        &self,
        at: &str,
        fields: &Map<String, Value>,
        schema: &Value,
        depth: usize,
    ) -> Result<(), String> {
        let inner = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
        let known = schema["properties"].as_object();
        let is_required =
            |name: &str| schema["required"].as_array().into_iter().flatten().any(|required| required == name);
        for (name, value) in fields {
            // Many models write what they leave out as null. The server gets it as it is.
            if value.is_null() && !is_required(name) && known.is_some_and(|known| known.contains_key(name)) {
                continue;
            }
            match known.and_then(|known| known.get(name)) {
                Some(field) => self.check(&inner(name), value, field, depth + 1)?,
                None if schema["additionalProperties"] == Value::Bool(false)
                    && schema["patternProperties"].is_null() =>
                {
                    let names: Vec<String> =
                        known.into_iter().flatten().map(|(name, _)| format!("`{name}`")).collect();
                    return Err(format!(
                        "there is no field `{}`; there are: {}",
                        inner(name),
                        names.join(", ")
                    ));
                }
                None => {}
            }
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        match required.into_iter().find(|name| !fields.contains_key(*name)) {
            Some(missing) => Err(format!("the field `{}` is missing", inner(missing))),
            None => Ok(()),
        }
    }
}

fn check_type(name: &str, value: &Value, schema: &Value) -> Result<(), String> {
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return Ok(()),
    };
    let is_kind = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    };
    match kinds.iter().any(is_kind) {
        true => Ok(()),
        false => Err(format!("{name} must be of type {}, not {}", kinds.join(" or "), quoted_value(value))),
    }
}

fn check_range(
    name: &str,
    size: f64,
    unit: &str,
    schema: &Value,
    [least, most]: [&str; 2],
) -> Result<(), String> {
    let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
    if let Some(least) = schema[least].as_f64().filter(|least| size < *least) {
        return Err(format!("{name} must be at least {least}{unit}, not {size}"));
    }
    if let Some(most) = schema[most].as_f64().filter(|most| size > *most) {
        return Err(format!("{name} must be at most {most}{unit}, not {size}"));
    }
    Ok(())
}

#[cfg(test)]
#[path = "argument_check_tests.rs"]
mod tests;
