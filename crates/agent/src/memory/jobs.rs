//! The two phases, as the runtime has them done.

use std::sync::Arc;

use longhaul_memory::{Calling, Consolidation, Extraction, consolidate, mirror};
use longhaul_model::Model as _;
use longhaul_protocol::{EventKind, Seq, SessionId, StreamName};

use super::cost::Thrifty;
use crate::runtime::slot::Shared;
use crate::runtime::{Inner, lock};
use crate::{Error, Result};

/// So often in a row pages are put in order, if that many items wait.
const MOST_ROUNDS: usize = 10;

/// The job of the idle worker: goes through what is new in an idle session. Whether there was anything.
pub(crate) async fn extract_if_idle(runtime: &Arc<Inner>, shared: &Arc<Shared>) -> Result<bool> {
    let Some(id) = shared.id.get().copied() else { return Ok(false) };
    if runtime.config.settings.memory.extract_at_tokens == 0 || !concerns(runtime, id).await? {
        return Ok(false);
    }
    let extraction = extract(runtime, shared, id).await?;
    Ok(extraction.parts > 0)
}

/// The job after that: puts the pages of its scope in order, if enough is new. Whether they are different now.
pub(crate) async fn consolidate_if_due(runtime: &Arc<Inner>, shared: &Arc<Shared>) -> Result<bool> {
    let Some(id) = shared.id.get().copied() else { return Ok(false) };
    if runtime.config.settings.memory.consolidate_at_items == 0 || !concerns(runtime, id).await? {
        return Ok(false);
    }
    let Some(scope) = runtime.memory.scopes.of(id).await? else { return Ok(false) };
    let job = async {
        // One look is for all sessions of the scope: a home with a thousand of them is not read a thousand times.
        if !has_new_extracts(runtime, id).await? {
            return Ok(false);
        }
        let heads = extracts_of(runtime, &scope).await?;
        let done = consolidate_alone(runtime, shared, &scope).await;
        // Where it failed, this session comes back to it, later each time; if all of the scope did, each of them would be paid for.
        let is_looked_at = |(session, _): &(SessionId, Seq)| done.is_ok() || *session != id;
        lock(&runtime.memory.looked_at).extend(heads.into_iter().filter(is_looked_at));
        done
    };
    runtime.memory.consolidations.alone(scope.clone(), job).await
}

/// Whether a session has extracts that were not there when it was last looked.
async fn has_new_extracts(runtime: &Inner, id: SessionId) -> Result<bool> {
    let head = runtime.journal.head(&StreamName::extract(id)).await?.seq;
    let known = lock(&runtime.memory.looked_at).get(&id).copied();
    Ok(known.unwrap_or(0) < head)
}

/// Up to where there are extracts of the sessions of a scope.
async fn extracts_of(runtime: &Inner, scope: &str) -> Result<Vec<(SessionId, Seq)>> {
    let mut heads = Vec::new();
    for (session, _) in runtime.memory.scopes.sessions(scope).await? {
        heads.push((session, runtime.journal.head(&StreamName::extract(session)).await?.seq));
    }
    Ok(heads)
}

/// After a turn: goes through what is new in its session, if that is enough by now.
pub(crate) async fn check_after_turn(
    runtime: &Arc<Inner>,
    shared: &Arc<Shared>,
    id: SessionId,
) -> Result<()> {
    let at_tokens = runtime.config.settings.memory.extract_at_tokens;
    if at_tokens == 0 {
        return Ok(());
    }
    let mut unread = lock(&runtime.memory.unread).remove(&id).unwrap_or_default();
    let looked = unread.look(&*runtime.journal, id).await;
    lock(&runtime.memory.unread).insert(id, unread);
    if looked? >= at_tokens {
        extract(runtime, shared, id).await?;
    }
    Ok(())
}

