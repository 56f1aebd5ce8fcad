//! Memory as people and programs look at it: scopes, pages, older versions, search hits, and changes by hand.

use std::collections::BTreeSet;
use std::path::Path;

use longhaul_journal::{Journal, SessionPlace, all_sessions, records, session_place};
use longhaul_memory::{
    CORE_PAGE, Error as MemoryError, Page, PageEdit, PageEdited, PageLogEntry, PageSet, RecallBudget,
    RecallHit, RecallPlace, RecallScope, Recalled, change_page, recall, undo_change,
};
use longhaul_protocol::{
    At, Body, ChangedBy, ExtractRecord, MemoryRecord, PagesChanged, Seq, SessionId, Speaker, StreamName,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::jobs;
pub use super::page_sources::{PageSource, page_sources};
use crate::{Config, Result, Runtime};

/// A page in a list: the JSON of `longhaul memory --json` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageSummary {
    /// The name of the page.
    pub page: String,
    /// Its first line with text, without Markdown marks.
    pub first_line: String,
    /// How many versions it has.
    pub versions: usize,
    /// The newest one.
    pub version: Option<Seq>,
    /// When that was written.
    pub changed_at: Option<String>,
    /// Who wrote it.
    #[schemars(with = "Option<String>")]
    pub changed_by: Option<ChangedBy>,
    /// The size of its text.
    pub bytes: usize,
}

/// The text of a page.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageText {
    /// The memory that the page belongs to.
    pub scope: String,
    /// The name of the page.
    pub page: String,
    /// The change that wrote this text.
    pub version: Seq,
    /// Markdown.
    pub text: String,
}

/// A change of pages.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PageChangeReport {
    /// The number of the change.
    pub seq: Seq,
    /// When it was made.
    pub at: String,
    /// Who made it.
    #[schemars(with = "String", extend("enum" = ["consolidation", "person", "note", "undo"]))]
    pub by: ChangedBy,
    /// Why.
    pub reason: String,
    /// The changed pages.
    pub pages: Vec<ChangedPageReport>,
    /// Edits that were refused, and why.
    pub refused: Vec<String>,
    /// The change that this one undoes.
    pub undoes: Option<Seq>,
    /// What its model calls cost, in US dollars.
    pub cost: Option<f64>,
}

/// A page in a change.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ChangedPageReport {
    /// The name of the page.
    pub page: String,
    /// Why it was changed.
    pub reason: String,
    /// How many extracted items it cites.
    pub sources: usize,
}

/// A search hit: the JSON of `longhaul memory search --json` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MemoryHitReport {
    /// Where it was found.
    #[schemars(extend("enum" = ["page", "item", "record"]))]
    pub kind: &'static str,
    /// The page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// The key of the session of an item or a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The id of that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub id: Option<SessionId>,
    /// The extract of an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extract: Option<Seq>,
    /// The position of the item in its extract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<usize>,
    /// The record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// Who said it. If several did, the least trusted one.
    #[schemars(with = "String", extend("enum" = ["user", "assistant", "untrusted"]))]
    pub speaker: Speaker,
    /// When.
    pub at: String,
    /// The part that matches.
    pub excerpt: String,
    /// The records that it came from.
    pub sources: Vec<Seq>,
}

/// A search hit with the key of its session.
#[derive(Debug, Clone)]
pub struct MemoryHit {
    /// What was found.
    pub found: RecallHit,
    /// The key of the session of an item or a record.
    pub key: Option<String>,
}

/// One change of a memory, as it is in the journal.
#[derive(Debug, Clone)]
pub struct RecordedPageChange {
    /// The number of the change.
    pub seq: Seq,
    /// When it was made.
    pub at: At,
    /// The pages with their new texts.
    pub changed: PagesChanged,
}

impl PageSummary {
    /// The pages of a memory: the core page first, the others by name.
    pub fn list(pages: &PageSet) -> Vec<Self> {
        let (core, others): (Vec<_>, Vec<_>) = pages.pages.iter().partition(|(name, _)| *name == CORE_PAGE);
        core.into_iter().chain(others).map(|(name, page)| Self::new(name, page)).collect()
    }

    fn new(name: &str, page: &Page) -> Self {
        let last = page.versions.last();
        Self {
            page: name.to_owned(),
            first_line: first_line(&page.text).to_owned(),
            versions: page.versions.len(),
            version: last.map(|version| version.seq),
            changed_at: last.map(|version| version.at.to_string()),
            changed_by: last.map(|version| version.by),
            bytes: page.text.len(),
        }
    }
}

fn first_line(text: &str) -> &str {
    let words = text.lines().map(|line| line.trim_start_matches(['#', '-', '*', ' ']).trim());
    words.into_iter().find(|line| !line.is_empty()).unwrap_or_default()
}

