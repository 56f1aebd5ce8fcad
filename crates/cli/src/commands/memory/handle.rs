//! A memory, and what can be known of it.

use std::path::PathBuf;
use std::sync::Arc;

use longhaul_agent::Config;
use longhaul_journal::{Journal, Page as Records};
use longhaul_memory::{Book, Error, Found, Mirrored, Page, Places, Words, mirror, recall};
use longhaul_protocol::{ExtractRecord, SessionId};

use super::format::{MemoryHit, PageListing};
use super::scope;
use super::scope::scope_of_session;
use crate::output::note;

/// Names that are less alike than this were hardly meant.
const MIN_SIMILARITY: f64 = 0.75;

/// A memory.
pub(crate) struct MemoryHandle {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) config: Config,
    pub(crate) book: Book,
}

impl MemoryHandle {
    pub(crate) async fn new(journal: Arc<dyn Journal>, config: Config, scope: &str) -> anyhow::Result<Self> {
        let book = Book::load(&*journal, scope).await?;
        Ok(Self { journal, config, book })
    }

    /// What names this memory on the command line, where it is not that of the folder.
    pub(crate) fn flag(&self) -> String {
        let scope = &self.book.scope;
        if *scope == scope::scope_of_folder(&self.config) {
            String::new()
        } else {
            format!(" --scope {scope}")
        }
    }

    /// Where the pages are as files.
    pub(super) fn folder(&self) -> PathBuf {
        self.config.mirror_of(&self.book.scope)
    }

    /// A page by its name; else an error with the names that may have been meant.
    pub(crate) fn page(&self, name: &str) -> Result<&Page, Error> {
        self.book.pages.get(name).ok_or_else(|| {
            let near = self.nearest(name);
            let nearest = match (near.is_empty(), self.book.pages.is_empty()) {
                (_, true) => "; there are no pages yet".to_owned(),
                (true, false) => "; longhaul memory lists those that there are".to_owned(),
                (false, false) => format!("; did you mean {}?", near.join(" or ")),
            };
            Error::NoPage { name: name.to_owned(), nearest }
        })
    }

    /// The pages that somebody may have meant, the nearest first; at most three.
    pub(super) fn nearest(&self, name: &str) -> Vec<&str> {
        let name = name.to_lowercase();
        let mut near: Vec<(f64, &str)> = self
            .book
            .pages
            .keys()
            .map(|known| (strsim::jaro_winkler(known, &name), known.as_str()))
            .filter(|(likeness, _)| *likeness > MIN_SIMILARITY)
            .collect();
        near.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        near.into_iter().take(3).map(|(_, known)| known).collect()
    }

    /// What `longhaul memory` shows.
    pub(crate) async fn listing(&self) -> anyhow::Result<PageListing> {
        let mut others = scope::with_pages(&*self.journal).await?;
        others.remove(&self.book.scope);
        Ok(PageListing {
            scope: self.book.scope.clone(),
            pages: self.book.pages.clone(),
            waiting: self.waiting().await?,
            settings: self.config.settings.memory.clone(),
            folder: self.folder(),
            left: self.files_left().await,
            others,
        })
    }

    /// How many extracted items no page was made from yet.
    async fn waiting(&self) -> anyhow::Result<u64> {
        let mut items = 0;
        for stream in self.journal.streams().await?.iter().filter(|stream| scope::is_extract(stream)) {
            let read = stream.session_id().and_then(|session| self.book.read.get(&session));
            let mut next = read.copied().unwrap_or(0) + 1;
            loop {
                let page = self.journal.read(stream, next, Records::default()).await?;
                let Some(last) = page.last() else { break };
                next = last.seq + 1;
                for record in &page {
                    if let Ok(ExtractRecord::Extracted(extracted)) = ExtractRecord::decode(record)
                        && extracted.scope == self.book.scope
                    {
                        items += extracted.items.len() as u64;
                    }
                }
            }
        }
        Ok(items)
    }

    /// What fits a query, the best first, each with the key of its session.
    pub(crate) async fn search(&self, query: &str, most: usize) -> anyhow::Result<Vec<MemoryHit>> {
        let sessions = self.sessions().await?;
        let places = Places { book: self.book.clone(), sessions, present: None };
        let found = recall(&[&Words], &*self.journal, &places, query, most).await?;
        let key_of = |session: SessionId| {
            places.sessions.iter().find(|(id, _)| *id == session).map(|(_, key)| key.clone())
        };
        let hit = |found: Found| {
            let key = shown_session(&found).and_then(key_of);
            MemoryHit { found, key }
        };
        Ok(found.into_iter().map(hit).collect())
    }

    /// The sessions that have this memory. What was put into the trash is not looked through.
    async fn sessions(&self) -> anyhow::Result<Vec<(SessionId, String)>> {
        let mut sessions = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let page = self.journal.sessions(after.as_deref(), 500).await?;
            let Some(last) = page.last() else { return Ok(sessions) };
            after = Some(last.key.clone());
            for entry in page.into_iter().filter(|entry| !entry.trashed) {
                let scope =
                    scope_of_session(&self.config, &*self.journal, &entry.key, Some(entry.id)).await?;
                if scope == self.book.scope {
                    sessions.push((entry.id, entry.key));
                }
            }
        }
    }

    /// Brings the files up to date with what was just changed; which were left as they are, and why. The pages are what counts, so
    /// none of this is a failure.
    pub(crate) async fn files_left(&self) -> Vec<String> {
        match self.files_up_to_date().await {
            Ok(mirrored) => mirrored.left,
            Err(error) => vec![format!("the files of the pages are not up to date: {error}")],
        }
    }

    /// The same, and says so.
    pub(crate) async fn bring_files_up_to_date(&self) {
        self.files_left().await.iter().for_each(note);
    }

    async fn files_up_to_date(&self) -> Result<Mirrored, Error> {
        let mut book = self.book.clone();
        book.catch_up(&*self.journal).await?;
        if book.head == 0 {
            return Ok(Mirrored::default());
        }
        mirror(&book, &self.folder())
    }
}

fn shown_session(found: &Found) -> Option<SessionId> {
    match found.place {
        longhaul_memory::Place::Page(_) => None,
        longhaul_memory::Place::Item { session, .. } | longhaul_memory::Place::Record { session, .. } => {
            Some(session)
        }
    }
}
