//! Finds what is remembered, for `recall`.

use longhaul_memory::{RecallBudget, RecallHit, RecallPlace, RecallScope, Recalled, recall_with};
use longhaul_protocol::{Seq, SessionId, Speaker};

use super::MemoryAccess;
use super::recent::RecentTurns;
use crate::Result;
use crate::history::minute;

/// Something that is remembered.
pub(crate) struct MemoryHit {
    /// With its reference in brackets.
    pub(crate) line: String,
    /// The session whose record it is; `None` for a page or an extract.
    pub(crate) record_of: Option<SessionId>,
}

/// What is remembered of a query.
#[derive(Default)]
pub(crate) struct FoundMemories {
    /// The best first.
    pub(crate) hits: Vec<MemoryHit>,
    /// Records that are not searched yet.
    pub(crate) unindexed: u64,
    /// Why only words were searched, if more was wanted.
    pub(crate) warning: Option<String>,
}

/// What is remembered of a query in the scope of a session. `None` if the session has no memory.
pub(crate) async fn find_memories(
    access: &MemoryAccess,
    session: SessionId,
    query: &str,
    budget: RecallBudget,
) -> Result<Option<FoundMemories>> {
    let Some(mut places) = access.places(session).await? else { return Ok(None) };
    let recent = RecentTurns::turns(&*access.journal, session, 0).await?;
    places.present = Some((session, recent.from));
    let finder = access.finder(session);
    let Recalled { hits, unindexed, warning } =
        recall_with(&*access.journal, &places, query, budget, finder.as_deref()).await?;
    let hit = |found: &RecallHit| MemoryHit {
        line: line(found, &places),
        record_of: match &found.place {
            RecallPlace::Record { session, .. } => Some(*session),
            RecallPlace::Page(_) | RecallPlace::Item { .. } => None,
        },
    };
    Ok(Some(FoundMemories { hits: hits.iter().map(hit).collect(), unindexed, warning }))
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
