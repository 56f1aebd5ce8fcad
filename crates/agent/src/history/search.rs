//! `history_search`.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_journal::{Journal, MatchMode, Result, SearchHit, SearchQuery};
use longhaul_protocol::{Block, Effect, HISTORY_SEARCH, Item, Seq, SessionRecord};
use longhaul_tools::{
    PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, parse_arguments, schema_of,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::format::{RecordView, minute, status_suffix};
use super::reader::{BlockStatus, SessionHistory};

const DEFAULT_LIMIT: usize = 10;
const MAX_QUERY_CHARS: usize = 1_000;
/// The most hits to examine in order to fill the limit.
const MAX_EXAMINED_HITS: usize = 1_000;

/// What history_search takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Words to look for; rare ones find best.
    query: String,
    /// Most hits; 10 if not given.
    #[schemars(range(min = 1, max = 50))]
    limit: Option<usize>,
}

pub(super) struct HistorySearch {
    definition: ToolDefinition,
    journal: Arc<dyn Journal>,
}

impl HistorySearch {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { definition: definition(), journal }
    }
}

pub(super) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: HISTORY_SEARCH,
        description: "Finds records of this session by words, also what was compacted out of the context.",
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Words are looked for whole, whatever their case and accents.",
            "What has all of the words comes first, then what has some of them.",
            "Summaries, and what the tools of history showed, are not found: only what they repeat is.",
            "A query has at most 1,000 characters.",
        ],
        example: r#"{"query": "staging database port"}"#,
    }
}

#[async_trait]
impl Tool for HistorySearch {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> std::result::Result<PreparedCall, ToolOutcome> {
        let Arguments { query, limit } = parse_arguments(&self.definition, &call.arguments)?;
        if !query.chars().any(char::is_alphanumeric) {
            return Err(ToolOutcome::error(
                "`query` has no word in it; name some that stood in what you look for",
            ));
        }
        if query.chars().count() > MAX_QUERY_CHARS {
            return Err(ToolOutcome::error(format!(
                "`query` has more than {MAX_QUERY_CHARS} characters; a few words do"
            )));
        }
        let history = SessionHistory::new(self.journal.clone(), call.session);
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        Ok(PreparedCall::new(move |_stop| async move {
            match find(history, &query, limit).await {
                Ok(found) => ToolOutcome::ok(format_hits(&found)),
                Err(error) => ToolOutcome::error(format!("the history can't be searched: {error}")),
            }
        }))
    }
}

struct HistoryHit {
    seq: Seq,
    line: String,
}

/// Records that contain all of the words, then those that contain some of them.
async fn find(mut history: SessionHistory, query: &str, limit: usize) -> Result<Vec<HistoryHit>> {
    let mut found = Vec::new();
    for matching in [MatchMode::All, MatchMode::Any] {
        if found.len() < limit {
            let more = search_once(&mut history, query, matching, limit, &found).await?;
            found.extend(more);
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// The best hits that are not in `known`. Asks the index for more while too few of its hits are useful.
async fn search_once(
    history: &mut SessionHistory,
    query: &str,
    matching: MatchMode,
    limit: usize,
    known: &[HistoryHit],
) -> Result<Vec<HistoryHit>> {
    let known: HashSet<Seq> = known.iter().map(|found| found.seq).collect();
    let (words, streams) = (query.to_owned(), vec![history.stream.clone()]);
    let mut search = SearchQuery { words, matching, streams, limit: 2 * limit + known.len() };
    loop {
        let hits = history.search(&search).await?;
        let is_all = hits.len() < search.limit || search.limit >= MAX_EXAMINED_HITS;
        let (mut primary, mut secondary) = (Vec::new(), Vec::new());
        for hit in hits.into_iter().filter(|hit| !known.contains(&hit.seq)) {
            match examine_hit(history, hit).await? {
                Some((found, HitRank::Primary)) => primary.push(found),
                Some((found, HitRank::Secondary)) => secondary.push(found),
                None => {}
            }
        }
        if is_all || known.len() + primary.len() + secondary.len() >= limit {
            primary.append(&mut secondary);
            return Ok(primary);
        }
        search.limit = MAX_EXAMINED_HITS.min(search.limit * 4);
    }
}

/// Reasoning and discarded text rank below the conversation, because they contain the same words and are seldom what
/// the model looks for.
enum HitRank {
    Primary,
    Secondary,
}

/// A hit as a line. `None` if it only repeats other records.
async fn examine_hit(history: &mut SessionHistory, hit: SearchHit) -> Result<Option<(HistoryHit, HitRank)>> {
    let Some(record) = history.one(hit.seq).await? else { return Ok(None) };
    let Ok(fact) = SessionRecord::decode(&record) else { return Ok(None) };
    if matches!(fact, SessionRecord::SystemMessage(_)) {
        return Ok(None);
    }
    let status = history.status(hit.seq, &fact).await?;
    let is_thought = matches!(&fact, SessionRecord::Block(Block { item: Item::Reasoning { .. }, .. }));
    let worth = if is_thought || status != BlockStatus::InConversation {
        HitRank::Secondary
    } else {
        HitRank::Primary
    };
    let Some(RecordView { who, .. }) = RecordView::of(fact) else { return Ok(None) };
    let line = format!("[{}] {} {who}{}: {}", hit.seq, minute(record.at), status_suffix(status), hit.excerpt);
    Ok(Some((HistoryHit { seq: hit.seq, line }, worth)))
}

fn format_hits(found: &[HistoryHit]) -> String {
    if found.is_empty() {
        return "[no record of this session has any of these words; words are looked for whole, so try others]"
            .to_owned();
    }
    let lines: Vec<&str> = found.iter().map(|found| found.line.as_str()).collect();
    format!(
        "{}\n[the best first; history_read with these numbers as from and to shows the whole and what stood around it]",
        lines.join("\n")
    )
}
