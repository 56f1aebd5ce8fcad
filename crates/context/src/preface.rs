//! What a compacted context begins with, after its summary: what is pinned, the todo list, the tasks that run.

use longhaul_protocol::{Pin, TaskStarted, Todo};

/// The first request, word for word; shortened in its middle if it takes more than so many tokens, with a line that says how to read it.
pub fn first_request(_text: &str, _seq: u64, _most: u64) -> Pin {
    todo!()
}

/// The files that were changed, in at most so many tokens: the newest, if not all.
pub fn files_changed(_paths: &[String], _most: u64) -> Option<Pin> {
    todo!()
}

/// A pin, as the model reads it.
pub fn render_pin(_pin: &Pin) -> String {
    todo!()
}

/// The todo list, which begins with `[Session todo snapshot]`, also when it is empty; in at most so many tokens.
pub fn render_todo(_todo: &[Todo], _most: u64) -> String {
    todo!()
}

/// A request of the open turn that is too long to stay as it is: head and tail, with a line between them that says how to read it.
pub fn shorten_request(_text: &str, _seq: u64, _most: u64) -> String {
    todo!()
}

/// The tasks that run, if any do.
pub fn render_tasks<'a>(_running: impl IntoIterator<Item = &'a TaskStarted>) -> Option<String> {
    todo!()
}
