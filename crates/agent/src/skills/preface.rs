//! What a new epoch says about skills: the list of all, and the text of those in use.

use longhaul_context::{SkillLine, SkillListRoom, max_bytes_for, render_skill_list};
use longhaul_protocol::{CallId, Warning};

use super::SKILLS_SKIPPED;
use super::library::{SkillLibrary, find_skills, read_skill};
use crate::memory::preface_tokens;
use crate::session::apply::skill_list;
use crate::session::state::State;
use crate::worker::Worker;

/// The most tokens of the list with descriptions, estimated.
const MAX_LIST_TOKENS: u64 = 3_000;
/// Names without descriptions are listed beyond that limit, up to this many tokens in all.
const MAX_NAMES_TOKENS: u64 = 20_000;

/// What a new context of a session says about skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SkillPreface {
    /// The list for the model. `None` if there are no skills.
    pub(crate) list: Option<String>,
    /// What the user should know: skills that are not used.
    pub(crate) warning: Option<Warning>,
}

/// The text of a skill in use, or why it is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActiveSkillText {
    pub(crate) name: String,
    pub(crate) folder: String,
    /// The call that has shown it. If its result stays in the context, the text is there already.
    pub(crate) call: CallId,
    pub(crate) text: Result<String, String>,
}

/// The list of skills for a context that begins now. A session without a work folder has no tool to read them with, and so
/// no list.
pub(crate) async fn skill_preface(worker: &Worker) -> SkillPreface {
    let Some(work_dir) = worker.toolset().usable_work_dir().map(ToOwned::to_owned) else {
        return SkillPreface::default();
    };
    let runtime = worker.runtime().clone();
    let search = {
        let runtime = runtime.clone();
        move || find_skills(&runtime.config, &work_dir)
    };
    let library = tokio::task::spawn_blocking(search).await.unwrap_or_default();
    let warning = library.skipped().map(|text| Warning::new(SKILLS_SKIPPED, runtime.redactor.redact(&text)));
    if library.ready().next().is_none() {
        return SkillPreface { list: None, warning };
    }
    let room = SkillListRoom {
        usual: max_bytes_for(preface_tokens(worker, MAX_LIST_TOKENS).await),
        names: max_bytes_for(preface_tokens(worker, MAX_NAMES_TOKENS).await),
    };
    let active: Vec<&str> = worker.state().active_skills.iter().map(|skill| skill.name.as_str()).collect();
    let list = render_library(&library, &active, room);
    SkillPreface { list: Some(runtime.redactor.redact(&list).into_owned()), warning }
}

/// The list of a library. Skills in use get their descriptions first, then those of the project.
fn render_library(library: &SkillLibrary, active: &[&str], room: SkillListRoom) -> String {
    let mut ready: Vec<_> = library.ready().collect();
    ready
        .sort_by_key(|(skill, _)| (!active.contains(&skill.name.as_str()), skill.source, skill.name.clone()));
    let lines: Vec<SkillLine<'_>> = ready
        .into_iter()
        .map(|(skill, document)| SkillLine { name: &skill.name, description: &document.description })
        .collect();
    render_skill_list(&lines, room).text
}

/// The skills in use, the newest first, with their texts as they are in their folders now.
pub(crate) async fn active_skill_texts(worker: &Worker) -> Vec<ActiveSkillText> {
    let active = worker.state().active_skills.clone();
    let Some(work_dir) =
        worker.toolset().usable_work_dir().map(ToOwned::to_owned).filter(|_| !active.is_empty())
    else {
        return vec![];
    };
    let runtime = worker.runtime().clone();
    let read = move || {
        let text = |skill: longhaul_protocol::ActiveSkill| {
            let text = match read_skill(&runtime.config, &work_dir, &skill.name, None) {
                Ok(content) if content.read.hash != skill.hash => {
                    Err("its folder has changed since you read it".to_owned())
                }
                Ok(content) => Ok(runtime.redactor.redact(&content.document.body).into_owned()),
                Err(reason) => Err(reason),
            };
            ActiveSkillText { name: skill.name, folder: skill.folder, call: skill.call, text }
        };
        active.into_iter().rev().map(text).collect()
    };
    tokio::task::spawn_blocking(read).await.unwrap_or_default()
}

/// What the list of skills in a session's context leaves out, as it says so itself. `None` if it leaves out nothing.
pub fn left_out_note(state: &State) -> Option<&str> {
    let last = skill_list(state)?.lines().last()?;
    last.strip_prefix('[')?.strip_suffix(']')
}
