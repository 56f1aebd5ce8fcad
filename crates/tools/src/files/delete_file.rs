//! `delete_file`.

use std::sync::Arc;

use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_REPLACED_BYTES;
use super::change_plan::{ChangePlan, PlannedChange};
use super::changing_tool::{ChangeArguments, ChangingTool, PlanContext};
use super::write_plan::SizeLimit;
use crate::{FileError, Scope, Tool, ToolDefinition, ToolOutcome, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_REPLACED_BYTES, doing: "delete_file deletes" };

/// What delete_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "delete_file".into(),
        description: "Delete a file.".into(),
        effect: Effect::CheckedWrite,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Regular files up to 64 MiB; neither folders nor links.",
            "Fails if the file changed since it was read.",
        ],
        example: r#"{"path": "src/unused.rs"}"#,
    }
}

impl ChangeArguments for Arguments {
    fn plan(&self, context: &PlanContext<'_>) -> Result<ChangePlan, ToolOutcome> {
        let file = context.load(&self.path, SIZE_LIMIT)?;
        if file.before.is_none() {
            return Err(FileError::NotFound { path: file.path.shown().to_owned() }.into());
        }
        let changes = vec![PlannedChange::remove(&file)];
        Ok(ChangePlan::new(context.call.id, changes, self.success_text(), file.caution))
    }

    fn success_text(&self) -> String {
        format!("deleted {}", self.path)
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    Arc::new(ChangingTool::<Arguments>::new(definition(), scope))
}
