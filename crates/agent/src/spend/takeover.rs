//! Takes the usage from before the ledger over into it, once: one append, with all of it.

use std::collections::{BTreeMap, HashMap, HashSet};

use longhaul_journal::{Append, Error, Journal, Result, all_sessions, import_mark, record_at};
use longhaul_protocol::{
    At, AttemptId, AttemptStarted, Cause, Record, Seq, SessionId, SpendRecord, SpendReserved, StreamName,
    Usage,
};

use super::amount::{day_of, nano};
use super::fold::{LedgerFold, RowKey, RowSum};
use super::reader::catch_up;
use super::recovery::usages_of;
use crate::clock::now;

/// A call that was recorded so long before the ledger's first record is certainly not in the ledger.
const LEDGER_DELAY_MS: i64 = 10 * 60 * 1_000;

/// Takes the usage from before the ledger over, unless a process has done so.
pub(crate) async fn take_over_history(journal: &dyn Journal, fold: &mut LedgerFold) -> Result<()> {
    while !fold.taken_over {
        let history = HistoryReader::new(journal).await?.read_all().await?;
        let opened = fold.opening(now(), Some(&history));
        let key = longhaul_protocol::SpendOpened::key(opened.number);
        let record = SpendRecord::Opened(opened).encode().with_key(&key);
        let append = Append::to(&StreamName::spend()).expecting(fold.head).record(record);
        match journal.append(append).await {
            Ok(records) => records.iter().for_each(|record| fold.apply(record)),
            Err(Error::Conflict { .. } | Error::Duplicate { .. }) => catch_up(journal, fold).await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

struct HistoryReader<'a> {
    journal: &'a dyn Journal,
    /// Calls before this are not in the ledger.
    before_ledger: At,
    /// Calls that were counted. A fork has copies of its parent's records.
    seen: HashSet<AttemptId>,
    rows: BTreeMap<RowKey, RowSum>,
}

impl<'a> HistoryReader<'a> {
    async fn new(journal: &'a dyn Journal) -> Result<Self> {
        let first = match record_at(journal, &StreamName::spend(), 1).await {
            Err(Error::Damaged { .. }) => None,
            first => first?,
        };
        let before_ledger =
            first.map_or(At(i64::MAX), |first| At(first.at.0.saturating_sub(LEDGER_DELAY_MS)));
        Ok(Self { journal, before_ledger, seen: HashSet::new(), rows: BTreeMap::new() })
    }

    async fn read_all(mut self) -> Result<BTreeMap<RowKey, RowSum>> {
        let mut sessions = Vec::new();
        let mut cursor = all_sessions(self.journal);
        while let Some(entry) = cursor.next().await? {
            sessions.push(entry.id);
        }
        // A fork is younger than its parent, so the parent's calls are counted where they were paid.
        sessions.sort_unstable();
        for session in sessions {
            self.read_session(session).await?;
        }
        let streams = self.journal.streams().await?;
        for stream in streams.into_iter().filter(|stream| stream.as_str().starts_with("memory/")) {
            self.read_kind(&stream, "pages_changed", 0, None, &HashMap::new()).await?;
        }
        Ok(self.rows)
    }

    async fn read_session(&mut self, session: SessionId) -> Result<()> {
        // What was imported was paid for elsewhere.
        let mark = import_mark(self.journal, session).await?;
        let stream = StreamName::session(session);
        let attempts = self.journal.records_of_kind(&stream, "attempt_started").await?;
        let models = attempts.iter().filter_map(|record| record.decode::<AttemptStarted>().ok());
        let models = models.map(|started| (started.attempt, started.model)).collect();
        self.read_kind(&stream, "usage", mark.seq, Some(session), &models).await?;
        let extracts = StreamName::extract(session);
        let foreign = mark.foreign_extracts_through;
        self.read_kind(&extracts, "extracted", foreign, Some(session), &HashMap::new()).await
    }

    /// Adds the calls in the records of one kind that follow a position.
    async fn read_kind(
        &mut self,
        stream: &StreamName,
        kind: &str,
        after: Seq,
        session: Option<SessionId>,
        models: &HashMap<AttemptId, String>,
    ) -> Result<()> {
        for record in self.journal.records_of_kind(stream, kind).await? {
            if record.seq <= after {
                continue;
            }
            for usage in usages_of(&record) {
                if self.seen.insert(usage.attempt) && !self.is_in_ledger(&record, &usage).await? {
                    let model = models.get(&usage.attempt).cloned().unwrap_or_default();
                    self.add(&record, &usage, session, model);
                }
            }
        }
        Ok(())
    }

    async fn is_in_ledger(&self, record: &Record, usage: &Usage) -> Result<bool> {
        if record.at < self.before_ledger {
            return Ok(false);
        }
        let key = SpendReserved::key(usage.attempt);
        Ok(self.journal.find(&StreamName::spend(), &key).await?.is_some())
    }

    fn add(&mut self, record: &Record, usage: &Usage, session: Option<SessionId>, model: String) {
        if usage.input.is_none() && usage.output.is_none() {
            return;
        }
        let cause = usage.cause.unwrap_or(match usage.purpose.as_deref() {
            Some("summary") => Cause::Compaction,
            Some("extract" | "consolidate") => Cause::Memory,
            _ => Cause::Turn,
        });
        let sum = RowSum {
            calls: 1,
            input: usage.input.unwrap_or(0),
            output: usage.output.unwrap_or(0),
            cached: usage.cached.unwrap_or(0),
            nano: usage.cost.map_or(0, nano),
            unpriced: u64::from(usage.cost.is_none()),
            at_upper_bound: 0,
        };
        let key = RowKey { day: day_of(record.at), session, cause, model };
        self.rows.entry(key).or_default().add(&sum);
    }
}
