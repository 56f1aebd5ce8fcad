use std::collections::HashMap;
use std::sync::Arc;

use longhaul_journal::{Error, Journal, Page, Result, SearchAnswer, SearchQuery};
use longhaul_protocol::{AttemptId, Block, Record, Seq, SessionId, SessionRecord, StreamName};

/// The most records in memory at once.
const PAGE: Page = Page { records: 64, bytes: 256 << 10 };
/// How many records after a block are searched for the end of its attempt.
const LONGEST_ATTEMPT: u64 = 5_000;

/// The records of one session.
pub(super) struct SessionHistory {
    journal: Arc<dyn Journal>,
    pub(super) stream: StreamName,
    /// The ends of the attempts that were looked up so far.
    attempts: HashMap<AttemptId, AttemptEnd>,
}

/// Several consecutive records, or the position of one that can't be read.
pub(super) enum HistoryPage {
    Records(Vec<Record>),
    Damaged(Seq),
}

#[derive(Clone, Copy)]
enum AttemptEnd {
    /// How many of its blocks are kept, from the first.
    Kept(u32),
    /// The attempt has not ended yet.
    Open,
    Unknown,
}

/// Whether text of a model became part of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockStatus {
    InConversation,
    /// The answer broke off or was requested again.
    Discarded,
    /// The answer has not ended yet.
    Unfinished,
}

impl SessionHistory {
    pub(super) fn new(journal: Arc<dyn Journal>, session: SessionId) -> Self {
        Self { journal, stream: StreamName::session(session), attempts: HashMap::new() }
    }

    pub(super) async fn search(&self, search: &SearchQuery) -> Result<SearchAnswer> {
        self.journal.search(search).await
    }

    /// The last record.
    pub(super) async fn head(&self) -> Result<Seq> {
        Ok(self.journal.head(&self.stream).await?.seq)
    }

    /// Records from a position on.
    pub(super) async fn page(&self, from: Seq) -> Result<HistoryPage> {
        self.some(from, PAGE).await
    }

    /// The record at this position, if it can be read.
    pub(super) async fn one(&self, seq: Seq) -> Result<Option<Record>> {
        match self.some(seq, Page { records: 1, bytes: 0 }).await? {
            HistoryPage::Records(page) => Ok(page.into_iter().next()),
            HistoryPage::Damaged(_) => Ok(None),
        }
    }

    async fn some(&self, from: Seq, page: Page) -> Result<HistoryPage> {
        match self.journal.read(&self.stream, from, page).await {
            Ok(page) => Ok(HistoryPage::Records(page)),
            Err(Error::Damaged { seq, .. }) => Ok(HistoryPage::Damaged(seq.max(from))),
            Err(error) => Err(error),
        }
    }

    /// Whether the content of a record counts. Blocks count only if the end of their attempt keeps them.
    pub(super) async fn status(&mut self, seq: Seq, fact: &SessionRecord) -> Result<BlockStatus> {
        let SessionRecord::Block(Block { attempt, index, .. }) = fact else {
            return Ok(BlockStatus::InConversation);
        };
        let became = match self.attempts.get(attempt) {
            Some(known) => *known,
            None => {
                let found = self.end_of(*attempt, seq + 1).await?;
                self.attempts.insert(*attempt, found);
                found
            }
        };
        Ok(match became {
            AttemptEnd::Kept(kept) if *index >= kept => BlockStatus::Discarded,
            AttemptEnd::Open => BlockStatus::Unfinished,
            AttemptEnd::Kept(_) | AttemptEnd::Unknown => BlockStatus::InConversation,
        })
    }

    async fn end_of(&self, attempt: AttemptId, from: Seq) -> Result<AttemptEnd> {
        let mut next = from;
        while next < from + LONGEST_ATTEMPT {
            let page = match self.page(next).await? {
                HistoryPage::Records(page) => page,
                HistoryPage::Damaged(seq) => {
                    next = seq + 1;
                    continue;
                }
            };
            let Some(last) = page.last() else { return Ok(AttemptEnd::Open) };
            next = last.seq + 1;
            for record in page.iter().filter(|record| record.kind.starts_with("attempt_")) {
                match SessionRecord::decode(record) {
                    Ok(SessionRecord::AttemptEnded(ended)) if ended.attempt == attempt => {
                        return Ok(AttemptEnd::Kept(ended.kept));
                    }
                    // Another attempt began, so this one was abandoned without an end.
                    Ok(SessionRecord::AttemptStarted(_)) => return Ok(AttemptEnd::Kept(0)),
                    _ => {}
                }
            }
        }
        Ok(AttemptEnd::Unknown)
    }
}
