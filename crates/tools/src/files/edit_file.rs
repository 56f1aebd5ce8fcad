//! `edit_file`.

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::{Effect, FileWrite, Hash, ToolStarted};
use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_WRITTEN_BYTES;
use super::text_edits::{Edit, apply};
use super::write_plan::{self, FileBeforeWrite, SizeLimit, WritePlan};
use crate::blocking::run_to_completion;
use crate::{About, Call, FileError, Finished, Prepared, Resumed, Scope, Tool, arguments, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_WRITTEN_BYTES as u64, doing: "edit_file edits" };

/// What edit_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file.
    path: String,
    /// The replacements, made in this order: all of them, or none if one does not fit.
    #[schemars(length(min = 1))]
    edits: Vec<Edit>,
}

/// The tool.
pub(crate) struct EditFile {
    scope: Arc<Scope>,
    about: About,
}

impl EditFile {
    pub(crate) fn new(scope: Arc<Scope>) -> Self {
        Self { scope, about: about() }
    }
}

pub(crate) fn about() -> About {
    About {
        name: "edit_file",
        description: "Replaces texts in a file. Each `old` must be exactly as in the file and occur once: give enough of \
                      what is around it. Fails if the file changed since it was read.",
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

#[async_trait]
impl Tool for EditFile {
    fn about(&self) -> &About {
        &self.about
    }

    async fn prepare(&self, call: &Call) -> Result<Prepared, Finished> {
        let arguments: Arguments = arguments::parse(&self.about, &call.arguments)?;
        let edits = arguments.edits.len();
        let (scope, looking) = (Arc::clone(&self.scope), call.clone());
        let plan = run_to_completion(move || edited(&scope, &looking, &arguments)).await?;
        let (scope, write, caution) = (Arc::clone(&self.scope), plan.write.clone(), plan.caution.clone());
        let run = move |_| async move {
            let perform = move || Ok(plan.perform(&scope, |shown, write| success_text(shown, write, edits)));
            run_to_completion(perform).await.unwrap_or_else(|problem| problem)
        };
        Ok(Prepared::new(run).writing(write).with_caution(caution))
    }

    async fn resume(&self, call: &Call, started: &ToolStarted) -> Resumed {
        let edits = match arguments::parse::<Arguments>(&self.about, &call.arguments) {
            Ok(arguments) => arguments.edits.len(),
            Err(problem) => return Resumed::Unknown(problem.content),
        };
        let (scope, started) = (Arc::clone(&self.scope), started.clone());
        let look = move || {
            Ok(write_plan::resume(&scope, &started, |shown, write| success_text(shown, write, edits)))
        };
        run_to_completion(look).await.unwrap_or_else(|problem| Resumed::Unknown(problem.content))
    }
}

fn edited(scope: &Scope, call: &Call, arguments: &Arguments) -> Result<WritePlan, Finished> {
    let found = FileBeforeWrite::load(scope, call, &arguments.path, SIZE_LIMIT)?;
    let shown = found.place.shown().to_owned();
    let open = found.place.open()?;
    let failed = |error| FileError::system("read", &shown, error);
    let mut bytes = Vec::new();
    open.file.take(SIZE_LIMIT.bytes + 1).read_to_end(&mut bytes).map_err(failed)?;
    if Some(Hash::of(&bytes)) != found.before {
        return Err(Finished::error(format!("{shown} changed while it was being read; try again")));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Finished::error(format!("{shown} is not UTF-8, so it can't be edited as text; use exec to change it"))
    })?;
    let text =
        apply(&text, &arguments.edits).map_err(|problem| Finished::error(format!("{shown}: {problem}")))?;
    Ok(found.plan(call.id, text.into_bytes()))
}

/// Made of what is on record alone, so that it is the same after a crash.
fn success_text(shown: &str, _write: &FileWrite, edits: usize) -> String {
    match edits {
        1 => format!("made 1 edit in {shown}"),
        _ => format!("made {edits} edits in {shown}"),
    }
}