impl From<&PageLogEntry> for PageChangeReport {
    fn from(entry: &PageLogEntry) -> Self {
        let page = |(page, reason, sources): &(String, String, usize)| ChangedPageReport {
            page: page.clone(),
            reason: reason.clone(),
            sources: *sources,
        };
        Self {
            seq: entry.seq,
            at: entry.at.to_string(),
            by: entry.by,
            reason: entry.reason.clone(),
            pages: entry.pages.iter().map(page).collect(),
            refused: entry.refused.clone(),
            undoes: entry.undoes,
            cost: entry.cost,
        }
    }
}

impl From<&MemoryHit> for MemoryHitReport {
    fn from(hit: &MemoryHit) -> Self {
        let MemoryHit { found, key } = hit;
        let mut report = Self {
            kind: "page",
            page: None,
            session: key.clone(),
            id: None,
            extract: None,
            item: None,
            seq: None,
            speaker: found.speaker,
            at: found.at.to_string(),
            excerpt: found.excerpt.clone(),
            sources: found.sources.clone(),
        };
        match &found.place {
            RecallPlace::Page(name) => report.page = Some(name.clone()),
            RecallPlace::Item { session, seq, item } => {
                report.kind = "item";
                (report.id, report.extract, report.item) = (Some(*session), Some(*seq), Some(*item));
            }
            RecallPlace::Record { session, seq } => {
                report.kind = "record";
                (report.id, report.seq) = (Some(*session), Some(*seq));
            }
        }
        report
    }
}

/// The memory scope of a session, by the key and the work folder with which it started. A session without records gets
/// the configured work folder.
pub async fn memory_scope_of(
    config: &Config,
    journal: &dyn Journal,
    key: &str,
    id: Option<SessionId>,
) -> Result<String> {
    let started = match id {
        Some(id) => session_place(journal, id).await?,
        None => None,
    };
    Ok(match started {
        Some(SessionPlace { key, work_dir }) => config.memory_scope(&key, work_dir.as_deref().map(Path::new)),
        None => {
            let folder = &config.work_dir;
            config.memory_scope(key, Some(&folder.canonicalize().unwrap_or_else(|_| folder.clone())))
        }
    })
}

/// The scopes that have pages, or had some.
pub async fn scopes_with_pages(journal: &dyn Journal) -> Result<BTreeSet<String>> {
    let streams = journal.streams().await?;
    let names = streams.iter().filter_map(|stream| stream.as_str().strip_prefix("memory/"));
    Ok(names.filter(|name| is_plain(name)).map(str::to_owned).collect())
}

/// The scopes that have pages or extracts.
pub async fn memory_scopes(journal: &dyn Journal) -> Result<BTreeSet<String>> {
    let mut names = scopes_with_pages(journal).await?;
    for stream in journal.streams().await?.iter().filter(|stream| is_extract(stream)) {
        let mut cursor = records(journal, stream, 1);
        while let Some(record) = cursor.next().await? {
            if let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record)
                && is_plain(&extracted.scope)
            {
                names.insert(extracted.scope);
            }
        }
    }
    Ok(names)
}

fn is_extract(stream: &StreamName) -> bool {
    stream.as_str().starts_with("extract/")
}

/// Whether a name can be a scope, which is also the name of a folder.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains('/')
}

/// The number of extracted items that no page has taken in yet.
pub async fn count_waiting_items(journal: &dyn Journal, pages: &PageSet) -> Result<u64> {
    let mut items = 0;
    for stream in journal.streams().await?.iter().filter(|stream| is_extract(stream)) {
        let read = stream.session_id().and_then(|session| pages.read.get(&session));
        let mut cursor = records(journal, stream, read.copied().unwrap_or(0) + 1);
        while let Some(record) = cursor.next().await? {
            if let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(&record)
                && extracted.scope == pages.scope
            {
                items += extracted.items.len() as u64;
            }
        }
    }
    Ok(items)
}

/// What a search of a memory found.
#[derive(Debug, Clone, Default)]
pub struct MemorySearch {
    /// The best first.
    pub hits: Vec<MemoryHit>,
    /// Records that are not searched yet, because the index is being built anew. Usually 0.
    pub unindexed: u64,
}

/// Searches a memory: its pages, and what was extracted from and said in its sessions.
pub async fn search_memory(
    config: &Config,
    journal: &dyn Journal,
    pages: &PageSet,
    query: &str,
    limit: usize,
) -> Result<MemorySearch> {
    let mut sessions = Vec::new();
    let mut entries = all_sessions(journal);
    while let Some(entry) = entries.next().await? {
        let is_of_scope = !entry.trashed
            && memory_scope_of(config, journal, &entry.key, Some(entry.id)).await? == pages.scope;
        if is_of_scope {
            sessions.push((entry.id, entry.key));
        }
    }
    let places = RecallScope { book: pages.clone(), sessions, present: None, asked_at: None };
    let budget = RecallBudget::entries(limit);
    let Recalled { hits, unindexed, .. } = recall(journal, &places, query, budget).await?;
    let key_of = |session: SessionId| {
        places.sessions.iter().find(|(id, _)| *id == session).map(|(_, key)| key.clone())
    };
    let hit = |found: RecallHit| {
        let session = match found.place {
            RecallPlace::Page(_) => None,
            RecallPlace::Item { session, .. } | RecallPlace::Record { session, .. } => Some(session),
        };
        MemoryHit { key: session.and_then(key_of), found }
    };
    Ok(MemorySearch { hits: hits.into_iter().map(hit).collect(), unindexed })
}

