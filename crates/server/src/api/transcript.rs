//! A session as people see it, page by page from its end. A page costs what it shows, however long the session is.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_journal::{Error as JournalError, Journal, Page};
use longhaul_protocol::{Record, Seq, StreamName};
use longhaul_transcript::html::block_html;
use longhaul_transcript::{Block, BlockContent, StoredTranscript, Update};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::check_limit;
use super::named_session::NamedSession;
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

const MAX_BLOCKS: usize = 500;
const DEFAULT_BLOCKS: usize = 100;
/// Records to read for each block that is asked for, at first.
const RECORDS_PER_BLOCK: Seq = 4;
/// The most records of one page. A step that is longer is cut.
const MAX_RECORDS: Seq = 16_384;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/sessions/{key}/transcript", read, "A session as people see it", show)
            .query::<TranscriptQuery>()
            .answers::<TranscriptPage>(StatusCode::OK, "Blocks in their order."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TranscriptQuery {
    /// Only what is older than this record: `next` of the page before. By default the page is the newest one.
    before: Option<u64>,
    /// About how many blocks to return, up to 500; 100 if absent. A page begins at the beginning of a step, so it may have
    /// some more.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TranscriptPage {
    items: Vec<ShownBlock>,
    /// The value of `before` for the page before this one; null if this page has the session's beginning.
    next: Option<u64>,
    /// The last record of the page. Following the events after it misses nothing.
    through: u64,
}

/// A block: what happened, as data and as HTML.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownBlock {
    #[serde(flatten)]
    block: Block,
    /// A fragment of HTML without scripts or markup from the session; empty if there is nothing to show.
    html: String,
}

async fn show(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
    Query(query): Query<TranscriptQuery>,
) -> ApiResult<Json<TranscriptPage>> {
    let limit = check_limit(query.limit, DEFAULT_BLOCKS, MAX_BLOCKS)?;
    let head = entry.head.seq;
    let end = query.before.map_or(head, |before| before.saturating_sub(1).min(head));
    let (journal, stream) = (state.journal(), StreamName::session(entry.id));
    let mut span = (limit as Seq).saturating_mul(RECORDS_PER_BLOCK);
    let (records, blocks) = loop {
        let from = end.saturating_sub(span - 1).max(1);
        let mut records = read_span(&*journal, &stream, from, end).await?;
        if from > 1 {
            // What comes before the first beginning of a step belongs to the page before.
            let begins = (0..records.len()).find(|index| is_beginning(&records, *index)).unwrap_or(0);
            records.drain(..begins);
        }
        let (records, blocks) = newest_blocks(records, limit, end == head);
        if blocks.len() >= limit || from == 1 || span >= MAX_RECORDS {
            break (records, blocks);
        }
        span = span.saturating_mul(2).min(MAX_RECORDS);
    };
    let first = records.first().map_or(1, |record| record.seq);
    let items = blocks.into_iter().map(|block| ShownBlock { html: block_html(&block), block }).collect();
    Ok(Json(TranscriptPage { items, next: (first > 1).then_some(first), through: end }))
}

/// The records of a span. Damaged ones are left out.
async fn read_span(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
    end: Seq,
) -> Result<Vec<Record>, JournalError> {
    let mut cursor =
        longhaul_journal::records(journal, stream, from).through(end).in_pages_of(Page::default());
    let mut records = Vec::new();
    while let Some(record) = cursor.next_undamaged().await? {
        records.push(record);
    }
    Ok(records)
}

/// Where a page may begin: nothing that began before goes on there, apart from the turn. Inputs that were taken between two
/// turns belong to the second one.
fn is_beginning(records: &[Record], index: usize) -> bool {
    let is_after_turn = index.checked_sub(1).is_some_and(|before| records[before].kind == "turn_ended");
    is_after_turn || records[index].kind == "step_started"
}

/// The blocks of the fewest records, from the beginning of a step on, that have at least `limit` blocks; all of them if there
/// are fewer.
fn newest_blocks(mut records: Vec<Record>, limit: usize, is_newest: bool) -> (Vec<Record>, Vec<Block>) {
    let mut blocks = fold(&records, is_newest);
    let too_many = blocks.len().saturating_sub(limit);
    if too_many > 0 {
        // The last beginning that leaves enough blocks.
        let kept_from = blocks[too_many].seq.unwrap_or(Seq::MAX);
        let begins = (0..records.len())
            .rfind(|index| records[*index].seq <= kept_from && is_beginning(&records, *index));
        if let Some(begins) = begins.filter(|begins| *begins > 0) {
            records.drain(..begins);
            blocks = fold(&records, is_newest);
        }
    }
    (records, blocks)
}

fn fold(records: &[Record], is_newest: bool) -> Vec<Block> {
    let mut transcript = StoredTranscript::new();
    let mut updates: Vec<Update> = records.iter().flat_map(|record| transcript.apply(record)).collect();
    if is_newest {
        updates.extend(transcript.end());
    }
    let is_shown = |block: &Block| !matches!(block.content, BlockContent::UnfinishedTurn { .. });
    let ended = updates.into_iter().filter_map(|update| match update {
        Update::Ended(block) => Some(block),
        Update::Started(_) | Update::Appended { .. } => None,
    });
    ended.filter(is_shown).collect()
}
