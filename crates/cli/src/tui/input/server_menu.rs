//! The resources and prompts of MCP servers, for completion after `@` and `/`. Keys never wait for a server.

use std::sync::{Arc, Mutex, PoisonError};

use longhaul_agent::SessionServers;
use longhaul_agent::mcp::{ContentList, PromptEntry, ResourceEntry};
use tokio::runtime::Handle;

use super::chips::is_mark;

type ListContent = dyn Fn() -> ContentList + Send + Sync;

/// What the servers of the open session have. Empty until [`ServerMenu::show`] says which servers these are.
#[derive(Clone, Default)]
pub(crate) struct ServerMenu(Arc<Mutex<Option<Arc<ListContent>>>>);

impl ServerMenu {
    /// Shows what these servers have, from now on, and asks those that run.
    pub(crate) fn show(&self, servers: SessionServers) {
        // Keys are handled on a thread of their own.
        let tokio = Handle::current();
        self.show_list(move || {
            let _context = tokio.enter();
            servers.content_list()
        });
        drop(self.list());
    }

    fn show_list(&self, list: impl Fn() -> ContentList + Send + Sync + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(list));
    }

    /// What can be typed of the list that is known now.
    pub(super) fn list(&self) -> ContentList {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut content = list.map(|list| list()).unwrap_or_default();
        content.resources.retain(|entry| is_typable(&entry.uri));
        content.prompts.retain(|entry| is_typable(&entry.name));
        content.resources.iter_mut().for_each(|ResourceEntry { title, .. }| *title = one_line(title));
        content
            .prompts
            .iter_mut()
            .for_each(|PromptEntry { description, .. }| *description = one_line(description));
        content
    }

    #[cfg(test)]
    pub(super) fn of(content: ContentList) -> Self {
        let menu = Self::default();
        menu.show_list(move || content.clone());
        menu
    }
}

/// Whether a word of a server's can stand in a line.
fn is_typable(word: &str) -> bool {
    let is_strange = |letter: char| {
        letter.is_whitespace() || letter.is_control() || matches!(letter, '"' | '@') || is_mark(letter)
    };
    !word.is_empty() && !word.contains(is_strange)
}

/// A server's text may have line breaks and escape sequences.
fn one_line(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).collect()
}
