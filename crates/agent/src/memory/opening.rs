//! Y11: what a context begins with.

use std::time::Duration;

use longhaul_context::Room;
use longhaul_memory::Book;

use super::Memory;
use crate::Result;
use crate::runtime::{Inner, lock};
use crate::turn::request::room_for_answer;
use crate::worker::Worker;

/// What memory takes in a context, in tokens before anything is learnt.
const MOST: u64 = 2_500;
/// Cached books. If each user has a memory, there may be one for each session.
const MAX_CACHED_BOOKS: usize = 16;
/// A server that does not say in time how much it has room for is taken to have enough.
const PATIENCE: Duration = Duration::from_secs(2);

impl Memory {
    /// The pages of a scope as they are now.
    pub(super) async fn book(&self, runtime: &Inner, scope: &str) -> Result<Book> {
        let known = lock(&self.books).get(scope).cloned();
        let book = match known {
            Some(mut book) => {
                book.catch_up(&*runtime.journal).await?;
                book
            }
            None => Book::load(&*runtime.journal, scope).await?,
        };
        let mut books = lock(&self.books);
        if books.len() >= MAX_CACHED_BOOKS {
            books.clear();
        }
        books.insert(scope.to_owned(), book.clone());
        Ok(book)
    }
}

impl Worker {
    /// What a new context of this session begins with, if anything was remembered. Memory that can't be read is none: a turn never waits
    /// for it and never fails for it.
    pub(crate) async fn remembered(&self) -> Option<String> {
        let (runtime, memory) = (&self.runtime, &self.runtime.memory);
        let folder = self.equipment.work_dir.as_path();
        let scope = runtime.config.memory_scope(&self.shared.key, folder);
        let book = memory.book(runtime, &scope).await.ok()?;
        if book.pages.is_empty() {
            return None;
        }
        let room = match self.policy.context.room {
            Some(room) => Some(room),
            None => self.room_at_first().await,
        };
        // As the model counts, where that is known: text that it takes for more would find no room.
        let most = room.map_or(MOST, |room| room.at_most(MOST));
        let most = self.state.calibration(&self.policy.context.model).largest_within(most);
        let text = book.for_context(most)?;
        Some(runtime.redactor.redact(&text).into_owned())
    }

    /// What there is room for, before anything was asked.
    async fn room_at_first(&self) -> Option<Room> {
        let model = self.runtime.lineup().0[0].clone();
        let facts = tokio::time::timeout(PATIENCE, model.facts()).await.ok()?;
        let settings = &self.runtime.config.settings.model;
        let window = facts.window.map(|window| window.tokens).or(settings.context_window)?;
        let answer = room_for_answer(settings.max_output_tokens, &facts, Some(window));
        Some(Room { window, answer, fixed: 0 })
    }
}
