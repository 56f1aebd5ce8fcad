//! Y11: the pages of memory that a context begins with.

use std::time::Duration;

use longhaul_context::ContextBudget;
use longhaul_memory::context_preface;

use crate::turn::fallback::max_answer_tokens;
use crate::turn::request::known_window;
use crate::worker::Worker;

/// The most tokens of memory in a context, estimated.
const MAX_MEMORY_TOKENS: u64 = 2_500;
/// How long to wait for the server to state its context window. After that it is taken to be large enough.
const CAPABILITIES_TIMEOUT: Duration = Duration::from_secs(2);

/// The text of memory that a new context of this session begins with. Memory that can't be read counts as empty: a turn never waits
/// for it and never fails because of it.
pub(crate) async fn memory_for_context(worker: &Worker) -> Option<String> {
    let runtime = worker.runtime();
    // The session may have got another key since it began, and keeps its memory.
    let scope = match runtime.memory.scopes.of(worker.id()).await.ok()? {
        Some(scope) => scope,
        None => runtime.config.memory_scope(worker.key(), worker.toolset().work_dir()),
    };
    let page_set = runtime.memory.page_set(runtime, &scope).await.ok()?;
    if page_set.pages.is_empty() {
        return None;
    }
    let text = context_preface(&page_set, preface_tokens(worker, MAX_MEMORY_TOKENS).await)?;
    Some(runtime.redactor.redact(&text).into_owned())
}

/// C13: how many tokens a text at the beginning of this session's context may have, estimated: `most`, or less in a small
/// window.
pub(crate) async fn preface_tokens(worker: &Worker, most: u64) -> u64 {
    let space = &worker.policy().context;
    let room = match space.room {
        Some(room) => Some(room),
        None => room_before_first_call(worker).await,
    };
    let most = room.map_or(most, |room| room.at_most(most));
    // In the model's own count, if that is known, because its tokens may be smaller than the estimated ones.
    worker.state().calibration(&space.model).largest_within(most)
}

/// The budget of the session's model before the first call.
async fn room_before_first_call(worker: &Worker) -> Option<ContextBudget> {
    let model = worker.model_chain().primary();
    let capabilities = tokio::time::timeout(CAPABILITIES_TIMEOUT, model.capabilities()).await.ok()?;
    let settings = &worker.runtime().config.settings.model;
    let window = known_window(&capabilities, settings)?;
    let answer = max_answer_tokens(settings.max_output_tokens, &capabilities, Some(window));
    Some(ContextBudget { window, answer, fixed: 0 })
}
