//! The provider table: protocol, address, API key variable and quirks of each provider.

use std::path::Path;
use std::sync::LazyLock;

use toml::{Table, Value};

use crate::table_file::{self, OneOrMany, TableRow};
use crate::{Protocol, Quirks, Result};

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;

const BUILT_IN: &str = include_str!("../providers.toml");
const PROVIDER_KEYS: [&str; 8] =
    ["protocol", "base_url", "key_env", "shared_key", "local", "quirks", "start", "usual_model"];

/// Names that no provider table may use: a `custom` provider is only an address in the config, `scripted` plays a
/// file.
const RESERVED_NAMES: [&str; 2] = ["custom", "scripted"];

const ALIASES: [(&str, &str); 9] = [
    ("claude", "anthropic"),
    ("google", "gemini"),
    ("grok", "xai"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("zhipu", "zai"),
    ("alibaba", "qwen"),
    ("dashscope", "qwen"),
    ("hf", "huggingface"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    pub name: String,
    pub protocol: Protocol,
    /// Without a `/` at the end, because the path of the protocol is appended.
    pub base_url: String,
    /// Environment variables that may hold the key. The first that is set counts.
    pub key_env: Vec<String>,
    /// The variable is often set for other purposes, so the key alone does not choose this provider.
    pub shared_key: bool,
    pub local: bool,
    pub quirks: Quirks,
    pub start: Option<String>,
    /// The model to use if the user names none and this provider's key is set.
    pub usual_model: Option<String>,
}

impl Provider {
    /// The first key that is set and not empty. `variable` reads the environment.
    pub fn key(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        self.key_env.iter().filter_map(|name| variable(name)).find(|key| !key.trim().is_empty())
    }
}

/// All providers, the built-in ones first.
#[derive(Debug, Clone, PartialEq)]
pub struct Providers {
    tables: Vec<(String, Table)>,
    providers: Vec<Provider>,
}

impl Providers {
    /// The built-in providers, in the order of preference.
    pub fn built_in() -> &'static Self {
        static PARSED: LazyLock<Providers> = LazyLock::new(|| {
            let empty = Providers { tables: vec![], providers: vec![] };
            let path = Path::new("providers.toml");
            table_file::parse_tables(BUILT_IN, path)
                .and_then(|rows| empty.with_rows(rows, path))
                .expect("a test reads the table that this program carries")
        });
        &PARSED
    }

    /// Adds the user's file of the same form, if it exists. Its keys override those of the built-in table one by one.
    pub fn with_file(self, path: &Path) -> Result<Self> {
        self.with_rows(table_file::read_tables(path)?, path)
    }

    fn with_rows(mut self, rows: Vec<(String, Value)>, path: &Path) -> Result<Self> {
        for (name, value) in rows.into_iter().filter(|(name, _)| name != crate::catalogue::MODEL_TABLE) {
            let Value::Table(table) = value else {
                return Err(table_file::table_error(
                    path,
                    &name,
                    "a provider is a table; write [name] and its keys below",
                ));
            };
            if RESERVED_NAMES.contains(&name.as_str()) || name.is_empty() || name.contains('/') {
                return Err(table_file::table_error(path, &name, "not a valid provider name"));
            }
            let known = self.tables.iter().position(|(known, _)| *known == name);
            let mut merged = known.map(|index| self.tables[index].1.clone()).unwrap_or_default();
            if table.contains_key("base_url") {
                remove_role_quirk(&mut merged);
            }
            merge_tables(&mut merged, table);
            let provider = read_provider(&TableRow { path, place: name.clone(), table: &merged })?;
            match known {
                Some(index) => {
                    self.tables[index].1 = merged;
                    self.providers[index] = provider;
                }
                None => {
                    self.tables.push((name, merged));
                    self.providers.push(provider);
                }
            }
        }
        Ok(self)
    }

    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.iter().find(|provider| provider.name == name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter()
    }

    /// The providers whose key is set, each with the variable that holds it, in the order of preference.
    pub fn with_key(&self, is_set: impl Fn(&str) -> bool) -> Vec<(&Provider, &str)> {
        let variable = |provider: &'_ Provider| provider.key_env.iter().position(|variable| is_set(variable));
        self.iter()
            .filter_map(|provider| Some((provider, provider.key_env[variable(provider)?].as_str())))
            .collect()
    }

    /// At most three names that the user may have meant, the nearest first.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let also = ALIASES.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        if let Some(provider) = also.and_then(|(_, known)| self.get(known)) {
            return vec![&provider.name];
        }
        let names = self.iter().map(|provider| provider.name.as_str()).chain(RESERVED_NAMES);
        table_file::nearest_names(name, names)
    }
}

/// The quirk describes the provider's own server, not one at another address.
fn remove_role_quirk(table: &mut Table) {
    if let Some(Value::Table(quirks)) = table.get_mut("quirks") {
        quirks.remove("roles");
    }
}

/// Overrides the keys of `below` with those of `above`, recursively.
fn merge_tables(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge_tables(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn read_provider(row: &TableRow<'_>) -> Result<Provider> {
    row.check_keys(&PROVIDER_KEYS)?;
    let base_url: String = row.field("base_url")?.ok_or_else(|| row.table_error("base_url", "missing"))?;
    if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        return Err(row.table_error("base_url", "must start with http:// or https://"));
    }
    Ok(Provider {
        name: row.place.clone(),
        protocol: row.field("protocol")?.unwrap_or(Protocol::OpenaiChat),
        base_url: base_url.trim_end_matches('/').to_owned(),
        key_env: row.field::<OneOrMany>("key_env")?.map(Vec::from).unwrap_or_default(),
        shared_key: row.field("shared_key")?.unwrap_or(false),
        local: row.field("local")?.unwrap_or(false),
        quirks: row.field("quirks")?.unwrap_or_default(),
        start: row.field("start")?,
        usual_model: row.field("usual_model")?,
    })
}
