//! Files of rows: the tables that this program carries, and the user's own of the same form.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::{Spanned, Table, Value};

use crate::{Error, Result};

/// A file, by its rows in the order in which they stand there; none if there is no such file.
pub(crate) fn read(path: &Path) -> Result<Vec<(String, Value)>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(vec![]),
        Err(error) => Err(bad(path, "the file", error)),
    }
}

/// A text, by its rows in the order in which they stand there.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<(String, Value)>> {
    let rows: std::collections::BTreeMap<String, Spanned<Value>> =
        toml::from_str(text).map_err(|error| bad(path, "the file", error.to_string().trim_end()))?;
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_by_key(|(_, value)| value.span().start);
    Ok(rows.into_iter().map(|(name, value)| (name, value.into_inner())).collect())
}

/// An error at a place of a file.
pub(crate) fn bad(path: &Path, place: &str, reason: impl std::fmt::Display) -> Error {
    Error::BadProviders { path: path.to_owned(), place: place.to_owned(), reason: reason.to_string() }
}

/// A row, and where it stands.
pub(crate) struct Row<'a> {
    pub(crate) path: &'a Path,
    pub(crate) place: String,
    pub(crate) table: &'a Table,
}

impl Row<'_> {
    /// An error at this key.
    pub(crate) fn bad(&self, key: &str, reason: impl std::fmt::Display) -> Error {
        bad(self.path, &format!("{}.{key}", self.place), reason)
    }

    /// The value of a key, if it is there.
    pub(crate) fn field<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>> {
        let value = self.table.get(key).cloned();
        value
            .map(Value::try_into)
            .transpose()
            .map_err(|error| self.bad(key, error.to_string().trim_end().replace('\n', " ")))
    }

    /// Whether there are no other keys than these.
    pub(crate) fn has_only(&self, keys: &[&str]) -> Result<()> {
        let Some(unknown) = self.table.keys().find(|key| !keys.contains(&key.as_str())) else {
            return Ok(());
        };
        let nearest = nearest(unknown, keys.iter().copied()).into_iter().next();
        let hint = nearest.map_or_else(
            || keys.join(", "),
            |key| format!("did you mean {key}? all are: {}", keys.join(", ")),
        );
        Err(self.bad(unknown, format!("there is no such key; {hint}")))
    }
}

/// One string or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
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

/// At most three of these names that look like this one, the nearest first.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    const ALIKE: f64 = 0.75;
    let name = name.to_lowercase();
    let mut alike: Vec<_> = names
        .map(|known| (strsim::jaro_winkler(&name, known), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    alike.into_iter().take(3).map(|(_, known)| known).collect()
}
