//! Where each value comes from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a config is made from besides the home.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The folder that new sessions work in, in which and above which a project's `longhaul.toml` is looked for; without it, the
    /// process's own.
    pub work_dir: Option<PathBuf>,
    /// A file in place of the home's `config.toml` (`--config`). It must be there.
    pub config_file: Option<PathBuf>,
    /// What `LONGHAUL_MODEL` says. Empty is as good as not set.
    pub model_variable: Option<String>,
    /// What `--model` says.
    pub model_flag: Option<String>,
}

impl Sources {
    /// The file that stands below everything else.
    pub(crate) fn base_file(&self, home: &Path) -> PathBuf {
        let file = self.config_file.clone().unwrap_or_else(|| home.join("config.toml"));
        std::path::absolute(&file).unwrap_or(file)
    }

    pub(crate) fn work_dir(&self) -> PathBuf {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        self.work_dir.clone().unwrap_or_else(here)
    }
}

/// What set a value, if it is not the default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
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
    /// In a sentence.
    fn phrase(&self, key: &str) -> String {
        match self {
            Self::File { name, line } => format!("{key} in {name}:{line}"),
            Self::Variable(name) => format!("{name} in the environment"),
            Self::Flag(name) => (*name).to_owned(),
        }
    }
}

/// What set each of the values that are not as they are by default.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, Vec<Origin>>);

impl Origins {
    pub(crate) fn set(&mut self, key: &str, origin: Origin) {
        self.0.insert(key.to_owned(), vec![origin]);
    }

    /// Some keys are set together: what a project denies is denied besides what is denied already.
    pub(crate) fn add(&mut self, key: &str, origin: Origin) {
        self.0.entry(key.to_owned()).or_default().push(origin);
    }

    pub(crate) fn forget(&mut self, key: &str) {
        self.0.remove(key);
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// As it stands beside the value: `default`, `FILE:LINE`, `environment NAME` or the flag.
    pub(crate) fn source(&self, key: &str) -> String {
        match self.0.get(key) {
            Some(origins) => origins.iter().map(Origin::to_string).collect::<Vec<_>>().join(", "),
            None => "default".to_owned(),
        }
    }

    pub(crate) fn set_by(&self, key: &str) -> String {
        match self.0.get(key) {
            Some(origins) => {
                origins.iter().map(|origin| origin.phrase(key)).collect::<Vec<_>>().join(" and ")
            }
            None => format!("the default of {key}"),
        }
    }
}
