//! What refusals taught about models: the order of roles, the context window, the longest answer. Kept in a file, so
//! that the next process is not refused again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::RoleOrder;
use crate::cache_file::{append_line, read_lines};

/// What was learned about the models of all servers. The file has one JSON object on each line, and the newest about a
/// model counts. It may be deleted at any time: then the next refusal teaches it again.
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
    /// The order of roles that was accepted after another was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) roles: Option<LearnedRoles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<LearnedWindow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<u64>,
}

/// An accepted order of roles. It holds while the declared order is the same: a user who declares another one knows
/// better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedRoles {
    pub(crate) declared: RoleOrder,
    pub(crate) accepted: RoleOrder,
}

/// A corrected window. It holds while the declared window is the same: a newly configured or reported one is better.
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
    /// Unreadable lines are skipped.
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

    /// Changes the entry of a model for as long as this process runs.
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

    /// Changes the entry and writes it to the file for other processes.
    pub(crate) fn learn(&self, model: &ServedModel, change: impl FnOnce(&mut LearnedEntry)) {
        let before = self.get(model);
        let entry = self.learn_in_memory(model, change);
        if let (true, Some(file)) = (entry != before, &self.file) {
            // A failed write is learned again by the next process.
            let line = serde_json::to_string(&FileLine { of: model.clone(), entry });
            let _ = line.map(|line| append_line(file, &line));
        }
    }
}
