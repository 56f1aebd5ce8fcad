//! Which tools of MCP servers a session has.
//!
//! The tools of an epoch are recorded with it, and its turns use those, whatever the servers do meanwhile, so that requests keep their
//! prefix (M16). A new epoch takes what the servers offer by then; a server that has run before need not run for that. A note tells
//! the model what changes within an epoch.
//!
//! | a crash | on resume |
//! | --- | --- |
//! | while the servers start, before the epoch | the epoch has no MCP tools or is not there; the servers start again |
//! | after `epoch_started` | the tools are read from its record; servers start beside the turn |

use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_mcp::{ToolChanges, is_mcp_tool};
use longhaul_protocol::{Item, Note, SessionId, ToolSchema};

use crate::runtime::RuntimeShared;
use crate::session::state::State;
use crate::worker::tool_profile::ToolProfile;
use crate::worker::toolset::{FolderTools, OfferedTools};
use crate::worker::wait::{WaitOutcome, WakeOn};
use crate::worker::{Worker, WorkerResult, WorkerStop};

/// For a server whose tools had changed and now are again as the model's request has them.
const UNCHANGED: &str = "again has the tools that you were given for it";

/// The tools that the session's epoch began with. `None` if it has no epoch, or the servers of its tools are not configured any more.
pub(super) async fn recorded_tools(
    runtime: &RuntimeShared,
    session: SessionId,
    state: &State,
) -> Option<Arc<OfferedTools>> {
    let folder = folder_of(runtime, state);
    if folder.servers().is_empty(session) {
        return None;
    }
    let recorded = recorded_schemas(&*runtime.journal, state, &folder).await?;
    Some(folder.with_servers(folder.servers().restore(session, &recorded)?))
}

/// The tools for the first epoch of a session, if those of all its servers are known. Then no second epoch is needed to add them, and
/// no server is waited for.
pub(super) fn first_tools(
    runtime: &RuntimeShared,
    session: SessionId,
    state: &State,
) -> Option<Arc<OfferedTools>> {
    let folder = folder_of(runtime, state);
    let servers = folder.servers();
    let is_ready = state.epoch.is_none() && !servers.is_empty(session) && servers.are_known(session);
    is_ready.then(|| folder.with_servers(servers.offer(session)))
}

/// The tools for a turn that begins: those of the epoch, or, if a new epoch has to begin, what the servers offer. Waits for servers whose
/// tools are not known yet, up to `mcp.start_timeout_s` and until the turn is cancelled.
pub(super) async fn choose_tools(worker: &mut Worker) -> WorkerResult<Arc<OfferedTools>> {
    let (runtime, session) = (Arc::clone(worker.runtime()), worker.id());
    let folder = folder_of(&runtime, worker.state());
    let servers = folder.servers().clone();
    if servers.is_empty(session) {
        return Ok(folder.with_servers(Default::default()));
    }
    let current = Arc::clone(worker.toolset().offered());
    let is_current = worker.state().epoch.as_ref().is_some_and(|epoch| epoch.tools.hash == current.hash());
    if is_current && servers.restore(session, current.of_servers()).is_some() {
        servers.start(session);
        return Ok(current);
    }
    if let Some(recorded) = recorded_tools(&runtime, session, worker.state()).await {
        servers.start(session);
        return Ok(recorded);
    }
    if servers.are_known(session) {
        servers.start(session);
        return Ok(folder.with_servers(servers.offer(session)));
    }
    let mut waiting = Box::pin(servers.wait_until_ready(session));
    match worker.wait_for(&mut waiting, WakeOn::Cancel, None).await? {
        WaitOutcome::Suspended => Err(WorkerStop::Suspended),
        WaitOutcome::Done(()) | WaitOutcome::Interrupted | WaitOutcome::Deadline => {
            Ok(folder.with_servers(servers.offer(session)))
        }
    }
}

/// The tools for an epoch that begins without a turn, because the context is compacted: what the servers offer, if they all run, or
/// else what the last epoch had.
pub(super) async fn tools_for_next_epoch(worker: &Worker) -> Arc<OfferedTools> {
    let (runtime, session) = (worker.runtime(), worker.id());
    let folder = folder_of(runtime, worker.state());
    let servers = folder.servers();
    if !servers.is_empty(session)
        && !servers.are_ready(session)
        && let Some(recorded) = recorded_tools(runtime, session, worker.state()).await
    {
        return recorded;
    }
    folder.with_servers(servers.offer(session))
}

/// The note about what has changed in the tools since the epoch began. `None` if the model has been told.
pub(crate) fn server_tools_note(worker: &Worker) -> Option<Note> {
    let (toolset, redactor) = (worker.toolset(), &worker.runtime().redactor);
    let mut changes = toolset.servers().describe_changes(worker.id(), toolset.offered().of_servers());
    for line in changes.iter_mut().flat_map(|changes| &mut changes.lines) {
        *line = redactor.redact(line).into_owned();
    }
    let notes = worker.state().items.iter().filter_map(|item| match &**item {
        Item::Note { text } => Some(text.as_str()),
        _ => None,
    });
    let lines = unannounced_changes(&notes.collect::<Vec<_>>(), &changes);
    (!lines.is_empty()).then(|| Note::new(lines.join("\n")))
}

/// The changes at running servers that the model has not been told. The last note about a server says what it was told.
fn unannounced_changes(notes: &[&str], changes: &[ToolChanges]) -> Vec<String> {
    let mut unannounced = Vec::new();
    for changes in changes {
        let prefix = changes.line_prefix();
        let unchanged = format!("{prefix}{UNCHANGED}");
        let of_server = |note: &&str| -> Vec<String> {
            note.lines().filter(|line| line.starts_with(&prefix)).map(str::to_owned).collect()
        };
        let told = notes.iter().rev().map(of_server).find(|lines| !lines.is_empty()).unwrap_or_default();
        match (told == changes.lines, changes.lines.is_empty()) {
            (true, _) => {}
            (false, false) => unannounced.extend(changes.lines.iter().cloned()),
            (false, true) if told == [unchanged.as_str()] => {}
            (false, true) => unannounced.push(unchanged),
        }
    }
    unannounced
}

fn folder_of(runtime: &RuntimeShared, state: &State) -> Arc<FolderTools> {
    runtime.folder_tools.get_or_create(runtime, &ToolProfile::of_session(runtime, state))
}

/// The schemas of MCP tools in the record of the epoch.
async fn recorded_schemas(
    journal: &dyn Journal,
    state: &State,
    folder: &FolderTools,
) -> Option<Vec<ToolSchema>> {
    let epoch = state.epoch.as_ref()?;
    let bytes = journal.blob(epoch.tools.hash).await.ok()?;
    let schemas: Vec<ToolSchema> = serde_json::from_slice(&bytes).ok()?;
    let is_of_server = |schema: &ToolSchema| is_mcp_tool(&schema.name) && !folder.has_own(&schema.name);
    Some(schemas.into_iter().filter(is_of_server).collect())
}

#[cfg(test)]
#[path = "server_tools_tests.rs"]
mod tests;
