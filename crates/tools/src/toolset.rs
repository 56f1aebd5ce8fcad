//! All tools of this crate.

use std::sync::Arc;

use crate::files::{delete_file, edit_file, move_file, patch, read_file, write_file};
use crate::search::{find_files, list_files, search_text};
use crate::tasks::{task_kill, task_output};
use crate::web::{fetch, search};
use crate::{Scope, Tool, ToolDefinition, ask_user, exec, todo};

/// The tools for files and the todo list. The order is fixed: the beginning of a request must not change.
pub fn file_tools(scope: Arc<Scope>) -> Vec<Arc<dyn Tool>> {
    vec![
        read_file::tool(Arc::clone(&scope)),
        write_file::tool(Arc::clone(&scope)),
        edit_file::tool(Arc::clone(&scope)),
        patch::tool(Arc::clone(&scope)),
        move_file::tool(Arc::clone(&scope)),
        delete_file::tool(Arc::clone(&scope)),
        list_files::tool(Arc::clone(&scope)),
        find_files::tool(Arc::clone(&scope)),
        search_text::tool(scope),
        todo::tool(),
    ]
}

/// The descriptions of all tools of this crate, in the order of `docs/tools.md`.
pub fn all_tool_definitions() -> Vec<ToolDefinition> {
    vec![
        read_file::definition(),
        write_file::definition(),
        edit_file::definition(),
        patch::definition(),
        move_file::definition(),
        delete_file::definition(),
        list_files::definition(),
        find_files::definition(),
        search_text::definition(),
        todo::definition(),
        exec::definition(),
        task_output::definition(),
        task_kill::definition(),
        ask_user::definition(),
        fetch::definition(),
        search::definition(),
    ]
}
