//! `move_file`.

use std::sync::Arc;

use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_REPLACED_BYTES;
use super::change_plan::{ChangePlan, PlannedChange};
use super::changing_tool::{ChangeArguments, ChangingTool, PlanContext};
use super::file_removal::exists_already;
use super::write_plan::SizeLimit;
use crate::{FileError, Scope, Tool, ToolDefinition, ToolOutcome, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_REPLACED_BYTES, doing: "move_file moves" };

/// What move_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    from: String,
    /// New path with the file's name. Missing folders are made.
    to: String,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "move_file".into(),
        description: "Move or rename a file. Never overwrites another.".into(),
        effect: Effect::CheckedWrite,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Regular files up to 64 MiB, within one file system; neither folders nor links.",
            "Fails if the file changed since it was read, or if something has the new name.",
        ],
        example: r#"{"from": "src/util.rs", "to": "src/text.rs"}"#,
    }
}

impl ChangeArguments for Arguments {
    fn plan(&self, context: &PlanContext<'_>) -> Result<ChangePlan, ToolOutcome> {
        let (from, to) = (context.load(&self.from, SIZE_LIMIT)?, context.load(&self.to, SIZE_LIMIT)?);
        if from.before.is_none() {
            return Err(FileError::NotFound { path: from.path.shown().to_owned() }.into());
        }
        if to.before.is_some() && context.is_pending(&to) {
            return Err(exists_already(&to.path).into());
        }
        let files = [&to, &from].map(|file| context.is_pending(file));
        let changes = PlannedChange::rename(&from, &to).into_iter().zip(files);
        let changes = changes.filter(|(_, is_pending)| *is_pending).map(|(change, _)| change).collect();
        let cautions = from.caution.into_iter().chain(to.caution);
        Ok(ChangePlan::new(context.call.id, changes, self.success_text(), cautions))
    }

    fn success_text(&self) -> String {
        format!("moved {} to {}", self.from, self.to)
    }
}

pub(crate) fn tool(scope: Arc<Scope>) -> Arc<dyn Tool> {
    Arc::new(ChangingTool::<Arguments>::new(definition(), scope))
}
