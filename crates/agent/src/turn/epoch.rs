//! Begins an epoch: from now on the context begins with this system prompt and these tools.

use std::path::Path;

use longhaul_journal::Blob;
use longhaul_protocol::{
    EpochReason, EpochStarted, SKILLS_MARK, SessionCreated, SessionRecord, SystemMessage, TextContent,
    Warning,
};

use crate::memory::memory_for_context;
use crate::session::apply::skill_list;
use crate::session::state::Epoch;
use crate::skills::{SkillPreface, skill_preface};
use crate::worker::{Worker, WorkerResult};

/// Starts an epoch because the system prompt or the tools have changed. The list of skills is made anew.
pub(crate) async fn start_epoch(worker: &mut Worker) -> WorkerResult<()> {
    let (mut records, blobs) = epoch_records(worker, EpochReason::Changed);
    let preface = skill_preface(worker).await;
    let known = skill_list(worker.state());
    let none_left = || known.map(|_| format!("{SKILLS_MARK}\nThere are none any more."));
    if let Some(list) = preface.list.or_else(none_left).filter(|list| known != Some(list)) {
        records.push(text_message(list));
    }
    let is_new = |warning: &Warning| !worker.state().given_warnings.contains(&warning.code);
    records.extend(preface.warning.filter(is_new).map(SessionRecord::Warning));
    worker.commit(records, blobs).await
}

/// The records and blobs with which a session begins: its first epoch, what it remembers, and its skills.
pub(crate) async fn first_epoch_records(worker: &Worker) -> (Vec<SessionRecord>, Vec<Blob>) {
    let (mut records, blobs) = epoch_records(worker, EpochReason::Created);
    records.extend(memory_for_context(worker).await.map(text_message));
    let SkillPreface { list, warning } = skill_preface(worker).await;
    records.extend(list.map(text_message));
    records.extend(warning.map(SessionRecord::Warning));
    (records, blobs)
}

/// A message that the runtime composed for an epoch.
fn text_message(text: String) -> SessionRecord {
    SessionRecord::SystemMessage(SystemMessage { content: vec![TextContent { text }] })
}

/// The records that begin an epoch with the current context. If the session is new, `session_created` comes first.
pub(crate) fn epoch_records(worker: &Worker, reason: EpochReason) -> (Vec<SessionRecord>, Vec<Blob>) {
    let (state, toolset) = (worker.state(), worker.toolset());
    let mut records = Vec::new();
    if state.head == 0 {
        records.push(SessionRecord::SessionCreated(SessionCreated {
            id: worker.id(),
            key: worker.key().to_owned(),
            work_dir: toolset.work_dir().and_then(Path::to_str).map(str::to_owned),
            origin: None,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            parent: None,
        }));
    }
    let previous = state.epoch.as_ref();
    let number = previous.map_or(1, |epoch| epoch.number.saturating_add(1));
    let reason = if previous.is_none() { EpochReason::Created } else { reason };
    // Records before the first epoch belong to it.
    let folds_from = (state.head > 0).then(|| previous.map_or(1, |epoch| epoch.folds_from));
    let (system, tools) = toolset.references();
    let blobs = toolset.blobs([&system, &tools]);
    records.push(SessionRecord::EpochStarted(EpochStarted {
        turns: state.turn_count,
        inbox_through: state.inbox_through,
        pins: state.pins.clone(),
        todo: state.todo.clone(),
        folds_from,
        tasks: state.tasks.carry_running(),
        ended: state.tasks.carry_ended(),
        questions: state.questions.clone(),
        previous: previous.map(|epoch| epoch.began),
        environment: Some(Box::new(toolset.environment().clone())),
        ..EpochStarted::new(number, reason, system, tools)
    }));
    (records, blobs)
}

/// Whether an epoch begins with the current system prompt and tools.
pub(crate) fn is_current_epoch(worker: &Worker, epoch: &Epoch) -> bool {
    let policy = worker.policy();
    policy.system == epoch.system.hash && policy.tools == epoch.tools.hash
}
