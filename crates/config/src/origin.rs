//! The source of each value.

use std::collections::BTreeMap;
use std::fmt;

/// The source of a value that is not the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    File { name: String, line: usize },
    Variable(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

impl Origin {
    /// The line in the file. 0 if the origin is not a file.
    pub fn line(&self) -> usize {
        match self {
            Self::File { line, .. } => *line,
            Self::Variable(_) | Self::Flag(_) => 0,
        }
    }

    /// The origin as part of a sentence about the key.
    fn phrase(&self, key: &str) -> String {
        match self {
            Self::File { name, line } => format!("{key} in {name}:{line}"),
            Self::Variable(name) => format!("{name} in the environment"),
            Self::Flag(name) => (*name).to_owned(),
        }
    }
}

/// The origins of all values that are not the default, by `section.key`. A list that was appended to has several.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, Vec<Origin>>);

impl Origins {
    pub(crate) fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), vec![origin]);
    }

    pub(crate) fn add(&mut self, key: &str, origin: Origin) {
        self.0.entry(key.to_owned()).or_default().push(origin);
    }

    pub(crate) fn remove(&mut self, key: &str) {
        self.0.remove(key);
    }

    pub(crate) fn contains(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Whether a flag of the command line set it.
    pub fn is_flag(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|origins| origins.iter().any(|origin| matches!(origin, Origin::Flag(_))))
    }

    /// The text that is shown beside the value: `default`, `FILE:LINE`, `environment NAME` or the flag.
    pub fn source(&self, key: &str) -> String {
        match self.0.get(key) {
            Some(origins) => origins.iter().map(Origin::to_string).collect::<Vec<_>>().join(", "),
            None => "default".to_owned(),
        }
    }

    /// The text for a sentence: `model.base_url in /home/me/.longhaul/config.toml:3`, `--model`.
    pub fn set_by(&self, key: &str) -> String {
        match self.0.get(key) {
            Some(origins) => {
                origins.iter().map(|origin| origin.phrase(key)).collect::<Vec<_>>().join(" and ")
            }
            None => format!("the default of {key}"),
        }
    }
}
