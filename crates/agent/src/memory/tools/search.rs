use async_trait::async_trait;
use longhaul_memory::{RecallHit, RecallPlace, RecallScope, recall};
use longhaul_protocol::{Effect, MEMORY_SEARCH, Seq, SessionId, Speaker};
use longhaul_tools::{
    PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::recent::RecentTurns;
use super::{MemoryAccess, NO_MEMORY};
use crate::Result;
use crate::history::minute;

const USUAL_LIMIT: usize = 10;
const LONGEST_QUERY: usize = 1_000;

/// What memory_search takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// What to look for, in words or as a question.
    query: String,
    /// Most hits; 10 if not given.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

pub(super) struct MemorySearch {
    definition: ToolDefinition,
    access: MemoryAccess,
}

impl MemorySearch {
    pub(super) fn new(access: MemoryAccess) -> Self {
        Self { definition: definition(), access }
    }
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: MEMORY_SEARCH,
        description: "Finds what is remembered from all sessions: pages, facts, and what was said.",
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Only sessions of the same memory are looked at (`memory.scope`).",
            "Words are found in their forms, whatever their case and accents, and by what was said around them; rare ones count more.",
            "Among hits that fit as well, those of a later day come first, then what is more used.",
            "What came from a file, a page of the web or a command is marked.",
            "What is said in the turn that asks is not found.",
            "A query has at most 1,000 characters.",
        ],
        example: r#"{"query": "which port has the staging database"}"#,
    }
}

#[async_trait]
impl Tool for MemorySearch {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> std::result::Result<PreparedCall, ToolOutcome> {
        let Arguments { query, limit } = parse_arguments(&self.definition, &call.arguments)?;
        if !query.chars().any(char::is_alphanumeric) {
            return Err(ToolOutcome::error("`query` has no word in it; say what you look for"));
        }
        if query.chars().count() > LONGEST_QUERY {
            return Err(ToolOutcome::error(format!(
                "`query` has more than {LONGEST_QUERY} characters; a few words do"
            )));
        }
        let (access, session) = (self.access.clone(), call.session);
        let limit = limit.unwrap_or(USUAL_LIMIT);
        Ok(PreparedCall::new(move |_stop| async move {
            match find(&access, session, &query, limit).await {
                Ok(finished) => finished,
                Err(error) => ToolOutcome::error(format!("memory can't be searched: {error}")),
            }
        }))
    }
}

async fn find(access: &MemoryAccess, session: SessionId, query: &str, limit: usize) -> Result<ToolOutcome> {
    let Some(mut places) = access.places(session).await? else { return Ok(ToolOutcome::error(NO_MEMORY)) };
    let recent = RecentTurns::turns(&*access.journal, session, 0).await?;
    places.present = Some((session, recent.from));
    let found = recall(&*access.journal, &places, query, limit).await?;
    Ok(ToolOutcome::ok(in_words(&found, &places)))
}

fn in_words(found: &[RecallHit], places: &RecallScope) -> String {
    if found.is_empty() {
        return "[nothing of this is remembered; other words may find it]".to_owned();
    }
    let lines: Vec<String> = found.iter().map(|found| line(found, places)).collect();
    format!(
        "{}\n[the best first; memory_read with what stands in brackets shows the whole and what stood around it]",
        lines.join("\n")
    )
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
