//! The present state of a session, as every surface shows it.

use longhaul_journal::{Holder, ImportMark, Journal, NodeReport, NodeState, import_mark};
use longhaul_memory::{MemoryCalls, extraction_calls};
use longhaul_protocol::{CompactDone, Question, Seq, SessionId, StreamName};

use super::context_report::last_compaction;
use super::session::Session;
use crate::Result;
use crate::session::state::State;

/// The present state of a session, wherever it runs. A session that was never used has no id and an empty state.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SessionStatus {
    /// The key by which people find the session.
    pub key: String,
    /// The session's id; `None` before its first input.
    pub id: Option<SessionId>,
    /// What its records add up to.
    pub state: State,
    /// Inputs that are on disk and that no turn has taken yet.
    pub waiting: u64,
    /// The other process that runs the session.
    pub run_by: Option<Holder>,
    /// Whether a process runs the session, this one included.
    pub is_running: bool,
    /// The questions that wait for an answer.
    pub questions: Vec<Question>,
    /// The newest compaction.
    pub last_compaction: Option<CompactDone>,
    /// The last record that memory has read; 0 if none.
    pub extracted_through: Seq,
    /// Memory's model calls for this session. Failed calls that no record tells of yet count only in the process that
    /// made them.
    pub memory_calls: MemoryCalls,
    /// Which records were imported.
    pub import: ImportMark,
    /// The node that the session is bound to, where several share the journal.
    pub node: Option<SessionNode>,
}

/// The node that a session is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionNode {
    /// Its id.
    pub id: String,
    /// What it was doing when this was read; `None` if it never joined.
    pub report: Option<NodeReport>,
}

impl SessionNode {
    /// Whether the session waits for the node, because it is away.
    pub fn is_away(&self) -> bool {
        let is_there = |report: &NodeReport| matches!(report.state, NodeState::Live | NodeState::Draining);
        !self.report.as_ref().is_some_and(is_there)
    }
}

async fn session_node(journal: &dyn Journal, id: SessionId) -> Result<Option<SessionNode>> {
    let Some(cluster) = journal.cluster() else { return Ok(None) };
    let Some(node) = cluster.placement(id).await?.flatten() else { return Ok(None) };
    let report = cluster.nodes().await?.into_iter().find(|report| report.id == node);
    Ok(Some(SessionNode { id: node, report }))
}

/// Reads the status of a session from the journal.
pub(super) async fn session_status(session: &Session) -> Result<SessionStatus> {
    let key = session.key().to_owned();
    let journal = &**session.journal();
    let Some(entry) = session.entry().await? else {
        return Ok(SessionStatus { key, ..SessionStatus::default() });
    };
    let state = session.state().await?;
    let untaken = entry.inbox_head.saturating_sub(state.inbox_through);
    let run_by = session.other_holder().await?;
    Ok(SessionStatus {
        id: Some(entry.id),
        waiting: untaken + state.pending_inputs.len() as u64,
        is_running: run_by.is_some() || session.is_held_here().await?,
        run_by,
        questions: session.open_questions().await?,
        last_compaction: last_compaction(journal, entry.id, &state).await?,
        extracted_through: session.extracted_through().await?,
        memory_calls: memory_calls(session, entry.id).await?,
        import: import_mark(journal, entry.id).await?,
        node: session_node(journal, entry.id).await?,
        state,
        key,
    })
}

/// The model calls for the extraction of a session.
async fn memory_calls(session: &Session, id: SessionId) -> Result<MemoryCalls> {
    let mut calls = extraction_calls(&**session.journal(), id).await?;
    if let Ok(handle) = session.runtime_handle() {
        let stream = StreamName::extract(id).to_string();
        calls.add(&handle.runtime.memory.unrecorded_costs.of_stream(&stream));
    }
    Ok(calls)
}
