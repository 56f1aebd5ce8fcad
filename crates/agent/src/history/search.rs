//! `history_search`.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use longhaul_journal::{Journal, MatchMode, Result, SearchHit, SearchQuery};
use longhaul_protocol::{Block, Effect, Item, Seq, SessionRecord};
use longhaul_tools::{About, Call, Finished, Prepared, Tool, parse_arguments, schema_of};
use schemars::JsonSchema;
use serde::Deserialize;

use super::format::{Shown, mark, minute};
use super::reader::{Past, Standing};

const USUAL_LIMIT: usize = 10;
const LONGEST_QUERY: usize = 1_000;
/// Of so many hits those are looked at that are not left out.
const MOST_LOOKED_AT: usize = 1_000;

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

/// The tool.
pub(super) struct HistorySearch {
    about: About,
    journal: Arc<dyn Journal>,
}

impl HistorySearch {
    pub(super) fn new(journal: Arc<dyn Journal>) -> Self {
        Self { about: about(), journal }
    }
}

pub(super) fn about() -> About {
    About {
        name: longhaul_protocol::HISTORY_SEARCH,
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
    fn about(&self) -> &About {
        &self.about
    }

    async fn prepare(&self, call: &Call) -> std::result::Result<Prepared, Finished> {
        let Arguments { query, limit } = parse_arguments(&self.about, &call.arguments)?;
        if !query.chars().any(char::is_alphanumeric) {
            return Err(Finished::error(
                "`query` has no word in it; name some that stood in what you look for",
            ));
        }
        if query.chars().count() > LONGEST_QUERY {
            return Err(Finished::error(format!(
                "`query` has more than {LONGEST_QUERY} characters; a few words do"
            )));
        }
        let past = Past::new(self.journal.clone(), call.session);
        let limit = limit.unwrap_or(USUAL_LIMIT);
        Ok(Prepared::new(move |_stop| async move {
            match find(past, &query, limit).await {
                Ok(found) => Finished::ok(in_words(&found)),
                Err(error) => Finished::error(format!("the history can't be searched: {error}")),
            }
        }))
    }
}

/// A record that was found, as it is told.
struct Found {
    seq: Seq,
    line: String,
}

/// What has all of the words, then what has some of them.
async fn find(mut past: Past, query: &str, limit: usize) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for matching in [MatchMode::All, MatchMode::Any] {
        if found.len() < limit {
            let more = gather(&mut past, query, matching, limit, &found).await?;
            found.extend(more);
        }
    }
    found.truncate(limit);
    Ok(found)
}

/// The best of them that are not known yet. The engine is asked for more as long as too few of its hits are of use.
async fn gather(
    past: &mut Past,
    query: &str,
    matching: MatchMode,
    limit: usize,
    known: &[Found],
) -> Result<Vec<Found>> {
    let known: HashSet<Seq> = known.iter().map(|found| found.seq).collect();
    let (words, streams) = (query.to_owned(), vec![past.stream.clone()]);
    let mut search = SearchQuery { words, matching, streams, limit: 2 * limit + known.len() };
    loop {
        let hits = past.search(&search).await?;
        let is_all = hits.len() < search.limit || search.limit >= MOST_LOOKED_AT;
        // What was thought or taken back is seldom what somebody looks for, and has the same words.
        let (mut said, mut besides) = (Vec::new(), Vec::new());
        for hit in hits.into_iter().filter(|hit| !known.contains(&hit.seq)) {
            match look_at(past, hit).await? {
                Some((found, Worth::Said)) => said.push(found),
                Some((found, Worth::Besides)) => besides.push(found),
                None => {}
            }
        }
        if is_all || known.len() + said.len() + besides.len() >= limit {
            said.append(&mut besides);
            return Ok(said);
        }
        search.limit = MOST_LOOKED_AT.min(search.limit * 4);
    }
}

enum Worth {
    Said,
    Besides,
}

/// A hit as it is told; nothing, if it only repeats what others hold.
async fn look_at(past: &mut Past, hit: SearchHit) -> Result<Option<(Found, Worth)>> {
    let Some(record) = past.one(hit.seq).await? else { return Ok(None) };
    let Ok(fact) = SessionRecord::decode(&record) else { return Ok(None) };
    if matches!(fact, SessionRecord::SystemMessage(_)) {
        return Ok(None);
    }
    let standing = past.standing(hit.seq, &fact).await?;
    let is_thought = matches!(&fact, SessionRecord::Block(Block { item: Item::Reasoning { .. }, .. }));
    let worth = if is_thought || standing != Standing::Said { Worth::Besides } else { Worth::Said };
    let Some(Shown { who, .. }) = Shown::of(fact) else { return Ok(None) };
    let line = format!("[{}] {} {who}{}: {}", hit.seq, minute(record.at), mark(standing), hit.excerpt);
    Ok(Some((Found { seq: hit.seq, line }, worth)))
}

fn in_words(found: &[Found]) -> String {
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
