//! Finds what is remembered, for `recall`.

use longhaul_memory::{RecallBudget, RecallHit, RecallPlace, RecallScope, Recalled, recall_with};
use longhaul_protocol::{Seq, SessionId, Speaker};

use super::MemoryAccess;
use super::recent::RecentTurns;
use crate::Result;
use crate::history::minute;

/// Which records of the calling session count as remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnRecords {
    /// Those before the open turn.
    BeforeTurn,
    /// None: they are searched apart.
    None,
}

/// What is remembered of a query.
#[derive(Default)]
pub(crate) struct FoundMemories {
    /// One line each, with its reference in brackets, the best first.
    pub(crate) lines: Vec<String>,
    /// Records that are not searched yet.
    pub(crate) unindexed: u64,
    /// Why only words were searched, if more was wanted.
    pub(crate) warning: Option<String>,
}

/// What is remembered of a query in the scope of a session. `None` if the session has no memory.
pub(crate) async fn find_memories(
    access: &MemoryAccess,
    session: SessionId,
    own_records: OwnRecords,
    query: &str,
    budget: RecallBudget,
) -> Result<Option<FoundMemories>> {
    let Some(mut places) = access.places(session).await? else { return Ok(None) };
    let skipped_from = match own_records {
        OwnRecords::BeforeTurn => RecentTurns::turns(&*access.journal, session, 0).await?.from,
        OwnRecords::None => 0,
    };
    places.present = Some((session, skipped_from));
    let finder = access.finder(session);
    let Recalled { hits, unindexed, warning } =
        recall_with(&*access.journal, &places, query, budget, finder.as_deref()).await?;
    let lines = hits.iter().map(|hit| line(hit, &places)).collect();
    Ok(Some(FoundMemories { lines, unindexed, warning }))
}

fn line(found: &RecallHit, places: &RecallScope) -> String {
    let key = |session: &SessionId| {
        let known = places.sessions.iter().find(|(known, _)| known == session);
        known.map_or("", |(_, key)| key.as_str())
    };
    let reference = |session: &SessionId, seq: Seq| format!("{}#{seq}", key(session));
    let (place, who) = match &found.place {
        RecallPlace::Page(name) => (name.clone(), "page".to_owned()),
        RecallPlace::Item { session, seq, .. } => {
            let source = found.sources.first().copied().unwrap_or(*seq);
            (reference(session, source), format!("noted, said by {}", who(found.speaker)))
        }
        RecallPlace::Record { session, seq } => (reference(session, *seq), who(found.speaker).to_owned()),
    };
    // Indented, so that no text can look like another hit.
    let excerpt = found.excerpt.trim().replace('\n', "\n  ");
    format!("[{place}] {} {who}: {excerpt}", minute(found.at))
}

fn who(speaker: Speaker) -> &'static str {
    match speaker {
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
        Speaker::Untrusted => "a tool's output, which nobody vouches for",
    }
}
