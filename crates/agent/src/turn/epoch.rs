//! Begins an epoch: from now on the context begins with this system prompt and these tools.

use std::path::Path;

use longhaul_journal::Blob;
use longhaul_protocol::{EpochReason, EpochStarted, SessionCreated, SessionRecord};

use crate::session::state::Epoch;
use crate::worker::{Worker, WorkerResult};

/// Starts an epoch because the system prompt or the tools have changed.
pub(crate) async fn start_epoch(worker: &mut Worker) -> WorkerResult<()> {
    let (records, blobs) = epoch_records(worker, EpochReason::Changed);
    worker.commit(records, blobs).await
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
