//! `find_files`.

use std::ops::ControlFlow;
use std::sync::Arc;

use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::path_pattern::PathPattern;
use super::walk::{FolderWalk, UNLIMITED_DEPTH, WalkEntry};
use crate::blocking_run::CancelFlag;
use crate::scope::{EntryKind, Permission};
use crate::{
    FileError, PreparedCall, Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool,
    schema_of,
};

const MAX_FOUND_FILES: usize = 500;

/// What find_files takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Such as `*.rs` (at any depth), `src/**/*.rs`, `{a,b}*.toml`.
    #[schemars(length(max = 1000))]
    pattern: String,
    /// Default: the work folder.
    path: Option<String>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "find_files".into(),
        description: "Find files by name or path. To look inside files, use search_text.".into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "At most 500 files, the first in the order of their paths.",
            "What .gitignore leaves out, the folder .git and what is denied are not found; links are found and not \
             followed.",
        ],
        example: r#"{"pattern": "**/*.toml"}"#,
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    function_tool(definition(), scope, prepare)
}

fn prepare(
    scope: &Arc<Scope>,
    arguments: Arguments,
    _: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let pattern = PathPattern::new(&arguments.pattern).map_err(ToolOutcome::error)?;
    let scope = Arc::clone(scope);
    let work = move |cancel: &CancelFlag| {
        find(&scope, &arguments, &pattern, cancel).unwrap_or_else(ToolOutcome::from)
    };
    Ok(PreparedCall::cancellable(work))
}

fn find(
    scope: &Scope,
    arguments: &Arguments,
    pattern: &PathPattern,
    cancel: &CancelFlag,
) -> Result<ToolOutcome, FileError> {
    let place = scope.resolve(arguments.path.as_deref().unwrap_or("."), Permission::Read)?;
    let folder = place.folder()?;
    let mut lines = Vec::new();
    let mut more = false;
    let visit = |entry: &WalkEntry<'_>| {
        let inside = entry.path.strip_prefix(place.path()).unwrap_or(&entry.path);
        if entry.status.kind == EntryKind::Folder || !pattern.matches(inside) {
            return ControlFlow::Continue(());
        }
        if lines.len() == MAX_FOUND_FILES {
            more = true;
            return ControlFlow::Break(());
        }
        lines.push(scope.show(&entry.path));
        ControlFlow::Continue(())
    };
    let walked = FolderWalk { depth: UNLIMITED_DEPTH, cancel, visit }.walk(scope, &folder);
    if lines.is_empty() {
        lines.push(format!("[no file in {} fits {}]", place.shown(), arguments.pattern));
    }
    if more {
        lines.push(format!("[the first {MAX_FOUND_FILES}; there are more: use a narrower pattern or path]"));
    }
    lines.extend(walked.note(scope));
    Ok(ToolOutcome::ok(lines.join("\n")))
}
