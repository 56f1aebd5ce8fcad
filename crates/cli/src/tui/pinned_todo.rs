//! The todo list above the input while a turn runs.

use longhaul_protocol::{CallId, EventKind, Todo};
use longhaul_transcript::{StyledLine, TodoMarks, pinned_todo_lines, todo_of_call};

/// Rows of the list, by the rows that are left for it and the answer.
const ROWS_BY_ROOM: [(usize, usize); 3] = [(24, 3), (14, 2), (8, 1)];

/// The todo list of the session, as far as the screen has seen it.
#[derive(Debug, Default)]
pub(crate) struct PinnedTodo {
    list: Vec<Todo>,
    /// The list of a call that has not ended yet.
    pending: Option<(CallId, Vec<Todo>)>,
    marks: TodoMarks,
}

impl PinnedTodo {
    pub(crate) fn new(marks: TodoMarks) -> Self {
        Self { marks, ..Self::default() }
    }

    pub(crate) fn set_list(&mut self, list: Vec<Todo>) {
        (self.list, self.pending) = (list, None);
    }

    pub(crate) fn apply_event(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ToolStarted { call_id, name, arguments, .. } => {
                if let Some(list) = todo_of_call(name, arguments) {
                    self.pending = Some((*call_id, list));
                }
            }
            EventKind::ToolFinished { call_id, is_error, .. } => {
                let list = self.pending.take_if(|(call, _)| call == call_id);
                if let (Some((_, list)), false) = (list, *is_error) {
                    self.list = list;
                }
            }
            _ => {}
        }
    }

    /// The rows, if there is room for them.
    pub(crate) fn lines(&self, width: u16, room: usize) -> Vec<StyledLine> {
        let rows = ROWS_BY_ROOM.iter().find(|(least, _)| room >= *least).map_or(0, |(_, rows)| *rows);
        pinned_todo_lines(&self.list, self.marks, width, rows)
    }
}

/// The marks that the terminal can show, by its locale and kind.
pub(crate) fn marks_from_environment() -> TodoMarks {
    let variable = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(variable);
    marks_of(locale.as_deref(), variable("TERM").as_deref())
}

/// A terminal without a locale is taken for a modern one.
fn marks_of(locale: Option<&str>, terminal: Option<&str>) -> TodoMarks {
    let is_utf8 = locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    // The console of the kernel has a font of 512 characters.
    if is_utf8 && terminal != Some("linux") { TodoMarks::Unicode } else { TodoMarks::Ascii }
}

#[cfg(test)]
#[path = "pinned_todo_tests.rs"]
mod tests;
