//! A session as people see it: page by page from its end, and what is new since a record. A page costs what it shows, however long
//! the session is.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_protocol::Seq;
use longhaul_transcript::Block;
use longhaul_transcript::html::{block_html, omitted_block_html};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::check_limit;
use super::named_session::NamedSession;
use super::recorded_blocks::{BlockReader, BlockSpan};
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

const MAX_BLOCKS: usize = 500;
const DEFAULT_BLOCKS: usize = 100;
/// Bytes of the HTML of a page. The oldest blocks of a larger one say that they are not shown.
const MAX_PAGE_HTML: usize = 4 << 20;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/sessions/{key}/transcript", read, "A session as people see it", show)
            .query::<TranscriptQuery>()
            .answers::<TranscriptPage>(StatusCode::OK, "Blocks in the order in which they ended. An input ends with the step that shows it to the model."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TranscriptQuery {
    /// Only what is older than this record: `next` of the page before. By default the page is the newest one.
    before: Option<u64>,
    /// Only blocks that ended with a record after this one: `through` of the page that the client has. Not together with `before`.
    after: Option<u64>,
    /// About how many blocks to return, up to 500; 100 if absent. A page begins at the beginning of a step, so it may have
    /// some more. With `after`: the most blocks; if there are more, the answer is the newest page.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TranscriptPage {
    items: Vec<ShownBlock>,
    /// What goes on after the last record: the turn, the part of an answer that has arrived, running calls, open questions, a
    /// compaction, and inputs that wait for a step or a turn. Each replaces what the client showed as open before. Absent on older pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Vec<ShownBlock>>,
    /// The value of `before` for the page before this one; null if this page has the session's beginning, and with `after`.
    next: Option<u64>,
    /// The last record of the page. Following the events after it misses nothing.
    through: u64,
    /// Only with `after`. True: `items` are all blocks that ended since. False: there are too many, and this is the newest page
    /// instead, which replaces everything that the client has.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
}

/// A block: what happened, as data and as HTML.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownBlock {
    #[serde(flatten)]
    block: Block,
    /// The record with which the block ended; null while it goes on.
    ended_by: Option<u64>,
    /// A fragment of HTML without scripts or markup from the session; empty if there is nothing to show. Of a block that is too large, and of
    /// the oldest blocks of a page with more than 4 MiB of HTML, it says only that they are not shown.
    html: String,
}

impl ShownBlock {
    /// Renders the block, if the page still has room for it.
    fn new(block: Block, ended_by: Option<Seq>, bytes_left: &mut usize) -> Self {
        let html = match *bytes_left {
            0 => omitted_block_html(&block, "the page is too large"),
            _ => block_html(&block),
        };
        *bytes_left = bytes_left.saturating_sub(html.len());
        Self { html, block, ended_by }
    }
}

async fn show(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
    Query(query): Query<TranscriptQuery>,
) -> ApiResult<Json<TranscriptPage>> {
    let limit = check_limit(query.limit, DEFAULT_BLOCKS, MAX_BLOCKS)?;
    let (head, journal) = (entry.head.seq, state.journal());
    let reader = BlockReader::new(&*journal, entry.id, state.fold_starts());
    let page = match (query.before, query.after) {
        (Some(_), Some(_)) => {
            let detail = "before and after exclude each other; send one of them";
            return Err(Problem::bad_request("invalid_query", detail));
        }
        (None, Some(after)) if after > head => return Err(Problem::seq_ahead(after, &entry.key, head)),
        (None, Some(after)) => match reader.blocks_after(after, head, limit).await? {
            Some(span) => TranscriptPage { complete: Some(true), ..render_page(span, None, head).await? },
            None => {
                TranscriptPage { complete: Some(false), ..read_page(&reader, (head, head), limit).await? }
            }
        },
        (before, None) => {
            let end = before.map_or(head, |before| before.saturating_sub(1).min(head));
            read_page(&reader, (end, head), limit).await?
        }
    };
    Ok(Json(page))
}

/// The page of about `limit` blocks that ends with a record.
async fn read_page(
    reader: &BlockReader<'_>,
    (end, head): (Seq, Seq),
    limit: usize,
) -> ApiResult<TranscriptPage> {
    let first = reader.find_page_start(end, limit).await?;
    let span = reader.blocks_after(first - 1, end, usize::MAX).await?;
    let span = span.unwrap_or_else(|| BlockSpan { ended: vec![], open: vec![] });
    let page = render_page(span, (first > 1).then_some(first), end).await?;
    Ok(TranscriptPage { open: page.open.filter(|_| end == head), ..page })
}

/// Renders blocks. That takes a while where they have much code to highlight, so other requests don't wait for it.
async fn render_page(span: BlockSpan, next: Option<Seq>, through: Seq) -> ApiResult<TranscriptPage> {
    let render = move || {
        let mut bytes_left = MAX_PAGE_HTML;
        let open = span.open.into_iter().map(|block| ShownBlock::new(block, None, &mut bytes_left)).collect();
        let newest_first = span.ended.into_iter().rev();
        let items = newest_first.map(|ended| ShownBlock::new(ended.block, Some(ended.seq), &mut bytes_left));
        let mut items: Vec<ShownBlock> = items.collect();
        items.reverse();
        TranscriptPage { items, open: Some(open), next, through, complete: None }
    };
    let stopped = |_| {
        let detail = "the server stopped before the blocks were rendered; try again later";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    };
    tokio::task::spawn_blocking(render).await.map_err(stopped)
}
