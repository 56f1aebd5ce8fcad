//! `write_file`.

use std::sync::Arc;

use longhaul_protocol::{Effect, FileWrite};
use schemars::JsonSchema;
use serde::Deserialize;

use super::write_plan::{FileBeforeWrite, SizeLimit, WritePlan};
use super::writing_tool::{WriteArguments, WritingTool};
use super::{MAX_REPLACED_BYTES, MAX_WRITTEN_BYTES};
use crate::{Scope, Tool, ToolDefinition, ToolInvocation, ToolOutcome, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_REPLACED_BYTES, doing: "write_file replaces" };

/// What write_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Missing folders are made.
    path: String,
    /// The whole new content.
    content: String,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "write_file".into(),
        description: "Create a file, or replace all of one. To change parts, use edit_file. Fails if the file changed since you \
                      read it.".into(),
        effect: Effect::CheckedWrite,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Content up to 8 MiB, in place of files up to 64 MiB.",
            "The file is replaced at once and durably; mode and owner stay. Where the owner can't be kept, it fails.",
            "A hard link to the old file keeps the old content.",
            "While it is written, a temporary file (`.longhaul-` and the call's id) is beside it, also where only the file \
             itself is allowed and not its folder.",
            "Folders that were made for a file that then could not be written are removed again.",
        ],
        example: r#"{"path": "src/greeting.rs", "content": "pub const GREETING: &str = \"hello\";\n"}"#,
    }
}

impl WriteArguments for Arguments {
    fn plan(self, scope: &Scope, call: &ToolInvocation) -> Result<WritePlan, ToolOutcome> {
        let bytes = self.content.len();
        if bytes > MAX_WRITTEN_BYTES {
            return Err(ToolOutcome::error(format!(
                "`content` has {bytes} bytes; at most {MAX_WRITTEN_BYTES} are written"
            )));
        }
        let file = FileBeforeWrite::load(scope, call, &self.path, SIZE_LIMIT)?;
        let before = file.text();
        Ok(file.plan(call.id, self.content.into_bytes(), before.as_deref()))
    }

    fn amount(&self) -> usize {
        self.content.len()
    }

    fn success_text(shown: &str, write: &FileWrite, bytes: usize) -> String {
        let new = if write.before.is_none() { " (new)" } else { "" };
        format!("wrote {bytes} bytes to {shown}{new}")
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    Arc::new(WritingTool::<Arguments>::new(definition(), scope))
}
