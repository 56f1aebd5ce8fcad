//! `write_file`.

use std::sync::Arc;

use async_trait::async_trait;
use longhaul_protocol::{Effect, FileWrite, ToolStarted};
use schemars::JsonSchema;
use serde::Deserialize;

use super::write_plan::{self, FileBeforeWrite, SizeLimit};
use super::{MAX_REPLACED_BYTES, MAX_WRITTEN_BYTES};
use crate::blocking::run_to_completion;
use crate::{About, Call, Finished, Prepared, Resumed, Scope, Tool, arguments, schema_of};

const SIZE_LIMIT: SizeLimit = SizeLimit { bytes: MAX_REPLACED_BYTES, doing: "write_file replaces" };

/// What write_file takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file. Missing folders are made.
    path: String,
    /// All that the file will hold.
    content: String,
}

/// The tool.
pub(crate) struct WriteFile {
    scope: Arc<Scope>,
    about: About,
}

impl WriteFile {
    pub(crate) fn new(scope: Arc<Scope>) -> Self {
        Self { scope, about: about() }
    }
}

pub(crate) fn about() -> About {
    About {
        name: "write_file",
        description: "Writes a whole file, new or in place of an old one. To change a part use edit_file. Fails if \
                      the file changed since it was read.",
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

#[async_trait]
impl Tool for WriteFile {
    fn about(&self) -> &About {
        &self.about
    }

    async fn prepare(&self, call: &Call) -> Result<Prepared, Finished> {
        let Arguments { path, content } = arguments::parse(&self.about, &call.arguments)?;
        let bytes = content.len();
        if bytes > MAX_WRITTEN_BYTES {
            return Err(Finished::error(format!(
                "`content` has {bytes} bytes; at most {MAX_WRITTEN_BYTES} are written"
            )));
        }
        let (scope, looking) = (Arc::clone(&self.scope), call.clone());
        let plan = run_to_completion(move || {
            Ok(FileBeforeWrite::load(&scope, &looking, &path, SIZE_LIMIT)?
                .plan(looking.id, content.into_bytes()))
        })
        .await?;
        let (scope, write, caution) = (Arc::clone(&self.scope), plan.write.clone(), plan.caution.clone());
        let run = move |_| async move {
            let perform = move || Ok(plan.perform(&scope, |shown, write| success_text(shown, write, bytes)));
            run_to_completion(perform).await.unwrap_or_else(|problem| problem)
        };
        Ok(Prepared::new(run).writing(write).with_caution(caution))
    }

    async fn resume(&self, call: &Call, started: &ToolStarted) -> Resumed {
        let bytes = match arguments::parse::<Arguments>(&self.about, &call.arguments) {
            Ok(arguments) => arguments.content.len(),
            Err(problem) => return Resumed::Unknown(problem.content),
        };
        let (scope, started) = (Arc::clone(&self.scope), started.clone());
        let look = move || {
            Ok(write_plan::resume(&scope, &started, |shown, write| success_text(shown, write, bytes)))
        };
        run_to_completion(look).await.unwrap_or_else(|problem| Resumed::Unknown(problem.content))
    }
}

/// Made of what is on record alone, so that it is the same after a crash.
fn success_text(shown: &str, write: &FileWrite, bytes: usize) -> String {
    let new = if write.before.is_none() { " (new)" } else { "" };
    format!("wrote {bytes} bytes to {shown}{new}")
}
