//! Who serves models: what they speak, where they are, and which variable holds the key.

use std::path::Path;

use toml::{Table, Value};

use crate::rows::{self, OneOrMany, Row};
use crate::{Protocol, Quirks, Result};

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;

const BUILT_IN: &str = include_str!("../providers.toml");
const KEYS: [&str; 7] = ["protocol", "base_url", "key_env", "local", "quirks", "start", "usual_model"];

/// The providers that are no row of a table: one is wherever the config says, the other is a file.
const WITHOUT_A_ROW: [&str; 2] = ["custom", "scripted"];

/// Other names under which people look for a provider.
const ALSO_KNOWN_AS: [(&str, &str); 9] = [
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

/// Somebody who serves models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// The part of a model's name before the first `/`.
    pub name: String,
    /// What it speaks.
    pub protocol: Protocol,
    /// Where it is, without a `/` at the end. The paths of its protocol follow directly.
    pub base_url: String,
    /// The variables that may hold the key; the first that is set counts.
    pub key_env: Vec<String>,
    /// Whether it runs on this machine.
    pub local: bool,
    /// Where it differs from others that speak the same protocol.
    pub quirks: Quirks,
    /// The command that starts it, for one that runs on this machine.
    pub start: Option<String>,
    /// The model that is taken where none is named and its key is there.
    pub usual_model: Option<String>,
}

impl Provider {
    /// The key, if one of its variables is set to more than nothing; `variable` looks into the environment.
    pub fn key(&self, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
        self.key_env.iter().filter_map(|name| variable(name)).find(|key| !key.trim().is_empty())
    }
}

/// All providers, those that this program carries first.
#[derive(Debug, Clone, PartialEq)]
pub struct Providers {
    tables: Vec<(String, Table)>,
    providers: Vec<Provider>,
}

impl Providers {
    /// Those that this program carries, in the order of preference.
    pub fn built_in() -> Self {
        let empty = Self { tables: vec![], providers: vec![] };
        let path = Path::new("providers.toml");
        rows::parse(BUILT_IN, path)
            .and_then(|rows| empty.with_rows(rows, path))
            .expect("a test reads the table that this program carries")
    }

    /// With the user's own, from a file of the same form, if there is one: it adds to them and overrides them, key by key.
    pub fn with_file(self, path: &Path) -> Result<Self> {
        self.with_rows(rows::read(path)?, path)
    }

    fn with_rows(mut self, rows: Vec<(String, Value)>, path: &Path) -> Result<Self> {
        for (name, value) in rows.into_iter().filter(|(name, _)| name != crate::catalogue::ROWS) {
            let Value::Table(table) = value else {
                return Err(rows::bad(
                    path,
                    &name,
                    "a provider is a table: write [name], and its keys below",
                ));
            };
            if WITHOUT_A_ROW.contains(&name.as_str()) || name.is_empty() || name.contains('/') {
                return Err(rows::bad(path, &name, "this can't be the name of a provider"));
            }
            let known = self.tables.iter().position(|(known, _)| *known == name);
            let mut merged = known.map(|index| self.tables[index].1.clone()).unwrap_or_default();
            if table.contains_key("base_url") {
                forget_roles(&mut merged);
            }
            merge(&mut merged, table);
            let provider = read(&Row { path, place: name.clone(), table: &merged })?;
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

    /// The provider with this name.
    pub fn get(&self, name: &str) -> Option<&Provider> {
        self.iter().find(|provider| provider.name == name)
    }

    /// All of them, in the order of preference.
    pub fn iter(&self) -> impl Iterator<Item = &Provider> {
        self.providers.iter()
    }

    /// The names that somebody may have meant by this one, the nearest first; at most three.
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let also = ALSO_KNOWN_AS.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        if let Some(provider) = also.and_then(|(_, known)| self.get(known)) {
            return vec![&provider.name];
        }
        let names = self.iter().map(|provider| provider.name.as_str()).chain(WITHOUT_A_ROW);
        rows::nearest(name, names)
    }
}

/// What the provider's own server accepts says nothing about one at another address.
fn forget_roles(table: &mut Table) {
    if let Some(Value::Table(quirks)) = table.get_mut("quirks") {
        quirks.remove("roles");
    }
}

/// Puts the keys of a table over those of another, also inside of tables.
fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

fn read(row: &Row<'_>) -> Result<Provider> {
    row.has_only(&KEYS)?;
    let base_url: String = row.field("base_url")?.ok_or_else(|| row.bad("base_url", "it is missing"))?;
    if !base_url.starts_with("http://") && !base_url.starts_with("https://") {
        return Err(row.bad("base_url", "it should begin with http:// or https://"));
    }
    Ok(Provider {
        name: row.place.clone(),
        protocol: row.field("protocol")?.unwrap_or(Protocol::OpenaiChat),
        base_url: base_url.trim_end_matches('/').to_owned(),
        key_env: row.field::<OneOrMany>("key_env")?.map(Vec::from).unwrap_or_default(),
        local: row.field("local")?.unwrap_or(false),
        quirks: row.field("quirks")?.unwrap_or_default(),
        start: row.field("start")?,
        usual_model: row.field("usual_model")?,
    })
}
