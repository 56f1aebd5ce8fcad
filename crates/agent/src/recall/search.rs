use async_trait::async_trait;
use longhaul_protocol::{Effect, RECALL, SessionId};
use longhaul_tools::{
    PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Result;
use crate::history::find_records;
use crate::memory::{MemoryAccess, NO_MEMORY, find_memories};

const DEFAULT_LIMIT: usize = 10;
const MAX_QUERY_CHARS: usize = 1_000;
const NOT_IN_SESSION: &str =
    "[no record of this session has any of these words; words are looked for whole, so try others]";
const NOT_IN_MEMORY: &str = "[nothing of this is remembered; other words may find it]";
const READ_HINT: &str = "[the best first; recall_read with the ref in brackets shows the whole]";

/// What recall takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words or a question; rare words find best.
    query: String,
    /// Default: both.
    scope: Option<RecallWhere>,
    /// Most hits. Default: 10.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

/// Where to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RecallWhere {
    Session,
    Memory,
}

pub(super) struct Recall {
    definition: ToolDefinition,
    access: MemoryAccess,
}

impl Recall {
    pub(super) fn new(access: MemoryAccess) -> Self {
        Self { definition: definition(), access }
    }
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: RECALL.into(),
        description: "Search earlier talk and work: this `session`, also what is no longer in your context, and the `memory` of all \
                      sessions. Use it before you ask the user again.".into(),
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Without `scope`, both are searched, each for up to `limit` hits.",
            "`session`: words are looked for whole, whatever their case and accents; what has all of them comes first. Summaries, and \
             what recall itself showed, are not found: only what they repeat is.",
            "`memory`: only sessions of the same memory are looked at (`memory.scope`). Words are found in their forms and by what was \
             said around them. What is said in the turn that asks is not found. What came from a file, a page of the web or a command is \
             marked.",
            "A query has at most 1,000 characters.",
        ],
        example: r#"{"query": "which port has the staging database"}"#,
    }
}

#[async_trait]
impl Tool for Recall {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> std::result::Result<PreparedCall, ToolOutcome> {
        let Arguments { query, scope, limit } = parse_arguments(&self.definition, &call.arguments)?;
        if !query.chars().any(char::is_alphanumeric) {
            return Err(ToolOutcome::error("`query` has no word in it; say what you look for"));
        }
        if query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolOutcome::error(format!(
                "`query` has more than {MAX_QUERY_CHARS} characters; a few words do"
            )));
        }
        let (access, session) = (self.access.clone(), call.session);
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        Ok(PreparedCall::new(move |_stop| async move {
            let found = match scope {
                Some(RecallWhere::Session) => search_session(&access, session, &query, limit).await,
                Some(RecallWhere::Memory) => search_memory(&access, session, &query, limit).await,
                None => search_both(&access, session, &query, limit).await,
            };
            found.unwrap_or_else(|error| ToolOutcome::error(format!("it can't be searched: {error}")))
        }))
    }
}

async fn search_session(
    access: &MemoryAccess,
    session: SessionId,
    query: &str,
    limit: usize,
) -> Result<ToolOutcome> {
    let found = find_records(&access.journal, session, query, limit).await?;
    Ok(ToolOutcome::ok(format_hits(&found, NOT_IN_SESSION)))
}

async fn search_memory(
    access: &MemoryAccess,
    session: SessionId,
    query: &str,
    limit: usize,
) -> Result<ToolOutcome> {
    let Some(found) = find_memories(access, session, query, limit).await? else {
        return Ok(ToolOutcome::error(NO_MEMORY));
    };
    let lines: Vec<String> = found.into_iter().map(|hit| hit.line).collect();
    Ok(ToolOutcome::ok(format_hits(&lines, NOT_IN_MEMORY)))
}

/// Hits in this session, then those in memory that are not of this session's records.
async fn search_both(
    access: &MemoryAccess,
    session: SessionId,
    query: &str,
    limit: usize,
) -> Result<ToolOutcome> {
    let here = find_records(&access.journal, session, query, limit).await?;
    let remembered = find_memories(access, session, query, limit).await?.unwrap_or_default();
    let elsewhere = remembered.into_iter().filter(|hit| hit.record_of != Some(session));
    let elsewhere: Vec<String> = elsewhere.map(|hit| hit.line).collect();
    let mut sections = Vec::new();
    for (heading, lines) in [("In this session:", here), ("In memory:", elsewhere)] {
        if !lines.is_empty() {
            sections.push(format!("{heading}\n{}", lines.join("\n")));
        }
    }
    Ok(ToolOutcome::ok(format_hits(&sections, NOT_IN_MEMORY)))
}

fn format_hits(lines: &[String], nothing: &str) -> String {
    match lines {
        [] => nothing.to_owned(),
        lines => format!("{}\n{READ_HINT}", lines.join("\n")),
    }
}
