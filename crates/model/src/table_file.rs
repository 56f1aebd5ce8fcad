//! TOML files of tables: the built-in tables of providers and models, and the user's files of the same form.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Spanned, Table, Value};

use crate::{Error, Result};

/// The tables of a file, in their order. Empty if the file does not exist.
pub(crate) fn read_tables(path: &Path) -> Result<Vec<(String, Value)>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse_tables(&text, path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
        Err(error) => Err(table_error(path, "the file", error)),
    }
}

pub(crate) fn parse_tables(text: &str, path: &Path) -> Result<Vec<(String, Value)>> {
    let rows: std::collections::BTreeMap<String, Spanned<Value>> =
        toml::from_str(text).map_err(|error| table_error(path, "the file", error.to_string().trim_end()))?;
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, value)| value.span().start);
    Ok(rows.into_iter().map(|(name, value)| (name, value.into_inner())).collect())
}

pub(crate) fn table_error(path: &Path, place: &str, reason: impl std::fmt::Display) -> Error {
    Error::BadProviders { path: path.to_owned(), place: place.to_owned(), reason: reason.to_string() }
}

pub(crate) struct TableRow<'a> {
    pub(crate) path: &'a Path,
    pub(crate) place: String,
    pub(crate) table: &'a Table,
}

impl TableRow<'_> {
    pub(crate) fn table_error(&self, key: &str, reason: impl std::fmt::Display) -> Error {
        table_error(self.path, &format!("{}.{key}", self.place), reason)
    }

    pub(crate) fn field<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let value = self.table.get(key).cloned();
        value
            .map(Value::try_into)
            .transpose()
            .map_err(|error| self.table_error(key, error.to_string().trim_end().replace('\n', " ")))
    }

    /// Fails if the table has any other key, and names the nearest known one.
    pub(crate) fn check_keys(&self, keys: &[&str]) -> Result<()> {
        let Some(unknown) = self.table.keys().find(|key| !keys.contains(&key.as_str())) else {
            return Ok(());
        };
        let nearest_names = nearest_names(unknown, keys.iter().copied()).into_iter().next();
        let hint = nearest_names.map_or_else(
            || keys.join(", "),
            |key| format!("did you mean {key}? valid keys: {}", keys.join(", ")),
        );
        Err(self.table_error(unknown, format!("unknown key; {hint}")))
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Vec<String> {
    fn from(texts: OneOrMany) -> Self {
        match texts {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        }
    }
}

/// At most three similar names, the nearest first.
pub(crate) fn nearest_names<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const ALIKE: f64 = 0.75;
    let name = name.to_lowercase();
    let mut alike: Vec<_> = names
        .map(|known| (strsim::jaro_winkler(&name, known), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    alike.into_iter().take(3).map(|(_, known)| known).collect()
}
