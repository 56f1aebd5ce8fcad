//! The jobs of memory: idle extraction, extraction after a turn, and consolidation.

use std::sync::Arc;

use longhaul_memory::{
    BackgroundModel, Consolidation, Extraction, consolidate, failed_through, mirror_pages,
};
use longhaul_model::Model as _;
use longhaul_protocol::{EventKind, Seq, SessionId, StreamName};

use super::call_cost::MemoryBudget;
use crate::Result;
use crate::runtime::slot::SessionSlot;
use crate::runtime::{RuntimeShared, lock};
use crate::subagents::child::parent_link;

/// The most consolidations in a row while enough items wait.
const MAX_CONSOLIDATION_ROUNDS: usize = 10;

/// A model that ignored the form of the answer is asked again only from so many new tokens on: small talk is not worth
/// more calls.
const MIN_TOKENS_AFTER_IGNORED_FORM: u64 = 2_000;

/// Idle extraction: extracts what is new in an idle session, if it is worth a call. Returns true if there was
/// something.
pub(crate) async fn extract_if_idle(runtime: &Arc<RuntimeShared>, slot: &Arc<SessionSlot>) -> Result<bool> {
    let Some(id) = slot.id.get().copied() else { return Ok(false) };
    if runtime.config.settings.memory.extract_at_tokens == 0 || !is_relevant(runtime, id).await? {
        return Ok(false);
    }
    let min_tokens = runtime.config.settings.memory.extract_min_tokens;
    if !has_enough_tokens(runtime, id, min_tokens).await? || is_subagent(runtime, id).await? {
        return Ok(false);
    }
    let extraction = extract(runtime, slot, id).await?;
    Ok(extraction.parts > 0)
}

/// Consolidation: updates the pages of the session's scope if there are enough new extracts. Returns true if pages
/// changed.
pub(crate) async fn consolidate_if_due(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
) -> Result<bool> {
    let Some(id) = slot.id.get().copied() else { return Ok(false) };
    if runtime.config.settings.memory.consolidate_at_items == 0 || !is_relevant(runtime, id).await? {
        return Ok(false);
    }
    let Some(scope) = runtime.memory.scopes.of(id).await? else { return Ok(false) };
    let job = async {
        // One check counts for all sessions of the scope, so that a home with a thousand sessions is not read a
        // thousand times.
        if !has_new_extracts(runtime, id).await? {
            return Ok(false);
        }
        let heads = extract_heads(runtime, &scope).await?;
        let done = consolidate_alone(runtime, slot, id, &scope).await;
        // After a failure only this session tries again, with backoff. If all sessions of the scope did, each try
        // would cost money.
        let is_looked_at = |(session, _): &(SessionId, Seq)| done.is_ok() || *session != id;
        lock(&runtime.memory.consolidated_through).extend(heads.into_iter().filter(is_looked_at));
        done
    };
    runtime.memory.consolidations.run_exclusive(scope.clone(), job).await
}

/// Whether a session has extracts that no consolidation has considered.
async fn has_new_extracts(runtime: &RuntimeShared, id: SessionId) -> Result<bool> {
    let head = runtime.journal.head(&StreamName::extract(id)).await?.seq;
    let known = lock(&runtime.memory.consolidated_through).get(&id).copied();
    Ok(known.unwrap_or(0) < head)
}

/// The heads of the extract streams of a scope's sessions.
async fn extract_heads(runtime: &RuntimeShared, scope: &str) -> Result<Vec<(SessionId, Seq)>> {
    let mut heads = Vec::new();
    for (session, _) in runtime.memory.scopes.sessions(scope).await? {
        heads.push((session, runtime.journal.head(&StreamName::extract(session)).await?.seq));
    }
    Ok(heads)
}

/// Extraction after a turn, if enough tokens are new.
pub(crate) async fn check_after_turn(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    id: SessionId,
) -> Result<()> {
    let at_tokens = runtime.config.settings.memory.extract_at_tokens;
    if at_tokens == 0 {
        return Ok(());
    }
    if has_enough_tokens(runtime, id, at_tokens).await? && !is_subagent(runtime, id).await? {
        extract(runtime, slot, id).await?;
    }
    Ok(())
}

/// Whether a session has at least this many new tokens. If the model ignored the form last time, more are needed, and what it
/// was asked about is not new.
async fn has_enough_tokens(runtime: &RuntimeShared, id: SessionId, min_tokens: u64) -> Result<bool> {
    let memory = &runtime.memory;
    if min_tokens == 0 && failed_through(&*runtime.journal, id).await?.is_none() {
        return Ok(true);
    }
    let mut unread = lock(&memory.unread).remove(&id).unwrap_or_default();
    let tokens = unread.count_tokens(&*runtime.journal, id).await;
    let min_tokens = match unread.is_after_failure() {
        true => min_tokens.max(MIN_TOKENS_AFTER_IGNORED_FORM),
        false => min_tokens,
    };
    // A home may have thousands of sessions that are looked at once and not used here.
    if runtime.activity.was_used_here(id) {
        lock(&memory.unread).insert(id, unread);
    }
    Ok(tokens? >= min_tokens)
}

