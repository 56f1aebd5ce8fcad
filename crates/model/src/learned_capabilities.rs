//! What refusals taught about models: the order of roles, the context window, the longest answer, the reasoning effort. A cache file keeps
//! it, so that the next process is not refused again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::RoleOrder;
use crate::cache_file::{append_line, read_lines};
use crate::effort::LearnedEffort;

/// What was learned about the models of all servers. The cache file has one JSON object on each line, and the last
/// line about a model counts. The file may be deleted at any time: then the next refusal teaches it again.
#[derive(Debug, Default)]
pub struct LearnedCapabilities {
    file: Option<PathBuf>,
    entries: Mutex<HashMap<ServedModel, LearnedEntry>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ServedModel {
    pub(crate) server: String,
    pub(crate) model: String,
}

/// What was learned about one model of one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LearnedEntry {
    /// The order of roles that the server accepted after it refused another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) roles: Option<LearnedRoles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<LearnedWindow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<u64>,
    /// The form of the reasoning effort that the server accepted after it refused another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<LearnedEffort>,
}

/// An accepted order of roles. It is valid only while the declared order stays the same: a user who declares another
/// order knows better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedRoles {
    pub(crate) declared: RoleOrder,
    pub(crate) accepted: RoleOrder,
}

/// A corrected window. It is valid only while the declared window stays the same: a newly configured or reported
/// window replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedWindow {
    pub(crate) declared: u64,
    pub(crate) tokens: u64,
}

#[derive(Serialize, Deserialize)]
struct FileLine {
    #[serde(flatten)]
    of: ServedModel,
    #[serde(flatten)]
    entry: LearnedEntry,
}

impl LearnedCapabilities {
    /// Loads the file. Skips lines that can't be parsed.
    pub fn at(file: &Path) -> Self {
        let text = read_lines(file);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<FileLine>(line).ok());
        let entries = lines.map(|line| (line.of, line.entry)).collect();
        Self { file: Some(file.to_owned()), entries: Mutex::new(entries) }
    }

    pub(crate) fn get(&self, model: &ServedModel) -> LearnedEntry {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(model).copied().unwrap_or_default()
    }

    /// Changes the entry of a model until this process ends.
    pub(crate) fn learn_in_memory(
        &self,
        model: &ServedModel,
        change: impl FnOnce(&mut LearnedEntry),
    ) -> LearnedEntry {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.entry(model.clone()).or_default();
        change(entry);
        *entry
    }

    /// Changes the entry of a model, and writes it to the file for other processes.
    pub(crate) fn learn(&self, model: &ServedModel, change: impl FnOnce(&mut LearnedEntry)) {
        let before = self.get(model);
        let entry = self.learn_in_memory(model, change);
        if let (true, Some(file)) = (entry != before, &self.file) {
            // If the write fails, the next process learns it again.
            let line = serde_json::to_string(&FileLine { of: model.clone(), entry });
            let _ = line.map(|line| append_line(file, &line));
        }
    }
}
