//! Embeddings in the runtime: the model that `memory.embedding_model` names, the job that gives idle sessions their vectors, and the
//! finder for `recall`. A turn never waits for the job; a search waits two seconds for the vector of its question.

use std::sync::{Arc, Weak};

use longhaul_memory::{Embedder, EmbeddingFinder, Finder, embed_session};
use longhaul_protocol::SessionId;

use super::call_cost::MemoryBudget;
use super::jobs::is_relevant;
use crate::Result;
use crate::runtime::RuntimeShared;
use crate::runtime::slot::SessionSlot;

/// Makes the finder for a search in a session. `None` if no embedding model is configured.
pub(crate) type FinderFn = Arc<dyn Fn(SessionId) -> Option<Box<dyn Finder>> + Send + Sync>;

/// Finders of a runtime.
pub(crate) fn finders(runtime: &Weak<RuntimeShared>) -> FinderFn {
    let runtime = runtime.clone();
    Arc::new(move |session| {
        let runtime = runtime.upgrade()?;
        let embedder = embedder(&runtime)?;
        let budget = Arc::new(budget(&runtime, session, &embedder));
        Some(Box::new(EmbeddingFinder { embedder, budget }) as Box<dyn Finder>)
    })
}

/// Gives what was said in an idle session its vectors. Returns true if there was something. A server that fails is a warning, and
/// keeps no other job from running.
pub(crate) async fn embed_if_idle(runtime: &Arc<RuntimeShared>, slot: &Arc<SessionSlot>) -> Result<bool> {
    let Some(id) = slot.id.get().copied() else { return Ok(false) };
    let Some(embedder) = embedder(runtime) else { return Ok(false) };
    if !is_relevant(runtime, id).await? {
        return Ok(false);
    }
    let budget = budget(runtime, id, &embedder);
    match embed_session(&*runtime.journal, id, &embedder, &budget).await {
        Ok(count) => Ok(count > 0),
        Err(error) => {
            let text = format!("embeddings are not available, so recall goes by words alone: {error}");
            runtime.memory.embedding_warnings.warn_once(runtime, &text);
            Ok(false)
        }
    }
}

/// The embedding model of the config. One that can't be opened is reported once.
fn embedder(runtime: &RuntimeShared) -> Option<Arc<Embedder>> {
    let opened = runtime.memory.embedder.get_or_init(|| {
        let text = "memory.embedding_model can't be used, so recall goes by words alone";
        let opened = runtime.embedding_model()?.inspect_err(|error| {
            runtime.warn("", "memory_embeddings", &format!("{text}: {error}"));
        });
        opened.ok().map(|model| Arc::new(Embedder::new(model)))
    });
    opened.clone()
}

fn budget(runtime: &Arc<RuntimeShared>, session: SessionId, embedder: &Embedder) -> MemoryBudget {
    let (model, prices) = (embedder.model().name().to_owned(), embedder.model().prices());
    MemoryBudget { runtime: Arc::downgrade(runtime), session, model, prices }
}

/// Says each thing once.
#[derive(Default)]
pub(crate) struct EmbeddingWarnings(std::sync::Mutex<Option<String>>);

impl EmbeddingWarnings {
    fn warn_once(&self, runtime: &RuntimeShared, text: &str) {
        let mut last = crate::runtime::lock(&self.0);
        if last.as_deref() != Some(text) {
            *last = Some(text.to_owned());
            runtime.warn("", "memory_embeddings", text);
        }
    }
}
