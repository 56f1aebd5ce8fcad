//! What is known about models where their servers don't say it.

use std::path::Path;

use toml::Value;

use crate::rows::{self, OneOrMany, Row};
use crate::{Prices, Result};

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;

/// The key under which models stand in a file of providers.
pub(crate) const ROWS: &str = "model";

const BUILT_IN: &str = include_str!("../models.toml");
const KEYS: [&str; 6] = ["pattern", "window", "max_output", "tools", "reasons", "prices"];

/// What is known about the models with a name like this.
#[derive(Debug, Clone, PartialEq)]
pub struct CatalogueEntry {
    /// The names: `provider/model`, or `*…` for a model whoever serves it. A `*` stands for anything.
    pub patterns: Vec<String>,
    /// How many tokens a context may have.
    pub window: Option<u64>,
    /// How many tokens an answer may have.
    pub max_output: Option<u64>,
    /// Whether they can call tools.
    pub tools: bool,
    /// Whether they think before they answer.
    pub reasons: bool,
    /// What they cost.
    pub prices: Option<Prices>,
}

/// What is known about models.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    /// The user's own entries.
    own: Vec<CatalogueEntry>,
    built_in: Vec<CatalogueEntry>,
}

impl Catalogue {
    /// What this program carries.
    pub fn built_in() -> Self {
        let path = Path::new("models.toml");
        let built_in = rows::parse(BUILT_IN, path)
            .and_then(|rows| entries(rows, path))
            .expect("a test reads the table that this program carries");
        Self { own: vec![], built_in }
    }

    /// With the user's own, which stand as `[[model]]` in the file of providers, if there is one. They count before all others.
    pub fn with_file(mut self, path: &Path) -> Result<Self> {
        self.own.extend(entries(rows::read(path)?, path)?);
        Ok(self)
    }

    /// What is known about a model. The user's own entries count first; then those with a provider; then the longest pattern.
    pub fn find(&self, provider: &str, model: &str) -> Option<&CatalogueEntry> {
        let wanted = CatalogueQuery::new(provider, model);
        wanted.best(&self.own).or_else(|| wanted.best(&self.built_in))
    }

    /// All entries, the user's own first.
    pub fn iter(&self) -> impl Iterator<Item = &CatalogueEntry> {
        self.own.iter().chain(&self.built_in)
    }
}

/// The names under which a model may stand in the catalogue, in lower case.
struct CatalogueQuery {
    names: Vec<String>,
    with_provider: Vec<String>,
}

impl CatalogueQuery {
    fn new(provider: &str, model: &str) -> Self {
        let model = model.to_lowercase();
        let mut names = vec![model.clone()];
        names.extend(without_date(&model).map(str::to_owned));
        let with_provider = names.iter().map(|name| format!("{}/{name}", provider.to_lowercase())).collect();
        Self { names, with_provider }
    }

    fn best<'a>(&self, entries: &'a [CatalogueEntry]) -> Option<&'a CatalogueEntry> {
        let patterns =
            entries.iter().flat_map(|entry| entry.patterns.iter().map(move |pattern| (pattern, entry)));
        let fitting = patterns.filter(|(pattern, _)| {
            let names = if is_bare(pattern) { &self.names } else { &self.with_provider };
            names.iter().any(|name| fits(pattern, name))
        });
        fitting.max_by_key(|(pattern, _)| (!is_bare(pattern), pattern.len())).map(|(_, entry)| entry)
    }
}

/// Whether a pattern is for a model whoever serves it.
fn is_bare(pattern: &str) -> bool {
    pattern.starts_with('*')
}

/// A name without `-20250929` or `-2025-09-29` at its end, if that is there.
fn without_date(name: &str) -> Option<&str> {
    ["-20dddddd", "-20dd-dd-dd"].into_iter().find_map(|form| {
        let (before, date) = name.split_at_checked(name.len().checked_sub(form.len())?)?;
        let fits = |(form, byte): (u8, u8)| if form == b'd' { byte.is_ascii_digit() } else { form == byte };
        form.bytes().zip(date.bytes()).all(fits).then_some(before)
    })
}

/// Whether a name is as a pattern says, whatever the case.
fn fits(pattern: &str, name: &str) -> bool {
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
    let Some((_, value)) = rows.into_iter().find(|(name, _)| name == ROWS) else { return Ok(vec![]) };
    let Value::Array(values) = value else {
        return Err(rows::bad(path, ROWS, "models are a list: write [[model]], and the keys of one below"));
    };
    values.iter().enumerate().map(|(index, value)| read(index, value, path)).collect()
}

fn read(index: usize, value: &Value, path: &Path) -> Result<CatalogueEntry> {
    let numbered = format!("{ROWS} {}", index + 1);
    let Value::Table(table) = value else { return Err(rows::bad(path, &numbered, "a model is a table")) };
    let place = match table.get("pattern").and_then(Value::as_str) {
        Some(pattern) => format!("{numbered} ({pattern})"),
        None => numbered,
    };
    let row = Row { path, place, table };
    row.has_only(&KEYS)?;
    let patterns = row.field::<OneOrMany>("pattern")?.map(Vec::from).unwrap_or_default();
    if patterns.is_empty() {
        return Err(row.bad("pattern", "it is missing"));
    }
    if let Some(pattern) = patterns.iter().find(|pattern| !is_bare(pattern) && !pattern.contains('/')) {
        let reason = format!("{pattern:?} is neither provider/model nor *model");
        return Err(row.bad("pattern", reason));
    }
    Ok(CatalogueEntry {
        patterns,
        window: row.field("window")?,
        max_output: row.field("max_output")?,
        tools: row.field("tools")?.unwrap_or(true),
        reasons: row.field("reasons")?.unwrap_or(false),
        prices: row.field("prices")?,
    })
}
