//! What servers were seen to accept. A refusal teaches it once, and the next process need not be refused again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::RoleOrder;
use crate::cache_file::{append_line, read_lines};

/// What was learned about the models of all servers. It is kept in a file with one JSON object a line, of which the newest about
/// a model counts. The file may be deleted at any time: each lesson is then learned again by one refusal.
#[derive(Debug, Default)]
pub struct LearnedCapabilities {
    file: Option<PathBuf>,
    lessons: Mutex<HashMap<ServedModel, Lesson>>,
}

/// One model of one server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct ServedModel {
    pub(crate) server: String,
    pub(crate) model: String,
}

/// What was learned about one model of one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Lesson {
    /// The order of roles that it accepted after it had refused another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) roles: Option<LearnedRoles>,
    /// The window that it turned out to have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) window: Option<LearnedWindow>,
    /// The longest answer that it accepts to be asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_output: Option<u64>,
}

/// An order of roles that was accepted. It holds as long as the order is declared as it was then: a user who declares another one knows
/// better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedRoles {
    pub(crate) declared: RoleOrder,
    pub(crate) accepted: RoleOrder,
}

/// A window that was corrected. It holds as long as the window is declared as it was then: a user who sets another one, or a server
/// that reports another one, knows better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LearnedWindow {
    pub(crate) declared: u64,
    pub(crate) tokens: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    of: ServedModel,
    #[serde(flatten)]
    lesson: Lesson,
}

impl LearnedCapabilities {
    /// What this file says. Lines that can't be read are skipped.
    pub fn at(file: &Path) -> Self {
        let text = read_lines(file);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let lessons = lines.map(|line| (line.of, line.lesson)).collect();
        Self { file: Some(file.to_owned()), lessons: Mutex::new(lessons) }
    }

    pub(crate) fn about(&self, model: &ServedModel) -> Lesson {
        let lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.get(model).copied().unwrap_or_default()
    }

    /// Remembers what `change` makes of the lesson about a model, for as long as this process runs.
    pub(crate) fn suppose(&self, model: &ServedModel, change: impl FnOnce(&mut Lesson)) -> Lesson {
        let mut lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        let lesson = lessons.entry(model.clone()).or_default();
        change(lesson);
        *lesson
    }

    /// The same, and writes it down for other processes.
    pub(crate) fn learn(&self, model: &ServedModel, change: impl FnOnce(&mut Lesson)) {
        let before = self.about(model);
        let lesson = self.suppose(model, change);
        if let (true, Some(file)) = (lesson != before, &self.file) {
            // A lesson that can't be written is learned again by the next process.
            let line = serde_json::to_string(&Line { of: model.clone(), lesson });
            let _ = line.map(|line| append_line(file, &line));
        }
    }
}
