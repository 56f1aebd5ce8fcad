//! `patch`: changes of several files in one call.

use std::collections::HashSet;
use std::io::Read;
use std::sync::Arc;

use longhaul_protocol::{Effect, Hash};
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_WRITTEN_BYTES;
use super::change_plan::{ChangePlan, PlannedChange};
use super::changing_tool::{ChangeArguments, ChangingTool, PlanContext};
use super::patch_format::{FilePatch, PatchAction, parse_patch};
use super::patch_hunks::apply_hunks;
use super::write_plan::{FileBeforeWrite, SizeLimit};
use crate::{FileError, Scope, Tool, ToolDefinition, ToolOutcome, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_WRITTEN_BYTES as u64, doing: "patch changes" };

/// What patch takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// `*** Begin Patch`, then for each file `*** Add File: PATH`, `*** Delete File: PATH`, or `*** Update File: PATH` (then
    /// optionally `*** Move to: PATH`) with hunks: `@@`, then lines that begin with a space, `-` or `+`. Last `*** End Patch`.
    patch: String,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "patch".into(),
        description: "Change several files at once, all or nothing. For one file prefer edit_file.".into(),
        effect: Effect::CheckedWrite,
        schema: schema_of::<Arguments>(),
        limits: &[
            "UTF-8 files up to 8 MiB, before and after; up to 100 files.",
            "Everything is checked before the first file is changed. If a change fails then, those before it are taken back.",
            "The lines of a hunk must be in the file exactly, apart from white space at their ends, and in one place only. A text behind \
             `@@` is a line above the place, for lines that occur more than once; `*** End of File` after a hunk says that it is at the end.",
            "A file is not added or moved over another. Fails if a file changed since it was read.",
        ],
        example: r#"{"patch": "*** Begin Patch\n*** Update File: src/main.rs\n@@ fn main() {\n-    old();\n+    new();\n*** Delete File: src/old.rs\n*** End Patch"}"#,
    }
}

impl ChangeArguments for Arguments {
    fn plan(&self, context: &PlanContext<'_>) -> Result<ChangePlan, ToolOutcome> {
        let files = parse_patch(&self.patch).map_err(|problem| refused(&problem))?;
        let (mut changes, mut cautions, mut paths) = (Vec::new(), Vec::new(), HashSet::new());
        for file in &files {
            for loaded in plan_file(context, file, &mut changes)? {
                if !paths.insert(loaded.key.clone()) {
                    return Err(refused(&format!("{} is named twice", loaded.path.shown())));
                }
                cautions.extend(loaded.caution);
            }
        }
        Ok(ChangePlan::new(context.call.id, changes, self.success_text(), cautions))
    }

    fn success_text(&self) -> String {
        let files = parse_patch(&self.patch).unwrap_or_default();
        let lines: Vec<String> = files.iter().map(FilePatch::summary).collect();
        lines.join("\n")
    }
}

fn refused(problem: &str) -> ToolOutcome {
    ToolOutcome::error(format!("nothing was changed: {problem}"))
}

/// Plans the changes of one file, and returns the files that it names.
fn plan_file(
    context: &PlanContext<'_>,
    file: &FilePatch,
    changes: &mut Vec<PlannedChange>,
) -> Result<Vec<FileBeforeWrite>, ToolOutcome> {
    let loaded = context.load(&file.path, SIZE_LIMIT)?;
    let shown = loaded.path.shown().to_owned();
    let missing = || Err(FileError::NotFound { path: shown.clone() }.into());
    let exists = |shown: &str| refused(&format!("{shown} exists already"));
    match &file.action {
        PatchAction::Add { content } => {
            if context.is_pending(&loaded) {
                if loaded.before.is_some() {
                    return Err(exists(&shown));
                }
                changes.push(PlannedChange::write(&loaded, None, content.clone().into_bytes()));
            }
            Ok(vec![loaded])
        }
        PatchAction::Delete => {
            if context.is_pending(&loaded) {
                if loaded.before.is_none() {
                    return missing();
                }
                changes.push(PlannedChange::remove(&loaded));
            }
            Ok(vec![loaded])
        }
        PatchAction::Update { move_to: None, hunks } => {
            if context.is_pending(&loaded) {
                let Some(old) = read_text(&loaded)? else { return missing() };
                let new =
                    apply_hunks(&old, hunks).map_err(|problem| refused(&format!("{shown}: {problem}")))?;
                changes.push(PlannedChange::write(&loaded, Some(old.into_bytes()), new.into_bytes()));
            }
            Ok(vec![loaded])
        }
        PatchAction::Update { move_to: Some(to), hunks } => {
            let target = context.load(to, SIZE_LIMIT)?;
            if context.is_pending(&target) {
                if target.before.is_some() {
                    return Err(exists(target.path.shown()));
                }
                let Some(old) = read_text(&loaded)? else { return missing() };
                let new =
                    apply_hunks(&old, hunks).map_err(|problem| refused(&format!("{shown}: {problem}")))?;
                changes.push(PlannedChange::write_like(&target, &loaded, new.into_bytes()));
            }
            if context.is_pending(&loaded) {
                changes.push(PlannedChange::remove(&loaded));
            }
            Ok(vec![loaded, target])
        }
    }
}

/// The text of a file as it was hashed; `None` if there is no file.
fn read_text(file: &FileBeforeWrite) -> Result<Option<String>, ToolOutcome> {
    let Some(before) = file.before else { return Ok(None) };
    let shown = file.path.shown();
    let mut bytes = Vec::new();
    let read = file.path.open()?.file.take(SIZE_LIMIT.bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| FileError::system("read", shown, error))?;
    if Hash::of(&bytes) != before {
        return Err(refused(&format!("{shown} changed while it was being read; try again")));
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|_| refused(&format!("{shown} is not UTF-8, so it can't be patched; use exec to change it")))
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    Arc::new(ChangingTool::<Arguments>::new(definition(), scope))
}