/// All changes of a memory, the oldest first, and a message for each that can't be read.
pub async fn recorded_page_changes(
    journal: &dyn Journal,
    pages: &PageSet,
) -> Result<(Vec<RecordedPageChange>, Vec<String>)> {
    let stream =
        StreamName::memory(&pages.scope).map_err(|_| MemoryError::BadScope { scope: pages.scope.clone() })?;
    let (mut changes, mut unreadable) = (Vec::new(), Vec::new());
    let mut cursor = records(journal, &stream, 1);
    while let Some(record) = cursor.next().await? {
        match (MemoryRecord::decode(&record), &record.body) {
            (Ok(MemoryRecord::PagesChanged(changed)), _) => {
                changes.push(RecordedPageChange { seq: record.seq, at: record.at, changed });
            }
            (_, Body::Gone(gone)) => {
                unreadable.push(format!("change {} was erased on {}: {}", record.seq, gone.at, gone.reason));
            }
            _ => unreadable.push(format!("can't read change {}; try a newer longhaul", record.seq)),
        }
    }
    Ok((changes, unreadable))
}

/// A page as it is, or as it was after the change `at`.
pub async fn page_text(
    journal: &dyn Journal,
    pages: &PageSet,
    name: &str,
    at: Option<Seq>,
) -> Result<PageText> {
    let text = |version: Seq, text: &str| PageText {
        scope: pages.scope.clone(),
        page: name.to_owned(),
        version,
        text: text.to_owned(),
    };
    let Some(seq) = at else {
        let page = pages.pages.get(name).ok_or_else(|| pages.no_page_error(name))?;
        return Ok(text(page.versions.last().map_or(0, |version| version.seq), &page.text));
    };
    if seq == 0 || seq > pages.head {
        return Err(MemoryError::NoChange { seq }.into());
    }
    let (changes, _) = recorded_page_changes(journal, pages).await?;
    let of_page = |change: &RecordedPageChange| {
        let page = change.changed.pages.iter().find(|page| page.page == name)?;
        Some((change.seq, page.text.clone()))
    };
    let versions: Vec<(Seq, Option<String>)> = changes.iter().filter_map(of_page).collect();
    let Some((first, _)) = versions.first() else { return Err(pages.no_page_error(name).into()) };
    let missing = |why: String| MemoryError::NoPage { name: name.to_owned(), nearest: why }.into();
    match versions.iter().rev().find(|(version, _)| *version <= seq) {
        Some((version, Some(found))) => Ok(text(*version, found)),
        Some((version, None)) => {
            Err(missing(format!(" after change {seq}; it was removed by change {version}")))
        }
        None => Err(missing(format!(" after change {seq}; its first version is {first}"))),
    }
}

/// Changes a page on behalf of a person, updates its file, and tells watchers. `None` if it already has this text.
pub async fn write_page(runtime: &Runtime, scope: &str, edit: PageEdit) -> Result<Option<PageEdited>> {
    let redact = |text: &str| runtime.redactor().redact(text).into_owned();
    let (text, reason) = (edit.text.as_deref().map(redact), redact(&edit.reason));
    let changed = change_page(&*runtime.0.journal, scope, PageEdit { text, reason, ..edit }).await?;
    if let Some(changed) = &changed {
        jobs::pages_changed(&runtime.0, scope, &changed.pages).await;
    }
    Ok(changed)
}

/// Undoes a change of pages, updates their files, and tells watchers.
pub async fn undo_page_change(runtime: &Runtime, scope: &str, seq: Seq) -> Result<PageEdited> {
    let changed = undo_change(&*runtime.0.journal, scope, seq).await?;
    jobs::pages_changed(&runtime.0, scope, &changed.pages).await;
    Ok(changed)
}

/// The pages of a scope. `None` if no session has this scope and it has neither pages nor extracts.
pub async fn pages_of_scope(runtime: &Runtime, scope: &str) -> Result<Option<PageSet>> {
    let pages = runtime.0.memory.page_set(&runtime.0, scope).await?;
    let exists = pages.head > 0 || runtime_memory_scopes(runtime).await?.contains(scope);
    Ok(exists.then_some(pages))
}

/// The scopes of a runtime: those with pages or extracts, and those of its sessions.
pub async fn runtime_memory_scopes(runtime: &Runtime) -> Result<BTreeSet<String>> {
    let journal = &*runtime.0.journal;
    let mut scopes = memory_scopes(journal).await?;
    let mut entries = all_sessions(journal);
    while let Some(entry) = entries.next().await? {
        if let Some(scope) = runtime.0.memory.scopes.of(entry.id).await?.filter(|_| !entry.trashed) {
            scopes.insert(scope);
        }
    }
    Ok(scopes)
}
