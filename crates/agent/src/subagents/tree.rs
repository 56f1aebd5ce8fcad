//! The sessions of a tree, for people and programs: which subagents there are, whose they are, and how they are doing.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_journal::{Error as JournalError, Journal, SessionEntry};
use longhaul_protocol::{At, ChildAdmitted, ChildSession, SessionId, TaskId, TaskStatus};
use longhaul_tools::SubagentStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::admission::read_tree;
use super::child::{parent_link, read_child};
use super::status_of;
use crate::{Error, Result};

const SESSIONS_PER_PAGE: usize = 200;

/// A subagent, for people and programs: the JSON of `longhaul agents --json` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SubagentReport {
    /// The key of its session.
    pub session: String,
    /// The id of its session.
    #[schemars(with = "String")]
    pub id: SessionId,
    /// The key of the session that started it.
    pub parent: String,
    /// The task that it is to its parent.
    #[schemars(with = "String")]
    pub task_id: TaskId,
    /// Its kind, or `agent`.
    pub name: String,
    /// Its task in a few words.
    pub description: String,
    /// How many sessions are above it.
    pub depth: u64,
    /// Whether it runs, or how it ended.
    #[schemars(with = "String")]
    pub status: TaskStatus,
    /// When it started, in milliseconds since 1970.
    #[schemars(with = "i64")]
    pub started_at: At,
    /// How long it ran; null while it runs.
    pub duration_ms: Option<u64>,
    /// What it is doing, or why it did not complete.
    pub message: Option<String>,
}

/// The subagents below a session, or all of the home, each tree in the order of its starts and each subagent after its parent.
pub async fn list_subagents(journal: &dyn Journal, below: Option<SessionId>) -> Result<Vec<SubagentReport>> {
    let mut reports = Vec::new();
    for (depth, child) in walk_trees(journal, below).await? {
        reports.extend(report(journal, &child, depth).await?);
    }
    Ok(reports)
}

/// The sessions of all subagents below a session, each after its parent. Those that were deleted are left out. Nothing of these sessions
/// is read, so that a damaged one can be deleted, too.
pub async fn subagent_sessions(journal: &dyn Journal, session: SessionId) -> Result<Vec<SessionEntry>> {
    let mut entries = Vec::new();
    for (_, child) in walk_trees(journal, Some(session)).await? {
        entries.extend(journal.session_with_id(child.session).await?);
    }
    Ok(entries)
}

/// The subagents below a session, or all of the home, with their depth, each after its parent.
async fn walk_trees(journal: &dyn Journal, below: Option<SessionId>) -> Result<Vec<(u64, ChildAdmitted)>> {
    let mut found = Vec::new();
    let roots = match below {
        Some(session) => BTreeSet::from([root_of(journal, session).await?]),
        None => roots(journal).await?,
    };
    for root in roots {
        let tree = read_tree(journal, root).await?;
        let mut by_parent: BTreeMap<SessionId, Vec<&ChildAdmitted>> = BTreeMap::new();
        tree.children().for_each(|child| by_parent.entry(child.parent).or_default().push(child));
        let top = below.unwrap_or(root);
        let mut waiting: Vec<(u64, &ChildAdmitted)> = Vec::new();
        let push = |waiting: &mut Vec<(u64, _)>, depth, parent: SessionId| {
            waiting.extend(by_parent.get(&parent).into_iter().flatten().rev().map(|child| (depth, *child)));
        };
        push(&mut waiting, 1, top);
        while let Some((depth, child)) = waiting.pop() {
            found.push((depth, child.clone()));
            push(&mut waiting, depth + 1, child.session);
        }
    }
    Ok(found)
}

/// `None` if its session is not there: it is about to start, or was deleted.
async fn report(journal: &dyn Journal, child: &ChildAdmitted, depth: u64) -> Result<Option<SubagentReport>> {
    let Some(entry) = journal.session_with_id(child.session).await? else { return Ok(None) };
    let parent = journal.session_with_id(child.parent).await?;
    let status = match read_child(journal, child.session).await {
        Ok(state) => status_of(&state),
        // One that is damaged must not hide the others.
        Err(error @ (Error::Unreadable { .. } | Error::Journal(JournalError::Damaged { .. }))) => {
            unreadable_status(&error)
        }
        Err(error) => return Err(error),
    };
    Ok(Some(SubagentReport {
        session: entry.key,
        id: child.session,
        parent: parent.map(|parent| parent.key).unwrap_or_default(),
        task_id: child.call.into(),
        name: child.name.clone(),
        description: child.description.clone(),
        depth,
        status: status.status,
        started_at: child.session.made_at(),
        duration_ms: status.duration_ms,
        message: status.message,
    }))
}

/// The status of a subagent whose records can't be read.
fn unreadable_status(error: &Error) -> SubagentStatus {
    SubagentStatus {
        status: TaskStatus::Lost,
        duration_ms: None,
        message: Some(error.to_string()),
        said: String::new(),
    }
}

/// The session that started this one as its subagent.
pub async fn parent_of(journal: &dyn Journal, session: SessionId) -> Result<Option<SessionId>> {
    Ok(parent_link(journal, session).await?.map(|parent| parent.session))
}

async fn root_of(journal: &dyn Journal, session: SessionId) -> Result<SessionId> {
    Ok(parent_link(journal, session).await?.map_or(session, |parent| parent.root()))
}

/// The sessions at the top of all trees, by the keys of their subagents.
async fn roots(journal: &dyn Journal) -> Result<BTreeSet<SessionId>> {
    let mut links = Vec::new();
    let mut after = ChildSession::KEY_PREFIX.to_owned();
    'pages: loop {
        let page = journal.sessions(Some(&after), SESSIONS_PER_PAGE).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.key);
        for entry in &page {
            if !entry.key.starts_with(ChildSession::KEY_PREFIX) {
                break 'pages;
            }
            links.extend(parent_link(journal, entry.id).await?);
        }
    }
    Ok(links.iter().map(|link| link.root()).collect())
}

/// The sessions that started subagents which are still there.
pub(crate) async fn parents(journal: &dyn Journal) -> Result<BTreeSet<SessionId>> {
    let mut parents = BTreeSet::new();
    for root in roots(journal).await? {
        parents.extend(read_tree(journal, root).await?.children().map(|child| child.parent));
    }
    Ok(parents)
}
