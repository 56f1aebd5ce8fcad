//! Reads the ledger: from its newest opening to its end, and back through its segments.

use longhaul_journal::{Error, Journal, Result, record_at, records};
use longhaul_protocol::{At, Record, Seq, SessionId, SpendOpened, SpendRecord, StreamName};

use super::amount::Amount;
use super::fold::{LedgerFold, RowKey, RowSum, row_of};
use crate::subagents::admission::read_tree;
use crate::subagents::child::parent_link;

/// Reads the ledger from its newest opening on.
pub(crate) async fn load_fold(journal: &dyn Journal) -> Result<LedgerFold> {
    let stream = StreamName::spend();
    let mut fold = LedgerFold::default();
    if let Some(newest) = newest_opening(journal, &stream).await? {
        fold.apply(&newest);
    }
    catch_up(journal, &mut fold).await?;
    Ok(fold)
}

/// Folds the records that were appended since.
pub(crate) async fn catch_up(journal: &dyn Journal, fold: &mut LedgerFold) -> Result<()> {
    let mut cursor = records(journal, &StreamName::spend(), fold.head + 1);
    loop {
        match cursor.next().await {
            Ok(Some(record)) => fold.apply(&record),
            Ok(None) => break,
            Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    fold.head = fold.head.max(cursor.next_seq().saturating_sub(1));
    Ok(())
}

/// The newest `spend_opened` that can be read. Its keys are numbered, so it is found in a few look-ups.
async fn newest_opening(journal: &dyn Journal, stream: &StreamName) -> Result<Option<Record>> {
    let find = async |number: u64| journal.find(stream, &SpendOpened::key(number)).await;
    let (mut known, mut absent) = (0, 1);
    while find(absent).await?.is_some() {
        (known, absent) = (absent, absent.saturating_mul(2));
    }
    while absent - known > 1 {
        let middle = known.midpoint(absent);
        if find(middle).await?.is_some() { known = middle } else { absent = middle }
    }
    while known > 0 {
        if let Some(seq) = find(known).await?
            && let Some((record, _)) = opening_at(journal, stream, seq).await?
        {
            return Ok(Some(record));
        }
        known -= 1;
    }
    Ok(None)
}

/// The `spend_opened` at a position; `None` if it can't be read.
async fn opening_at(
    journal: &dyn Journal,
    stream: &StreamName,
    seq: Seq,
) -> Result<Option<(Record, SpendOpened)>> {
    let record = match record_at(journal, stream, seq).await {
        Err(Error::Damaged { .. }) => None,
        record => record?,
    };
    Ok(record.and_then(|record| match SpendRecord::decode(&record) {
        Ok(SpendRecord::Opened(opened)) => Some((record, opened)),
        _ => None,
    }))
}

/// The segments of the ledger that are closed, the newest first.
pub(crate) struct SegmentCursor<'a> {
    journal: &'a dyn Journal,
    stream: StreamName,
    next: Option<Seq>,
}

impl<'a> SegmentCursor<'a> {
    pub(crate) fn new(journal: &'a dyn Journal, fold: &LedgerFold) -> Self {
        Self { journal, stream: StreamName::spend(), next: fold.opened.map(|(_, seq)| seq) }
    }

    /// The next segment, by the record that closed it, and when that was. `None` at the beginning of the ledger.
    pub(crate) async fn next(&mut self) -> Result<Option<(At, SpendOpened)>> {
        let Some(seq) = self.next.take() else { return Ok(None) };
        let Some((record, opened)) = opening_at(self.journal, &self.stream, seq).await? else {
            return Ok(None);
        };
        self.next = opened.previous;
        Ok(Some((record.at, opened)))
    }
}

/// The amount that a session has spent so far, with its subagents.
pub(crate) async fn session_total(
    journal: &dyn Journal,
    fold: &LedgerFold,
    session: SessionId,
) -> Result<Amount> {
    let mut total = RowSum::default();
    for member in session_with_subagents(journal, session).await? {
        total.add(&session_sum(journal, fold, member).await?);
    }
    Ok(total.amount())
}

/// What a session has spent so far.
pub(crate) async fn session_sum(
    journal: &dyn Journal,
    fold: &LedgerFold,
    session: SessionId,
) -> Result<RowSum> {
    let mut total = RowSum::default();
    session_rows(journal, fold, session).await?.iter().for_each(|(_, sum)| total.add(sum));
    Ok(total)
}

/// The rows of what a session has spent so far. Reads only the segments since the session began.
pub(crate) async fn session_rows(
    journal: &dyn Journal,
    fold: &LedgerFold,
    session: SessionId,
) -> Result<Vec<(RowKey, RowSum)>> {
    let own = |(key, _): &(RowKey, RowSum)| key.session == Some(session);
    let mut found: Vec<(RowKey, RowSum)> =
        fold.spent().iter().map(|(key, sum)| (key.clone(), *sum)).filter(own).collect();
    let mut segments = SegmentCursor::new(journal, fold);
    while let Some((at, segment)) = segments.next().await? {
        if at < session.made_at() {
            break;
        }
        found.extend(segment.spent.into_iter().map(row_of).filter(own));
    }
    Ok(found)
}

/// A session and all subagents below it.
async fn session_with_subagents(journal: &dyn Journal, session: SessionId) -> Result<Vec<SessionId>> {
    let root = parent_link(journal, session).await?.map_or(session, |parent| parent.root());
    let tree = read_tree(journal, root).await?;
    let mut members = vec![session];
    // A subagent is admitted after its parent.
    for child in tree.children() {
        if members.contains(&child.parent) {
            members.push(child.session);
        }
    }
    Ok(members)
}