/// Whether a session is the business of this runtime: it looks after all of them, has had to do with it, or shares its memory.
async fn concerns(runtime: &Inner, id: SessionId) -> Result<bool> {
    if runtime.is_hosting() || runtime.activity.was_used_here(id) {
        return Ok(true);
    }
    let Some(scope) = runtime.memory.scopes.of(id).await? else { return Ok(false) };
    let work_dir = &runtime.config.work_dir;
    let work_dir = work_dir.canonicalize().unwrap_or_else(|_| work_dir.clone());
    // The key counts only where memory is a person's, and then nothing is shared.
    Ok(scope == runtime.config.memory_scope("", &work_dir))
}

/// Goes through what is new in a session, or waits for who is at it.
pub(super) async fn extract(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: SessionId) -> Result<Extraction> {
    runtime.memory.extractions.join(id, extract_alone(runtime, shared, id)).await
}

async fn extract_alone(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: SessionId) -> Result<Extraction> {
    let memory = &runtime.memory;
    let Some(scope) = memory.scopes.of(id).await? else {
        return Ok(Extraction { through: 0, parts: 0, items: 0, refused: vec![] });
    };
    let calling = calling(runtime).await?;
    let mut bill = memory.unpaid.bill(StreamName::extract(id).to_string());
    let extraction =
        longhaul_memory::extract(&runtime.journal, id, &scope, &calling, &mut bill.usages).await?;
    // From here on it can be counted again at no cost.
    lock(&memory.unread).remove(&id);
    if extraction.parts > 0 {
        let through = extraction.through;
        shared.show(&shared.live(None, EventKind::ExtractDone { through }));
    }
    say_refused(runtime, &shared.key, &extraction.refused);
    Ok(extraction)
}

async fn consolidate_alone(runtime: &Arc<Inner>, shared: &Arc<Shared>, scope: &str) -> Result<bool> {
    let memory = &runtime.memory;
    let at_items = runtime.config.settings.memory.consolidate_at_items;
    let mut bill = memory.unpaid.bill(format!("memory/{scope}"));
    let mut is_different = false;
    for _ in 0..MOST_ROUNDS {
        let calling = calling(runtime).await?;
        let scope_of = memory.scopes.rule();
        let done =
            consolidate(&runtime.journal, scope, scope_of, at_items, &calling, &mut bill.usages).await?;
        match done {
            Consolidation::NotDue(_) => break,
            Consolidation::Done { pages, refused, .. } => {
                say_refused(runtime, &shared.key, &refused);
                is_different |= !pages.is_empty();
                pages_changed(runtime, scope, &pages).await;
            }
        }
    }
    Ok(is_different)
}

/// Brings the files up to date, and tells everybody whose memory it is.
pub(crate) async fn pages_changed(runtime: &Arc<Inner>, scope: &str, pages: &[String]) {
    if pages.is_empty() {
        return;
    }
    match runtime.memory.book(runtime, scope).await {
        Ok(book) => {
            let folder = runtime.config.mirror_of(scope);
            let mirrored = tokio::task::spawn_blocking(move || mirror(&book, &folder)).await;
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
    let mut is_told = false;
    for shared in runtime.all_sessions() {
        let Some(id) = shared.id.get() else { continue };
        if matches!(runtime.memory.scopes.of(*id).await, Ok(Some(theirs)) if theirs == scope) {
            shared.show(&shared.live(None, kind.clone()));
            is_told = true;
        }
    }
    if !is_told {
        runtime.tell("", kind);
    }
}

fn say_refused(runtime: &Inner, key: &str, refused: &[String]) {
    for reason in refused {
        runtime.warn(key, "memory_refused", reason);
    }
}

/// Who is asked, if there is money for it.
async fn calling(runtime: &Arc<Inner>) -> Result<Calling> {
    if runtime.is_out_of_money().await? {
        return Err(Error::OutOfMoney);
    }
    let model = Arc::new(Thrifty { model: runtime.lineup().0[0].clone(), runtime: Arc::downgrade(runtime) });
    let facts = model.facts().await;
    let settings = &runtime.config.settings;
    Ok(Calling {
        retry: runtime.config.patience.retry(&settings.retry),
        window: facts.window.map(|window| window.tokens).or(settings.model.context_window),
        max_output: settings.model.max_output_tokens,
        redact: runtime.redact(),
        facts,
        model,
    })
}
