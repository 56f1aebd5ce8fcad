//! The pages of memory: list, read, search, change, undo.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::memory_pages::{
    MemoryHitReport, PageChangeReport, PageSource, PageSummary, PageText, page_sources, page_text,
    pages_of_scope, runtime_memory_scopes, search_memory, undo_page_change, write_page,
};
use longhaul_memory::{
    CitedPlace, PageEdit, PageEdited, PageSet, check_page_name, cited_places, page_diff, page_log,
};
use longhaul_protocol::Seq;
use longhaul_transcript::html::markdown_html;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::{DEFAULT_ITEMS, List, ListQuery, MAX_ITEMS, check_limit};
use super::path::PathParameters;
use crate::access::{Access, Scope};
use crate::body::{JsonBody, NoFields, OptionalJsonBody, Query};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

const DEFAULT_HITS: usize = 10;
const MAX_HITS: usize = 100;
/// Places that a page names as its sources.
const MAX_SOURCES: usize = 100;

pub(crate) fn routes() -> Vec<Route> {
    [read_routes(), write_routes()].into_iter().flatten().collect()
}

fn read_routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/memory", read, "List memories", list_scopes)
            .query::<ListQuery>()
            .answers::<List<MemoryScope>>(StatusCode::OK, "Memories by name."),
        Route::new(Method::GET, "/api/memory/{scope}/pages", read, "List the pages of a memory", list_pages)
            .query::<ListQuery>()
            .answers::<List<PageSummary>>(StatusCode::OK, "Pages by name."),
        Route::new(Method::GET, "/api/memory/{scope}/pages/{page}", read, "Read a page", show_page)
            .query::<PageQuery>()
            .answers::<ShownPage>(StatusCode::OK, "The page."),
        Route::new(Method::GET, "/api/memory/{scope}/search", read, "Search a memory", search)
            .query::<SearchParameters>()
            .answers::<List<MemoryHitReport>>(StatusCode::OK, "Hits in pages and sessions, the best first."),
        Route::new(Method::GET, "/api/memory/{scope}/log", read, "List the changes of a memory", show_log)
            .query::<LogQuery>()
            .answers::<List<PageChangeReport>>(StatusCode::OK, "Changes, the newest first."),
        Route::new(Method::GET, "/api/memory/{scope}/diff/{seq}", read, "Show what a change did", show_diff)
            .answers::<ChangeDiff>(StatusCode::OK, "The change."),
    ]
}

