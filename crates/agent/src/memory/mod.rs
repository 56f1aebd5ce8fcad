//! Memory in the runtime: when extraction and consolidation run, for which sessions, and at what cost. The crate
//! `longhaul-memory` is memory itself.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `single_flight` | one job at a time for each key; concurrent callers share its result |
//! | `jobs` | extraction and consolidation: which model, within which budget, who gets the events |
//! | `call_cost` | the budget for background calls, and the cost of calls that failed |
//! | `scopes` | which sessions share a memory |
//! | `embeddings` | the embedding model, if there is one |
//! | `context_memory` | the pages that a context begins with |
//! | [`pages`] | memory as people and programs look at it, and changes by hand |
//! | `tools` | the memory tools of the model |
//!
//! | a crash after | is on disk | next time |
//! | --- | --- | --- |
//! | a part of a session was sent, before its answer was recorded | nothing | the same part is sent again |
//! | `extracted`: one append for each part | the items, and the range that they cover | the next part begins after it |
//! | `extraction_failed`, because no answer was usable | the span that was asked about, and the cost | it is asked about again when enough is new |
//! | items and pages were sent, before the answer was recorded | nothing | they are sent again |
//! | `pages_changed`: one append | the pages, and how far the extracts have been read | only newer extracts are read |
//! | that, before the files were written | the same | the files are written with the next change, or by `longhaul memory` |
//!
//! Never: a record that two extracts cover or none does; an item that is read twice; a page of which only a half is
//! written; a turn that waits for any of this.

mod call_cost;
mod context_memory;
mod embeddings;
mod jobs;
mod page_sources;
pub mod pages;
mod scopes;
mod single_flight;
mod tools;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use longhaul_journal::Journal;
use longhaul_memory::{Embedder, Extraction, PageEdited, PageSet, UnextractedCounter};
use longhaul_model::Model;
use longhaul_protocol::{Seq, SessionId, Speaker};
use tokio::sync::oneshot;

use call_cost::UnrecordedCosts;
pub(crate) use context_memory::{memory_for_context, preface_tokens};
use embeddings::finders;
pub(crate) use embeddings::{FinderFn, embed_if_idle};
pub(crate) use jobs::{check_after_turn, consolidate_if_due, extract_if_idle};
pub(crate) use scopes::Scopes;
use single_flight::SingleFlight;
#[cfg(test)]
pub(crate) use tools::memory_note_definition;
pub(crate) use tools::{
    FoundMemories, MemoryAccess, NO_MEMORY, NoteHooks, OwnRecords, PagesChangedFn, find_memories,
    memory_note_tool,
};

use crate::runtime::slot::SessionSlot;
use crate::runtime::{RuntimeShared, lock};
use crate::{Config, Error, Result};

/// Page sets to cache. With per-person memory there may be one for each session.
const MAX_CACHED_PAGE_SETS: usize = 16;
/// How often to check whether another process has finished with the session.
const HELD_RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// The runtime's caches and running jobs of memory. Everything here can be rebuilt.
pub(crate) struct Memory {
    pub(crate) scopes: Arc<Scopes>,
    extractions: SingleFlight<SessionId, Result<Extraction>>,
    consolidations: SingleFlight<String, Result<bool>>,
    /// Pages as they were last read, by scope.
    page_sets: Mutex<HashMap<String, PageSet>>,
    /// Tokens since the last extract, of sessions that had a turn here.
    unread: Mutex<HashMap<SessionId, UnextractedCounter>>,
    /// The model that `memory.model` names, once it was needed. `None` inside if there is none or it can't be opened.
    pub(crate) own_model: OnceLock<Option<Arc<dyn Model>>>,
    /// The model that `memory.embedding_model` names, once it was needed. `None` inside if there is none or it can't be opened.
    embedder: OnceLock<Option<Arc<Embedder>>>,
    embedding_warnings: embeddings::EmbeddingWarnings,
    /// The head of each extract stream when consolidation was last considered.
    consolidated_through: Mutex<HashMap<SessionId, Seq>>,
    /// The cost of failed calls that is not in a record yet.
    pub(crate) unrecorded_costs: UnrecordedCosts,
    runtime: Weak<RuntimeShared>,
}

impl Memory {
    pub(crate) fn new(config: &Config, journal: &Arc<dyn Journal>, runtime: &Weak<RuntimeShared>) -> Self {
        let scope = {
            let config = config.clone();
            move |key: &str, work_dir: Option<&Path>| config.memory_scope(key, work_dir)
        };
        Self {
            scopes: Arc::new(Scopes::new(journal.clone(), scope)),
            extractions: SingleFlight::default(),
            consolidations: SingleFlight::default(),
            page_sets: Mutex::default(),
            unread: Mutex::default(),
            own_model: OnceLock::new(),
            embedder: OnceLock::new(),
            embedding_warnings: embeddings::EmbeddingWarnings::default(),
            consolidated_through: Mutex::default(),
            unrecorded_costs: UnrecordedCosts::default(),
            runtime: runtime.clone(),
        }
    }