/// Whether this runtime is responsible for the session: it hosts all sessions, has used this one, or shares its
/// memory.
pub(super) async fn is_relevant(runtime: &RuntimeShared, id: SessionId) -> Result<bool> {
    if runtime.is_hosting() || runtime.activity.was_used_here(id) {
        return Ok(true);
    }
    let Some(scope) = runtime.memory.scopes.of(id).await? else { return Ok(false) };
    let work_dir = &runtime.config.work_dir;
    let work_dir = work_dir.canonicalize().unwrap_or_else(|_| work_dir.clone());
    // The key matters only for per-person memory, and then nothing is shared.
    Ok(scope == runtime.config.memory_scope("", Some(&work_dir)))
}

/// Whether a session is a subagent. Nothing is extracted from it by itself: its parent has its result, and no person talks to it.
async fn is_subagent(runtime: &RuntimeShared, id: SessionId) -> Result<bool> {
    Ok(parent_link(&*runtime.journal, id).await?.is_some())
}

/// Extracts what is new in a session, or joins the running extraction.
pub(super) async fn extract(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    id: SessionId,
) -> Result<Extraction> {
    runtime.memory.extractions.run_shared(id, extract_alone(runtime, slot, id)).await
}

async fn extract_alone(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    id: SessionId,
) -> Result<Extraction> {
    let memory = &runtime.memory;
    let Some(scope) = memory.scopes.of(id).await? else {
        return Ok(Extraction { through: 0, parts: 0, items: 0, refused: vec![] });
    };
    let calling = background_model(runtime, id, &slot.key).await?;
    let mut pending = memory.unrecorded_costs.take_pending(StreamName::extract(id).to_string());
    let extracted =
        longhaul_memory::extract(&runtime.journal, id, &scope, &calling, &mut pending.usages).await;
    let extraction = extracted?;
    // The count starts over.
    lock(&memory.unread).remove(&id);
    if extraction.parts > 0 {
        let through = extraction.through;
        slot.show(&slot.live_event(None, EventKind::ExtractDone { through }));
    }
    warn_refused(runtime, &slot.key, &extraction.refused);
    Ok(extraction)
}

async fn consolidate_alone(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    id: SessionId,
    scope: &str,
) -> Result<bool> {
    let memory = &runtime.memory;
    let at_items = runtime.config.settings.memory.consolidate_at_items;
    let mut pending = memory.unrecorded_costs.take_pending(format!("memory/{scope}"));
    let mut is_different = false;
    for _ in 0..MAX_CONSOLIDATION_ROUNDS {
        let calling = background_model(runtime, id, &slot.key).await?;
        let scope_of = memory.scopes.rule();
        let done =
            consolidate(&runtime.journal, scope, scope_of, at_items, &calling, &mut pending.usages).await?;
        match done {
            Consolidation::NotDue(_) => break,
            Consolidation::Done { pages, refused, .. } => {
                warn_refused(runtime, &slot.key, &refused);
                is_different |= !pages.is_empty();
                pages_changed(runtime, scope, &pages).await;
            }
        }
    }
    Ok(is_different)
}

/// Updates the mirrored files, and sends an event to all sessions of the scope.
pub(crate) async fn pages_changed(runtime: &Arc<RuntimeShared>, scope: &str, pages: &[String]) {
    if pages.is_empty() {
        return;
    }
    match runtime.memory.page_set(runtime, scope).await {
        Ok(page_set) => {
            let folder = runtime.config.mirror_of(scope);
            let mirrored = tokio::task::spawn_blocking(move || mirror_pages(&page_set, &folder)).await;
            let left = match mirrored {
                Ok(Ok(mirrored)) => mirrored.left,
                Ok(Err(error)) => vec![error.to_string()],
                Err(error) => vec![error.to_string()],
            };
            for left in left {
                runtime.warn("", "memory_mirror", &left);
            }
        }
        Err(error) => runtime.warn("", "memory_mirror", &error.to_string()),
    }
    let kind = EventKind::MemoryChanged { pages: pages.to_vec() };
    let mut is_sent = false;
    for slot in runtime.all_sessions() {
        let Some(id) = slot.id.get() else { continue };
        if matches!(runtime.memory.scopes.of(*id).await, Ok(Some(theirs)) if theirs == scope) {
            slot.show(&slot.live_event(None, kind.clone()));
            is_sent = true;
        }
    }
    if !is_sent {
        runtime.tell("", kind);
    }
}

fn warn_refused(runtime: &RuntimeShared, key: &str, refused: &[String]) {
    for reason in refused {
        runtime.warn(key, "memory_refused", reason);
    }
}

/// The model for background calls of a session, within the limits on spending.
async fn background_model(
    runtime: &Arc<RuntimeShared>,
    session: SessionId,
    key: &str,
) -> Result<BackgroundModel> {
    let model = runtime.memory_model(key);
    let capabilities = model.capabilities().await;
    let (name, prices) = (model.name().to_owned(), capabilities.prices);
    let budget = MemoryBudget { runtime: Arc::downgrade(runtime), session, model: name, prices };
    let settings = &runtime.config.settings;
    Ok(BackgroundModel {
        retry: runtime.config.retry_mode.policy(&settings.retry),
        window: capabilities.window.map(|window| window.tokens).or(settings.model.context_window),
        max_output: settings.model.max_output_tokens,
        budget: Arc::new(budget),
        redact: runtime.redact(),
        capabilities,
        model,
    })
}
