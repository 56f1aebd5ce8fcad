//! An opened memory: its pages, listing, search and files.

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_agent::Config;
use longhaul_agent::memory_pages::{MemorySearch, count_waiting_items, scopes_with_pages, search_memory};
use longhaul_journal::Journal;
use longhaul_memory::{Error, MirrorReport, Page, PageSet, mirror_pages};

use super::format::PageListing;
use super::scope;
use crate::nearest::nearest;
use crate::output::note;

/// Jaro-Winkler similarity below which a page is no suggestion.
const MIN_SIMILARITY: f64 = 0.75;

pub(crate) struct MemoryHandle {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) config: Config,
    pub(crate) book: PageSet,
}

impl MemoryHandle {
    pub(crate) async fn new(journal: Arc<dyn Journal>, config: Config, scope: &str) -> anyhow::Result<Self> {
        let book = PageSet::load(&*journal, scope).await?;
        Ok(Self { journal, config, book })
    }

    /// ` --scope NAME` for commands about this memory; empty for that of the work folder.
    pub(crate) fn flag(&self) -> String {
        let scope = &self.book.scope;
        if *scope == scope::scope_of_folder(&self.config) {
            String::new()
        } else {
            format!(" --scope {scope}")
        }
    }

    /// The folder with the pages as files.
    pub(super) fn folder(&self) -> PathBuf {
        self.config.mirror_of(&self.book.scope)
    }

    /// A page by its name. The error suggests the nearest names.
    pub(crate) fn page(&self, name: &str) -> Result<&Page, Error> {
        self.book.pages.get(name).ok_or_else(|| {
            let near = self.nearest(name);
            let nearest = match (near.is_empty(), self.book.pages.is_empty()) {
                (_, true) => "; no pages yet".to_owned(),
                (true, false) => "; `longhaul memory` lists the pages".to_owned(),
                (false, false) => format!("; did you mean {}?", near.join(" or ")),
            };
            Error::NoPage { name: name.to_owned(), nearest }
        })
    }

    /// The names most like this one, at most three.
    pub(super) fn nearest(&self, name: &str) -> Vec<&str> {
        nearest(self.book.pages.keys().map(String::as_str), &name.to_lowercase(), MIN_SIMILARITY)
    }

    pub(crate) async fn listing(&self) -> anyhow::Result<PageListing> {
        let mut others = scopes_with_pages(&*self.journal).await?;
        others.remove(&self.book.scope);
        Ok(PageListing {
            pages: self.book.clone(),
            waiting: count_waiting_items(&*self.journal, &self.book).await?,
            settings: self.config.settings.memory.clone(),
            folder: self.folder(),
            left: self.write_files().await,
            others,
        })
    }

    /// The best hits first, at most `limit`.
    pub(crate) async fn search(&self, query: &str, limit: usize) -> anyhow::Result<MemorySearch> {
        Ok(search_memory(&self.config, &*self.journal, &self.book, query, limit).await?)
    }

    /// Writes the pages to their files. Returns which files were left alone, and why. The journal is what counts, so an error here is only
    /// a message.
    pub(crate) async fn write_files(&self) -> Vec<String> {
        match self.try_write_files().await {
            Ok(mirrored) => mirrored.left,
            Err(error) => vec![format!("could not update the page files: {error}")],
        }
    }

    /// Writes the files and prints what was left alone.
    pub(crate) async fn sync_files(&self) {
        self.write_files().await.iter().for_each(note);
    }

    async fn try_write_files(&self) -> Result<MirrorReport, Error> {
        let mut book = self.book.clone();
        book.catch_up(&*self.journal).await?;
        if book.head == 0 {
            return Ok(MirrorReport::default());
        }
        mirror_pages(&book, &self.folder())
    }
}
