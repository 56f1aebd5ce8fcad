//! The settings in the form that people read: every key with its value and source.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::origin::Origins;

/// A key with its effective value.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedSetting {
    /// As `section.key`.
    pub key: String,
    /// Null if the key is not set and has no default.
    pub value: Value,
    /// `default`, `FILE:LINE`, `environment NAME` or the flag.
    pub source: String,
    /// Whether this version uses it.
    pub used: bool,
}

/// As a line of TOML, with the source as its comment.
impl fmt::Display for ResolvedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => write!(f, "# {} is not set", self.key)?,
            value => write!(f, "{} = {}  # {}", self.key, to_toml(value), self.source)?,
        }
        if self.used { Ok(()) } else { f.write_str("; not used yet") }
    }
}

/// Every key, in the order in which the settings declare them. `is_used` tells which keys have an effect.
pub fn resolved_settings(
    settings: &impl Serialize,
    origins: &Origins,
    is_used: impl Fn(&str) -> bool,
) -> Vec<ResolvedSetting> {
    let mut shown = Vec::new();
    for (section, keys) in sections_in_order(settings) {
        for (name, value) in keys {
            let key = if name.is_empty() { section.clone() } else { format!("{section}.{name}") };
            // A key that is set but has no value was set to an empty text.
            let value = if value.is_null() && origins.contains(&key) { "".into() } else { value };
            let (source, used) = (origins.source(&key), is_used(&key));
            shown.push(ResolvedSetting { key, value, source, used });
        }
    }
    shown
}

/// The sections with their keys, in the order in which the settings declare them. A section that is a list of tables has one key
/// without a name.
pub fn sections_in_order(settings: &impl Serialize) -> Vec<(String, Vec<(String, Value)>)> {
    let text = serde_json::to_string(settings).expect("settings are plain numbers, texts and lists");
    let OrderedMap(sections): OrderedMap<&RawValue> =
        serde_json::from_str(&text).expect("the settings are an object of sections");
    let keys_of = |section: &RawValue| match serde_json::from_str(section.get()) {
        Ok(OrderedMap(keys)) => keys,
        Err(_) => vec![(String::new(), serde_json::from_str(section.get()).unwrap_or_default())],
    };
    sections.into_iter().map(|(name, section)| (name, keys_of(section))).collect()
}

/// A JSON object in the order of its text. A map would sort it.
struct OrderedMap<V>(Vec<(String, V)>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for OrderedMap<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for Pairs<V> {
            type Value = OrderedMap<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(OrderedMap(pairs))
            }
        }

        deserializer.deserialize_map(Pairs(PhantomData))
    }
}

/// Replaces the password in a URL, and the values of its query, which may be keys.
pub fn hide_url_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let path = hide_query_values(path);
    match host.rsplit_once('@') {
        Some((user, host)) => {
            let name = user.split(':').next().unwrap_or_default();
            format!("{scheme}://{name}:…@{host}{path}")
        }
        None => format!("{scheme}://{host}{path}"),
    }
}

fn hide_query_values(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let hide =
        |pair: &str| pair.split_once('=').map_or_else(|| "…".to_owned(), |(name, _)| format!("{name}=…"));
    let query: Vec<String> = query.split('&').filter(|pair| !pair.is_empty()).map(hide).collect();
    format!("{path}?{}", query.join("&"))
}

/// A value as one line of TOML. The `toml` crate's writer would break long texts into several lines, and would pass
/// control characters to the terminal.
pub fn to_toml(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(to_toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null());
            let fields: Vec<_> = fields.map(|(name, value)| format!("{name} = {}", to_toml(value))).collect();
            format!("{{ {} }}", fields.join(", "))
        }
        other => other.to_string(),
    }
}

fn quote(text: &str) -> String {
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
