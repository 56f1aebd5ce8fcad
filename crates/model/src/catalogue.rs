//! The model catalogue: windows, prices and other facts that servers don't report.

use std::borrow::Borrow;
use std::path::Path;
use std::sync::LazyLock;

use toml::Value;

use crate::table_file::{self, OneOrMany, TableRow};
use crate::{EffortForm, Prices, Result};

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;

/// Where the prices of the built-in catalogue come from.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PriceSource {
    /// The package with the data, and its version.
    pub source: String,
    /// The day on which they were taken from it.
    pub date: String,
}

/// The key of the list of models in a providers file.
pub(crate) const MODEL_TABLE: &str = "model";

const BUILT_IN: &str = include_str!("../models.toml");
const MODEL_KEYS: [&str; 8] =
    ["pattern", "window", "max_output", "tools", "reasons", "effort", "effort_off", "prices"];

/// The entry for all models whose name matches a pattern.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogueEntry {
    /// `provider/model`, or `*…` for a model of any provider. A `*` matches anything.
    pub patterns: Vec<String>,
    pub window: Option<u64>,
    pub max_output: Option<u64>,
    pub tools: bool,
    /// Whether the models reason before they answer.
    pub reasons: bool,
    /// The form in which the models take the effort, if not the protocol's usual one.
    pub effort: Option<EffortForm>,
    /// The word or number for the least effort, if not the protocol's usual one.
    pub effort_off: Option<String>,
    pub prices: Option<Prices>,
}

/// The built-in entries and the user's own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    own: Vec<CatalogueEntry>,
}

/// Every built-in entry. To parse them takes about a millisecond, so a single model is looked up in the text instead.
static ALL_BUILT_IN: LazyLock<Vec<CatalogueEntry>> = LazyLock::new(|| parse_built_in(BUILT_IN));

impl Catalogue {
    pub fn built_in() -> Self {
        Self::default()
    }

    /// Where the prices of the built-in entries come from.
    pub fn price_source() -> PriceSource {
        #[derive(serde::Deserialize)]
        struct Head {
            prices_from: PriceSource,
        }
        toml::from_str::<Head>(BUILT_IN)
            .expect("a test reads the table that this program carries")
            .prices_from
    }

    /// Adds the user's `[[model]]` entries from a providers file, if it exists. They take precedence.
    pub fn with_file(mut self, path: &Path) -> Result<Self> {
        self.own.extend(entries(table_file::read_tables(path)?, path)?);
        Ok(self)
    }

    /// The entry of a model. The user's own entries take precedence, then patterns with a provider, then longer
    /// patterns.
    pub fn find(&self, provider: &str, model: &str) -> Option<CatalogueEntry> {
        let wanted = CatalogueQuery::new(provider, model);
        let own = self.own.iter().map(|entry| (entry.patterns.as_slice(), entry));
        match wanted.best(own) {
            Some(entry) => Some(entry.clone()),
            None => find_built_in(&wanted),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &CatalogueEntry> {
        self.own.iter().chain(&*ALL_BUILT_IN)
    }
}

fn parse_built_in(text: &str) -> Vec<CatalogueEntry> {
    let path = Path::new("models.toml");
    table_file::parse_tables(text, path)
        .and_then(|rows| entries(rows, path))
        .expect("a test reads the table that this program carries")
}

/// Looks a model up in the text of the built-in table, and parses only its line.
fn find_built_in(wanted: &CatalogueQuery) -> Option<CatalogueEntry> {
    let line = wanted.best(built_in_lines())?;
    parse_built_in(&format!("{MODEL_TABLE} = [{line}]")).pop()
}

/// The lines of the built-in table with an entry each, and their patterns: the quoted texts up to the second key.
fn built_in_lines() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    BUILT_IN.lines().map(str::trim).filter(|line| line.starts_with('{')).map(|line| {
        let patterns = line.split(" = ").nth(1).unwrap_or_default();
        (patterns.split('"').skip(1).step_by(2).collect(), line)
    })
}

/// The names by which a model is looked up, in lower case.
struct CatalogueQuery {
    names: Vec<String>,
    with_provider: Vec<String>,
}

impl CatalogueQuery {
    fn new(provider: &str, model: &str) -> Self {
        let model = model.to_lowercase();
        let mut names = vec![model.clone()];
        names.extend(strip_date(&model).map(str::to_owned));
        let with_provider = names.iter().map(|name| format!("{}/{name}", provider.to_lowercase())).collect();
        Self { names, with_provider }
    }

