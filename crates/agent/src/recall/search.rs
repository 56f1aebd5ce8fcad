use async_trait::async_trait;
use longhaul_memory::{RecallBudget, unindexed_notice};
use longhaul_protocol::{Effect, RECALL, SessionId};
use longhaul_tools::{
    PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::Result;
use crate::history::{FoundRecords, find_records};
use crate::memory::{FoundMemories, MemoryAccess, NO_MEMORY, OwnRecords, find_memories};

/// The most hits in this session, if the call names no limit.
const DEFAULT_SESSION_HITS: usize = 10;
/// The most hits in memory, if the call names no limit. Usually the tokens end sooner.
const DEFAULT_MEMORY_HITS: usize = 25;
/// The most tokens of what memory shows. The first hit is always shown.
const MAX_MEMORY_TOKENS: u64 = 1_500;
const MAX_QUERY_CHARS: usize = 1_000;
const NOT_IN_SESSION: &str = "[no record of this session has any of these words; try others]";
const NOT_IN_MEMORY: &str = "[nothing in memory has these words; try others]";
const READ_HINT: &str = "[best first; recall_read with the ref in brackets shows all of it]";

/// What recall takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words or a question; rare words find best.
    query: String,
    /// Default: both.
    scope: Option<RecallWhere>,
    /// Most hits.
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
            "Without `scope`, both are searched, each for up to `limit` hits. Without `limit`, there are ten of this session, and as many \
             of memory as 1,500 tokens hold.",
            "Words are found in all their forms and by what was said around them. A question may name a person, or a time: `last week`, \
             `in March`.",
            "`session`: summaries, and what recall itself showed, are not found: only what they repeat is.",
            "`memory`: only sessions of the same memory are searched (`memory.scope`). What is said in the turn that asks is not \
             found. What came from a file, a page of the web or a command is marked.",
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
            return Err(ToolOutcome::error("`query` has no word in it; say what to look for"));
        }
        if query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolOutcome::error(format!(
                "`query` has more than {MAX_QUERY_CHARS} characters; a few words are enough"
            )));
        }
        let (access, session) = (self.access.clone(), call.session);
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
    limit: Option<usize>,
) -> Result<ToolOutcome> {
    let FoundRecords { lines, unindexed } =
        find_records(&access.journal, session, query, session_hits(limit)).await?;
    Ok(ToolOutcome::ok(format_hits(&lines, NOT_IN_SESSION, unindexed, None)))
}

async fn search_memory(
    access: &MemoryAccess,
    session: SessionId,
    query: &str,
    limit: Option<usize>,
) -> Result<ToolOutcome> {
    let Some(found) =
        find_memories(access, session, OwnRecords::BeforeTurn, query, memory_budget(limit)).await?
    else {
        return Ok(ToolOutcome::error(NO_MEMORY));
    };
    Ok(ToolOutcome::ok(format_hits(&found.lines, NOT_IN_MEMORY, found.unindexed, found.warning)))
}

/// Hits in this session, then those in memory, without this session's records.
async fn search_both(
    access: &MemoryAccess,
    session: SessionId,
    query: &str,
    limit: Option<usize>,
) -> Result<ToolOutcome> {
    let here = find_records(&access.journal, session, query, session_hits(limit)).await?;
    let budget = memory_budget(limit);
    let remembered = find_memories(access, session, OwnRecords::None, query, budget).await?;
    let FoundMemories { lines: elsewhere, unindexed, warning } = remembered.unwrap_or_default();
    let mut sections = Vec::new();
    for (heading, lines) in [("In this session:", here.lines), ("In memory:", elsewhere)] {
        if !lines.is_empty() {
            sections.push(format!("{heading}\n{}", lines.join("\n")));
        }
    }
    Ok(ToolOutcome::ok(format_hits(&sections, NOT_IN_MEMORY, here.unindexed.max(unindexed), warning)))
}

fn session_hits(limit: Option<usize>) -> usize {
    limit.unwrap_or(DEFAULT_SESSION_HITS)
}

fn memory_budget(limit: Option<usize>) -> RecallBudget {
    RecallBudget { entries: limit.unwrap_or(DEFAULT_MEMORY_HITS), tokens: MAX_MEMORY_TOKENS }
}

fn format_hits(lines: &[String], nothing: &str, unindexed: u64, warning: Option<String>) -> String {
    let mut found = match lines {
        [] => nothing.to_owned(),
        lines => format!("{}\n{READ_HINT}", lines.join("\n")),
    };
    for notice in unindexed_notice(unindexed).into_iter().chain(warning) {
        found.push_str(&format!("\n[{notice}]"));
    }
    found
}
