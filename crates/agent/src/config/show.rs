//! The settings as people read them: every key with its value and where it comes from.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::settings::{Settings, is_used};
use super::sources::Origins;

/// A key with its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ShownKey {
    /// As `section.key`.
    pub key: String,
    /// Its value; null if it is not set and has no default.
    pub value: Value,
    /// `default`, `FILE:LINE`, `environment NAME` or the flag.
    pub source: String,
    /// Whether this version does anything with it.
    pub used: bool,
}

/// As a line of TOML, with the source as its comment.
impl fmt::Display for ShownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => write!(f, "# {} is not set", self.key)?,
            value => write!(f, "{} = {}  # {}", self.key, toml_text(value), self.source)?,
        }
        if self.used { Ok(()) } else { f.write_str("; not used yet") }
    }
}

/// Every key, in the order in which the settings have them.
pub(crate) fn keys(settings: &Settings, origins: &Origins) -> Vec<ShownKey> {
    let mut shown = Vec::new();
    for (section, keys) in in_order(settings) {
        for (name, value) in keys {
            let key = format!("{section}.{name}");
            // What somebody has set to nothing was a text.
            let value = if value.is_null() && origins.has(&key) { "".into() } else { value };
            let (value, source, used) = (shown_value(&key, value), origins.source(&key), is_used(&key));
            shown.push(ShownKey { key, value, source, used });
        }
    }
    shown
}

/// The sections with their keys, in the order in which they are declared.
pub(crate) fn in_order(settings: &Settings) -> Vec<(String, Vec<(String, Value)>)> {
    let text = serde_json::to_string(settings).expect("settings are plain numbers, texts and lists");
    let InOrder(sections): InOrder<InOrder<Value>> =
        serde_json::from_str(&text).expect("every section is an object of keys");
    sections.into_iter().map(|(section, InOrder(keys))| (section, keys)).collect()
}

/// An object as it is written; a map would sort it.
struct InOrder<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for InOrder<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
            type Value = InOrder<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(InOrder(pairs))
            }
        }

        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

/// A value as it may be shown: what an address has of a password is left out.
pub(crate) fn shown_value(key: &str, value: Value) -> Value {
    match (key, &value) {
        ("model.base_url" | "journal.url", Value::String(address)) => without_password(address).into(),
        _ => value,
    }
}

/// An address as it may be shown: without the password that it may have.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    match host.rsplit_once('@') {
        Some((person, host)) => {
            let name = person.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:…@{host}{path}")
        }
        None => address.to_owned(),
    }
}

/// A value as TOML in one line. The writer of the `toml` crate would break long texts over several, and would let through
/// characters that a terminal obeys.
pub(crate) fn toml_text(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<_> =
                fields.map(|(name, value)| format!("{name} = {}", toml_text(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            control if control.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(control))),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
