//! `list_files`.

use std::ops::ControlFlow;
use std::sync::Arc;

use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::walk::{FolderWalk, WalkEntry};
use crate::blocking_run::CancelFlag;
use crate::display::display_path;
use crate::scope::{EntryKind, Permission};
use crate::{
    FileError, PreparedCall, Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool,
    schema_of,
};

const MAX_ENTRIES: usize = 1_000;

/// What list_files takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Default: the work folder.
    path: Option<String>,
    /// Levels of folders. Default: 1.
    #[schemars(range(min = 1, max = 10))]
    depth: Option<u8>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "list_files".into(),
        description: "List a folder: folders end with /, files have their size in bytes.".into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "At most 1,000 entries, in the order of their paths.",
            "What .gitignore leaves out, the folder .git and what is denied are not listed; links are not followed.",
        ],
        example: r#"{"path": "src", "depth": 2}"#,
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
    let scope = Arc::clone(scope);
    Ok(PreparedCall::cancellable(move |cancel| {
        list(&scope, &arguments, cancel).unwrap_or_else(ToolOutcome::from)
    }))
}

fn list(scope: &Scope, arguments: &Arguments, cancel: &CancelFlag) -> Result<ToolOutcome, FileError> {
    let place = scope.resolve(arguments.path.as_deref().unwrap_or("."), Permission::Read)?;
    let folder = place.folder()?;
    let mut lines = Vec::new();
    let mut more = false;
    let visit = |entry: &WalkEntry<'_>| {
        if lines.len() == MAX_ENTRIES {
            more = true;
            return ControlFlow::Break(());
        }
        lines.push(line(scope, entry));
        ControlFlow::Continue(())
    };
    let depth = arguments.depth.map_or(1, usize::from);
    let walked = FolderWalk { depth, cancel, visit }.walk(scope, &folder);
    if lines.is_empty() {
        lines.push(format!("[{} is empty, or all in it is ignored]", place.shown()));
    }
    if more {
        lines.push(format!(
            "[the first {MAX_ENTRIES} entries; list a folder further down, or use find_files]"
        ));
    }
    lines.extend(walked.note(scope));
    Ok(ToolOutcome::ok(lines.join("\n")))
}

fn line(scope: &Scope, entry: &WalkEntry<'_>) -> String {
    let path = scope.show(&entry.path);
    match entry.status.kind {
        EntryKind::Folder => format!("{path}/"),
        EntryKind::File => format!("{path} ({} bytes)", entry.status.bytes),
        EntryKind::Special(kind) => format!("{path} ({kind})"),
        EntryKind::Link => match entry.folder.link(entry.name) {
            Ok(target) => format!("{path} -> {}", display_path(&target)),
            Err(_) => format!("{path} (a link)"),
        },
    }
}
