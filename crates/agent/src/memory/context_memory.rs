//! Y11: what a context begins with.

use std::time::Duration;

use longhaul_context::ContextBudget;
use longhaul_memory::PageSet;

use super::Memory;
use crate::Result;
use crate::runtime::{Inner, lock};
use crate::turn::fallback::max_answer_tokens;
use crate::turn::request::known_window;
use crate::worker::Worker;

/// The maximum size of memory in a context, in estimated tokens.
const MAX_MEMORY_TOKENS: u64 = 2_500;
/// So many books are kept in memory. Where memory is a person's, there may be one for each session.
const MOST_BOOKS: usize = 16;
/// How long to wait for the server to state its context window. After that it is taken to be large enough.
const FACTS_TIMEOUT: Duration = Duration::from_secs(2);

impl Memory {
    /// The pages of a scope as they are now.
    pub(super) async fn book(&self, runtime: &Inner, scope: &str) -> Result<PageSet> {
        let known = lock(&self.books).get(scope).cloned();
        let book = match known {
            Some(mut book) => {
                book.catch_up(&*runtime.journal).await?;
                book
            }
            None => PageSet::load(&*runtime.journal, scope).await?,
        };
        let mut books = lock(&self.books);
        if books.len() >= MOST_BOOKS {
            books.clear();
        }
        books.insert(scope.to_owned(), book.clone());
        Ok(book)
    }
}

/// The text of memory that a new context of this session begins with. Memory that can't be read counts as empty: a turn never waits
/// for it and never fails because of it.
pub(crate) async fn memory_for_context(worker: &Worker) -> Option<String> {
    let runtime = worker.runtime();
    let scope = runtime.config.memory_scope(worker.key(), worker.toolset().work_dir());
    let book = runtime.memory.book(runtime, &scope).await.ok()?;
    if book.pages.is_empty() {
        return None;
    }
    let space = &worker.policy().context;
    let room = match space.room {
        Some(room) => Some(room),
        None => room_before_first_call(runtime).await,
    };
    let most = room.map_or(MAX_MEMORY_TOKENS, |room| room.at_most(MAX_MEMORY_TOKENS));
    // In the model's own count, if that is known: its tokens may be smaller than the estimate's.
    let most = worker.state().calibration(&space.model).largest_within(most);
    let text = book.context_preface(most)?;
    Some(runtime.redactor.redact(&text).into_owned())
}

/// The room of the configured model, before any model was called.
async fn room_before_first_call(runtime: &Inner) -> Option<ContextBudget> {
    let facts =
        tokio::time::timeout(FACTS_TIMEOUT, runtime.model_chain().primary().capabilities()).await.ok()?;
    let settings = &runtime.config.settings.model;
    let window = known_window(&facts, settings)?;
    let answer = max_answer_tokens(settings.max_output_tokens, &facts, Some(window));
    Some(ContextBudget { window, answer, fixed: 0 })
}
