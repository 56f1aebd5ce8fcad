//! All the tools together.

use std::sync::Arc;

use crate::files::{self, EditFile, ReadFile, WriteFile};
use crate::search::{self, FindFiles, ListFiles, SearchText};
use crate::todo::{self, TodoList};
use crate::{About, Scope, Tool, exec, tasks};

/// The tools for files and the todo list, always in this order: what comes first in a request must not change.
pub fn file_tools(scope: Arc<Scope>) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadFile::new(Arc::clone(&scope))),
        Arc::new(WriteFile::new(Arc::clone(&scope))),
        Arc::new(EditFile::new(Arc::clone(&scope))),
        Arc::new(ListFiles::new(Arc::clone(&scope))),
        Arc::new(FindFiles::new(Arc::clone(&scope))),
        Arc::new(SearchText::new(scope)),
        Arc::new(TodoList::new()),
    ]
}

/// What is known of every tool of this crate without having any, in the order of `docs/tools.md`.
pub fn all_abouts() -> Vec<About> {
    vec![
        files::read_file_about(),
        files::write_file_about(),
        files::edit_file_about(),
        search::list_files_about(),
        search::find_files_about(),
        search::search_text_about(),
        todo::about(),
        exec::about(),
        tasks::task_list_about(),
        tasks::task_output_about(),
        tasks::task_wait_about(),
        tasks::task_kill_about(),
    ]
}