fn write_routes() -> Vec<Route> {
    let admin = Access::Token(Scope::Admin);
    let conflict = "The page was changed since it was read; nothing was written.";
    let unfit = "The text is too long, or there are too many pages.";
    vec![
        Route::new(Method::PUT, "/api/memory/{scope}/pages/{page}", admin, "Write a page", put_page)
            .body::<NewPage>()
            .answers::<PagesWritten>(StatusCode::OK, "The page has this text.")
            .fails(StatusCode::CONFLICT, conflict)
            .fails(StatusCode::UNPROCESSABLE_ENTITY, unfit),
        Route::new(Method::DELETE, "/api/memory/{scope}/pages/{page}", admin, "Remove a page", delete_page)
            .answers::<PagesWritten>(StatusCode::OK, "The page is removed. The change can be undone.")
            .fails(StatusCode::CONFLICT, conflict),
        Route::new(Method::POST, "/api/memory/{scope}/undo/{seq}", admin, "Undo a change of pages", undo)
            .optional_body::<NoFields>()
            .answers::<PagesWritten>(StatusCode::OK, "The change is undone.")
            .fails(
                StatusCode::CONFLICT,
                "A newer change builds on it, and the detail shows both; or it changed no page.",
            )
            .fails(StatusCode::UNPROCESSABLE_ENTITY, unfit),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct MemoryScope {
    scope: String,
}

/// A page, as text and as HTML.
#[derive(Debug, Serialize, JsonSchema)]
struct ShownPage {
    #[serde(flatten)]
    page: PageText,
    /// The text as a fragment of HTML without scripts or markup from the page.
    html: String,
    /// Where it was said: at most 100 records of sessions, those of the newest changes first.
    sources_list: Vec<PageSource>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageQuery {
    /// Show the page as it was after this change.
    at: Option<Seq>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchParameters {
    /// The words to look for.
    query: String,
    /// The most hits to return, up to 100; 10 if absent.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// Only changes of this page.
    page: Option<String>,
    /// The most changes to return, up to 1,000; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// The change after which the list goes on: `next` of the page before.
    after: Option<Seq>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangeDiff {
    scope: String,
    seq: Seq,
    /// A unified diff of each changed page.
    diff: String,
    /// Where it was said, as far as the change cites something.
    sources: Vec<ChangeSource>,
}

/// Where something was said that a change cites.
#[derive(Debug, Serialize, JsonSchema)]
struct ChangeSource {
    /// The id of the session.
    session: String,
    /// The record.
    seq: Seq,
    /// What was remembered of it.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPage {
    /// Markdown. Consolidation keeps every line of it until a person changes it.
    #[schemars(length(min = 1))]
    text: String,
    /// The reason in the log.
    reason: Option<String>,
    /// The `version` of the page that this text was made from. If the page has a newer one, nothing is written. Without
    /// it, the text replaces any version.
    made_from: Option<Seq>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PagesWritten {
    scope: String,
    /// The number of the change; null if there was nothing to change.
    seq: Option<Seq>,
    /// The changed pages.
    pages: Vec<String>,
}

impl PagesWritten {
    fn new(scope: String, changed: Option<PageEdited>) -> Json<Self> {
        let (seq, pages) = changed.map(|changed| (changed.seq, changed.pages)).unzip();
        Json(Self { scope, seq, pages: pages.unwrap_or_default() })
    }
}

/// The pages of the memory that a path names.
async fn find_pages(state: &ServerState, scope: &str) -> ApiResult<PageSet> {
    let pages = pages_of_scope(state.runtime(), scope).await?;
    pages.ok_or_else(|| {
        let detail = format!("there is no memory {scope:?}; GET /api/memory lists them");
        Problem::not_found("no_such_scope", detail)
    })
}

async fn list_scopes(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<MemoryScope>>> {
    let scopes = runtime_memory_scopes(state.runtime()).await?;
    let scopes = scopes.into_iter().map(|scope| MemoryScope { scope }).collect();
    List::page(scopes, &query, |scope: &MemoryScope| scope.scope.clone())
}

async fn list_pages(
    State(state): State<ServerState>,
    PathParameters(scope): PathParameters<String>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<PageSummary>>> {
    let mut pages = PageSummary::list(&find_pages(&state, &scope).await?);
    pages.sort_by(|one, other| one.page.cmp(&other.page));
    List::page(pages, &query, |page: &PageSummary| page.page.clone())
}

async fn show_page(
    State(state): State<ServerState>,
    PathParameters((scope, page)): PathParameters<(String, String)>,
    Query(query): Query<PageQuery>,
) -> ApiResult<Json<ShownPage>> {
    let pages = find_pages(&state, &scope).await?;
    let journal = state.journal();
    let page = page_text(&*journal, &pages, &page, query.at).await?;
    let sources_list = page_sources(&*journal, &pages, &page.page, page.version, MAX_SOURCES).await?;
    Ok(Json(ShownPage { html: markdown_html(&page.text), page, sources_list }))
}

async fn search(
    State(state): State<ServerState>,
    PathParameters(scope): PathParameters<String>,
    Query(query): Query<SearchParameters>,
) -> ApiResult<Json<List<MemoryHitReport>>> {
    let pages = find_pages(&state, &scope).await?;
    let limit = check_limit(query.limit, DEFAULT_HITS, MAX_HITS)?;
    let config = state.runtime().config();
    let hits = search_memory(config, &*state.journal(), &pages, &query.query, limit).await?;
    Ok(Json(List { items: hits.iter().map(MemoryHitReport::from).collect(), next: None }))
}

async fn show_log(
    State(state): State<ServerState>,
    PathParameters(scope): PathParameters<String>,
    Query(query): Query<LogQuery>,
) -> ApiResult<Json<List<PageChangeReport>>> {
    find_pages(&state, &scope).await?;
    let limit = check_limit(query.limit, DEFAULT_ITEMS, MAX_ITEMS)?;
    let log = page_log(&*state.journal(), &scope, query.page.as_deref()).await?;
    let mut older = log.iter().filter(|change| query.after.is_none_or(|after| change.seq < after));
    let items: Vec<PageChangeReport> = older.by_ref().take(limit).map(PageChangeReport::from).collect();
    let next = older.next().and(items.last()).map(|change| change.seq.to_string());
    Ok(Json(List { items, next }))
}

async fn show_diff(
    State(state): State<ServerState>,
    PathParameters((scope, seq)): PathParameters<(String, Seq)>,
) -> ApiResult<Json<ChangeDiff>> {
    find_pages(&state, &scope).await?;
    let diff = page_diff(&*state.journal(), &scope, seq).await?;
    let cited = cited_places(&*state.journal(), &scope, seq).await?;
    let source = |CitedPlace { session, seq, item }: CitedPlace| ChangeSource {
        session: session.to_string(),
        seq,
        text: item,
    };
    Ok(Json(ChangeDiff { scope, seq, diff, sources: cited.into_iter().map(source).collect() }))
}

async fn put_page(
    State(state): State<ServerState>,
    PathParameters((scope, page)): PathParameters<(String, String)>,
    JsonBody(body): JsonBody<NewPage>,
) -> ApiResult<Json<PagesWritten>> {
    check_page_name(&page)?;
    if body.text.trim().is_empty() {
        let detail = "text: the page would be empty; to remove it, send DELETE";
        return Err(Problem::bad_request("invalid_body", detail));
    }
    find_pages(&state, &scope).await?;
    let reason = body.reason.unwrap_or_else(|| "edited over HTTP".to_owned());
    let edit = PageEdit { page, text: Some(body.text), reason, made_from: body.made_from };
    let changed = write_page(state.runtime(), &scope, edit).await?;
    Ok(PagesWritten::new(scope, changed))
}

async fn delete_page(
    State(state): State<ServerState>,
    PathParameters((scope, page)): PathParameters<(String, String)>,
) -> ApiResult<Json<PagesWritten>> {
    check_page_name(&page)?;
    find_pages(&state, &scope).await?;
    let reason = "removed over HTTP".to_owned();
    let edit = PageEdit { page, text: None, reason, made_from: None };
    let changed = write_page(state.runtime(), &scope, edit).await?;
    Ok(PagesWritten::new(scope, changed))
}

async fn undo(
    State(state): State<ServerState>,
    PathParameters((scope, seq)): PathParameters<(String, Seq)>,
    _: OptionalJsonBody<NoFields>,
) -> ApiResult<Json<PagesWritten>> {
    find_pages(&state, &scope).await?;
    let changed = undo_page_change(state.runtime(), &scope, seq).await?;
    Ok(PagesWritten::new(scope, Some(changed)))
}
