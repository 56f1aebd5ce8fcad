use std::collections::HashMap;
use std::sync::Arc;

use longhaul_journal::{Error, Journal, Page, Result, SearchHit, SearchQuery};
use longhaul_protocol::{AttemptId, Block, Record, Seq, SessionId, SessionRecord, StreamName};

/// So many records are in memory at once, if they are small.
const PAGE: Page = Page { records: 64, bytes: 256 << 10 };
/// The end of an attempt is looked for in so many records after one of its blocks.
const LONGEST_ATTEMPT: u64 = 5_000;

/// The records of one session.
pub(super) struct Past {
    journal: Arc<dyn Journal>,
    pub(super) stream: StreamName,
    /// What became of the attempts that were asked about.
    attempts: HashMap<AttemptId, Attempt>,
}

/// Some records in a row, or the place of one that can't be read.
pub(super) enum Pages {
    Records(Vec<Record>),
    Damaged(Seq),
}

#[derive(Clone, Copy)]
enum Attempt {
    /// The first so many of its blocks count.
    Kept(u32),
    /// It is not over yet.
    Open,
    /// Nobody can tell.
    Unknown,
}

/// Whether something that a model wrote became part of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Said,
    /// The answer broke off or was asked for again.
    Discarded,
    /// The answer is not over yet.
    Unfinished,
}

impl Past {
    pub(super) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        Self { journal, stream: StreamName::session(session), attempts: HashMap::new() }
    }

    pub(super) async fn search(&self, search: &SearchQuery) -> Result<Vec<SearchHit>> {
        self.journal.search(search).await
    }

    /// The last record.
    pub(super) async fn head(&self) -> Result<Seq> {
        Ok(self.journal.head(&self.stream).await?.seq)
    }

    /// Records from a place on.
    pub(super) async fn page(&self, from: Seq) -> Result<Pages> {
        self.some(from, PAGE).await
    }

    /// The record at this place, if it can be read.
    pub(super) async fn one(&self, seq: Seq) -> Result<Option<Record>> {
        match self.some(seq, Page { records: 1, bytes: 0 }).await? {
            Pages::Records(page) => Ok(page.into_iter().next()),
            Pages::Damaged(_) => Ok(None),
        }
    }

    async fn some(&self, from: Seq, page: Page) -> Result<Pages> {
        match self.journal.read(&self.stream, from, page).await {
            Ok(page) => Ok(Pages::Records(page)),
            Err(Error::Damaged { seq, .. }) => Ok(Pages::Damaged(seq.max(from))),
            Err(error) => Err(error),
        }
    }

    /// Whether what a record holds was said: blocks count only through the end of their attempt.
    pub(super) async fn standing(&mut self, seq: Seq, fact: &SessionRecord) -> Result<Standing> {
        let SessionRecord::Block(Block { attempt, index, .. }) = fact else { return Ok(Standing::Said) };
        let became = match self.attempts.get(attempt) {
            Some(known) => *known,
            None => {
                let found = self.end_of(*attempt, seq + 1).await?;
                self.attempts.insert(*attempt, found);
                found
            }
        };
        Ok(match became {
            Attempt::Kept(kept) if *index >= kept => Standing::Discarded,
            Attempt::Open => Standing::Unfinished,
            Attempt::Kept(_) | Attempt::Unknown => Standing::Said,
        })
    }

    async fn end_of(&self, attempt: AttemptId, from: Seq) -> Result<Attempt> {
        let mut next = from;
        while next < from + LONGEST_ATTEMPT {
            let page = match self.page(next).await? {
                Pages::Records(page) => page,
                Pages::Damaged(seq) => {
                    next = seq + 1;
                    continue;
                }
            };
            let Some(last) = page.last() else { return Ok(Attempt::Open) };
            next = last.seq + 1;
            for record in page.iter().filter(|record| record.kind.starts_with("attempt_")) {
                match SessionRecord::decode(record) {
                    Ok(SessionRecord::AttemptEnded(ended)) if ended.attempt == attempt => {
                        return Ok(Attempt::Kept(ended.kept));
                    }
                    // It was given up without a word.
                    Ok(SessionRecord::AttemptStarted(_)) => return Ok(Attempt::Kept(0)),
                    _ => {}
                }
            }
        }
        Ok(Attempt::Unknown)
    }
}