    /// How `recall` finds records beside their words.
    pub(crate) fn finders(&self) -> FinderFn {
        finders(&self.runtime)
    }

    /// The callback for pages that a tool has changed.
    pub(crate) fn pages_changed_hook(&self) -> PagesChangedFn {
        let runtime = self.runtime.clone();
        Arc::new(move |scope, pages| {
            let Some(runtime) = runtime.upgrade() else { return };
            let (inner, scope, pages) = (runtime.clone(), scope.to_owned(), pages.to_vec());
            runtime.spawn(async move { jobs::pages_changed(&inner, &scope, &pages).await });
        })
    }

    /// The pages of a scope as they are now.
    async fn page_set(&self, runtime: &RuntimeShared, scope: &str) -> Result<PageSet> {
        let known = lock(&self.page_sets).get(scope).cloned();
        let page_set = match known {
            Some(mut page_set) => {
                page_set.catch_up(&*runtime.journal).await?;
                page_set
            }
            None => PageSet::load(&*runtime.journal, scope).await?,
        };
        let mut page_sets = lock(&self.page_sets);
        if page_sets.len() >= MAX_CACHED_PAGE_SETS {
            page_sets.clear();
        }
        page_sets.insert(scope.to_owned(), page_set.clone());
        Ok(page_set)
    }
}

/// Extracts what is new in a session. The job continues if the caller stops waiting. If a job is already under way,
/// joins it. Waits for a job of another process. `None` if memory is off.
pub(crate) async fn extract_session(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    id: SessionId,
) -> Result<Option<Extraction>> {
    if runtime.config.settings.memory.extract_at_tokens == 0 {
        return Ok(None);
    }
    let (sender, done) = oneshot::channel();
    let (inner, slot) = (runtime.clone(), slot.clone());
    let job = async move {
        let mut suspension = inner.suspension();
        tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => {}
            extracted = extract_when_free(&inner, &slot, id) => drop(sender.send(extracted)),
        }
    };
    if !runtime.spawn(job) {
        return Err(Error::Suspended);
    }
    done.await.unwrap_or(Err(Error::Suspended)).map(Some)
}

/// Adds a text that the user wants remembered to the core page of a session's memory.
pub(crate) async fn remember(
    runtime: &Arc<RuntimeShared>,
    key: &str,
    id: Option<SessionId>,
    text: &str,
) -> Result<PageEdited> {
    add_note(runtime, key, id, text, None).await
}

/// Carries out an order to remember a text. If it came with a token that may not write memory, the text is noted as that
/// token's, not as the user's.
pub(crate) async fn remember_ordered(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    text: &str,
    token: Option<&str>,
) -> Result<()> {
    let id = slot.ensure_id(runtime).await?;
    add_note(runtime, &slot.key, Some(id), text, token).await.map(drop)
}

async fn add_note(
    runtime: &Arc<RuntimeShared>,
    key: &str,
    id: Option<SessionId>,
    text: &str,
    token: Option<&str>,
) -> Result<PageEdited> {
    let text = runtime.redactor.redact(text).into_owned();
    let scope = scope_of_session(runtime, key, id).await?;
    let changed = match token {
        Some(token) => longhaul_memory::add_token_note(&*runtime.journal, &scope, &text, token).await?,
        None => longhaul_memory::add_note(&*runtime.journal, &scope, &text, Speaker::User).await?,
    };
    jobs::pages_changed(runtime, &scope, &changed.pages).await;
    Ok(changed)
}

/// Carries out an order to extract what is new, without waiting for it: if the process ends before it, the next idle
/// session check extracts the same records.
pub(crate) async fn extract_now(runtime: &Arc<RuntimeShared>, slot: &Arc<SessionSlot>) -> Result<()> {
    let id = slot.ensure_id(runtime).await?;
    let (inner, slot) = (runtime.clone(), slot.clone());
    let is_started = runtime.spawn(async move {
        if let Err(error) = extract_session(&inner, &slot, id).await {
            inner.warn(&slot.key, "not_remembered", &format!("could not extract what is new: {error}"));
        }
    });
    if is_started { Ok(()) } else { Err(Error::Suspended) }
}

/// The memory scope of a session, even before its first record.
async fn scope_of_session(runtime: &RuntimeShared, key: &str, id: Option<SessionId>) -> Result<String> {
    if let Some(id) = id
        && let Some(scope) = runtime.memory.scopes.of(id).await?
    {
        return Ok(scope);
    }
    let work_dir = &runtime.config.work_dir;
    let work_dir = work_dir.canonicalize().unwrap_or_else(|_| work_dir.clone());
    Ok(runtime.config.memory_scope(key, Some(&work_dir)))
}

/// Extracts a session when no other process does.
async fn extract_when_free(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    id: SessionId,
) -> Result<Extraction> {
    loop {
        match jobs::extract(runtime, slot, id).await {
            Err(Error::Memory(longhaul_memory::Error::Held { .. })) => {
                tokio::time::sleep(HELD_RETRY_INTERVAL).await;
            }
            done => return done,
        }
    }
}
