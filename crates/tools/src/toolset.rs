//! All tools of this crate.

use std::sync::Arc;

use crate::files::{edit_file, read_file, write_file};
use crate::search::{find_files, list_files, search_text};
use crate::tasks::{task_kill, task_list, task_output, task_wait};
use crate::{About, Scope, Tool, exec, todo};

/// The tools for files and the todo list. The order is fixed: the beginning of a request must not change.
pub fn file_tools(scope: Arc<Scope>) -> Vec<Arc<dyn Tool>> {
    vec![
        read_file::tool(Arc::clone(&scope)),
        write_file::tool(Arc::clone(&scope)),
        edit_file::tool(Arc::clone(&scope)),
        list_files::tool(Arc::clone(&scope)),
        find_files::tool(Arc::clone(&scope)),
        search_text::tool(scope),
        todo::tool(),
    ]
}

/// The descriptions of all tools of this crate, in the order of `docs/tools.md`.
pub fn all_abouts() -> Vec<About> {
    vec![
        read_file::about(),
        write_file::about(),
        edit_file::about(),
        list_files::about(),
        find_files::about(),
        search_text::about(),
        todo::about(),
        exec::about(),
        task_list::about(),
        task_output::about(),
        task_wait::about(),
        task_kill::about(),
    ]
}
