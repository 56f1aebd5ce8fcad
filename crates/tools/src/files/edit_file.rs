//! `edit_file`.

use std::io::Read;
use std::sync::Arc;

use longhaul_protocol::{Effect, FileWrite, Hash};
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_WRITTEN_BYTES;
use super::text_edits::{Edit, apply};
use super::write_plan::{FileBeforeWrite, SizeLimit, WritePlan};
use super::writing_tool::{WriteArguments, WritingTool};
use crate::{FileError, Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_WRITTEN_BYTES as u64, doing: "edit_file edits" };

/// What edit_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    /// Made in this order, all or none.
    #[schemars(length(min = 1))]
    edits: Vec<Edit>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "edit_file".into(),
        description:
            "Replace exact pieces of text in a file that you have read. Fails if the file changed since."
                .into(),
        effect: Effect::CheckedWrite,
        schema: schema_of::<Arguments>(),
        limits: &[
            "UTF-8 files up to 8 MiB, before and after.",
            "All edits are made or none; each sees what the ones before it have made.",
            "Nothing but the replaced text changes: ends of lines, mode and owner stay.",
        ],
        example: r#"{"path": "src/main.rs", "edits": [{"old": "fn old_name(", "new": "fn new_name("}]}"#,
    }
}

impl WriteArguments for Arguments {
    fn plan(self, scope: &Scope, call: &ToolInvocation) -> Result<WritePlan, ToolOutcome> {
        let found = FileBeforeWrite::load(scope, call, &self.path, SIZE_LIMIT)?;
        let shown = found.path.shown().to_owned();
        let open = found.path.open()?;
        let mut bytes = Vec::new();
        let read = open.file.take(SIZE_LIMIT.bytes + 1).read_to_end(&mut bytes);
        read.map_err(|error| FileError::system("read", &shown, error))?;
        if Some(Hash::of(&bytes)) != found.before {
            return Err(ToolOutcome::error(format!("{shown} changed while it was being read; try again")));
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            ToolOutcome::error(format!(
                "{shown} is not UTF-8, so it can't be edited as text; use exec to change it"
            ))
        })?;
        let edited =
            apply(&text, &self.edits).map_err(|problem| ToolOutcome::error(format!("{shown}: {problem}")))?;
        Ok(found.plan(call.id, edited.into_bytes(), Some(&text)))
    }

    fn amount(&self) -> usize {
        self.edits.len()
    }

    fn success_text(shown: &str, _: &FileWrite, edits: usize) -> String {
        match edits {
            1 => format!("made 1 edit in {shown}"),
            _ => format!("made {edits} edits in {shown}"),
        }
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    Arc::new(WritingTool::<Arguments>::new(definition(), scope))
}