    /// The entry with the best of the patterns that match. Each entry comes with its patterns.
    fn best<E, P: Borrow<str>>(&self, entries: impl Iterator<Item = (impl AsRef<[P]>, E)>) -> Option<E> {
        let ranked = entries.filter_map(|(patterns, entry)| {
            let fitting =
                patterns.as_ref().iter().map(Borrow::borrow).filter(|pattern| self.matches(pattern));
            Some((fitting.map(rank).max()?, entry))
        });
        ranked.max_by_key(|(rank, _)| *rank).map(|(_, entry)| entry)
    }

    fn matches(&self, pattern: &str) -> bool {
        let names = if is_bare(pattern) { &self.names } else { &self.with_provider };
        names.iter().any(|name| matches_pattern(pattern, name))
    }
}

/// A pattern with a provider counts before one without, a longer one before a shorter one, and a name that is written out before a
/// pattern for it and others.
fn rank(pattern: &str) -> (bool, usize, bool) {
    (!is_bare(pattern), pattern.len() - pattern.matches('*').count(), !pattern.contains('*'))
}

/// Whether a pattern matches models of any provider.
fn is_bare(pattern: &str) -> bool {
    pattern.starts_with('*')
}

/// The name without a date such as `-20250929` or `-2025-09-29` at its end.
fn strip_date(name: &str) -> Option<&str> {
    ["-20dddddd", "-20dd-dd-dd"].into_iter().find_map(|form| {
        let (before, date) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        let matches_pattern =
            |(form, byte): (u8, u8)| if form == b'd' { byte.is_ascii_digit() } else { form == byte };
        form.bytes().zip(date.bytes()).all(matches_pattern).then_some(before)
    })
}

/// Case-insensitive match.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let pattern = pattern.to_lowercase();
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').map_or((None, rest), |(middle, last)| (Some(middle), last));
    for part in middle.into_iter().flat_map(|middle| middle.split('*')) {
        match left.find(part) {
            Some(at) => left = &left[at + part.len()..],
            None => return false,
        }
    }
    left.ends_with(last)
}

fn entries(rows: Vec<(String, Value)>, path: &Path) -> Result<Vec<CatalogueEntry>> {
    let Some((_, value)) = rows.into_iter().find(|(name, _)| name == MODEL_TABLE) else { return Ok(vec![]) };
    let Value::Array(values) = value else {
        return Err(table_file::table_error(
            path,
            MODEL_TABLE,
            "models are a list; write [[model]] and its keys below",
        ));
    };
    values.iter().enumerate().map(|(index, value)| read_entry(index, value, path)).collect()
}

fn read_entry(index: usize, value: &Value, path: &Path) -> Result<CatalogueEntry> {
    let numbered = format!("{MODEL_TABLE} {}", index + 1);
    let Value::Table(table) = value else {
        return Err(table_file::table_error(path, &numbered, "a model is a table"));
    };
    let place = match table.get("pattern").and_then(Value::as_str) {
        Some(pattern) => format!("{numbered} ({pattern})"),
        None => numbered,
    };
    let row = TableRow { path, place, table };
    row.check_keys(&MODEL_KEYS)?;
    let patterns = row.field::<OneOrMany>("pattern")?.map(Vec::from).unwrap_or_default();
    if patterns.is_empty() {
        return Err(row.table_error("pattern", "missing"));
    }
    if let Some(pattern) = patterns.iter().find(|pattern| !is_bare(pattern) && !pattern.contains('/')) {
        let reason = format!("{pattern:?} is neither provider/model nor *model");
        return Err(row.table_error("pattern", reason));
    }
    Ok(CatalogueEntry {
        patterns,
        window: row.field("window")?,
        max_output: row.field("max_output")?,
        tools: row.field("tools")?.unwrap_or(true),
        reasons: row.field("reasons")?.unwrap_or(false),
        effort: row.field("effort")?,
        effort_off: row.field("effort_off")?,
        prices: row.field("prices")?,
    })
}
