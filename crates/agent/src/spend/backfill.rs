//! Calls that sessions have recorded and that the ledger does not know, for one of two reasons:
//!
//! - They were made before there was a ledger. They are backfilled once: one append, with all of them.
//! - No limit was set, and the process died before the reservation was on disk. Each is reserved and settled by what the
//!   session recorded, under the keys of its attempt. So it is counted once, also if the process lives and is only slow.

use std::collections::{BTreeMap, HashMap, HashSet};

use longhaul_journal::{Append, Error, Journal, Result, all_sessions, import_mark, record_at};
use longhaul_protocol::{
    At, AttemptId, AttemptStarted, Cause, NewRecord, Record, Seq, SessionId, SpendOpened, SpendRecord,
    SpendReserved, StreamName, Usage,
};

use super::amount::{day_of, nano};
use super::fold::{LedgerFold, RowKey, RowSum};
use super::reader::catch_up;
use super::recovery::{this_process, usages_of};
use super::settlement::settle_by_usage;
use super::writer::{reserved_record, settled_record};
use crate::clock::now;

/// The reservation of a call that is younger than this may not be on disk yet, although its process lives.
const LEDGER_DELAY_MS: i64 = 60 * 60 * 1_000;

/// Adds the calls that only the sessions know. Reads the sessions that have changed since the last check.
pub(crate) async fn complete_ledger(journal: &dyn Journal, fold: &mut LedgerFold) -> Result<()> {
    backfill_history(journal, fold).await?;
    settle_unreserved_calls(journal, fold).await
}

/// Adds the usage from before the ledger, unless a process has done so.
async fn backfill_history(journal: &dyn Journal, fold: &mut LedgerFold) -> Result<()> {
    if fold.is_backfilled {
        return Ok(());
    }
    let first = match record_at(journal, &StreamName::spend(), 1).await {
        Err(Error::Damaged { .. }) => None,
        first => first?,
    };
    // The calls after this are settled one by one: a process may be about to write their reservations.
    let before = At(first.map_or_else(now, |first| first.at).0.saturating_sub(LEDGER_DELAY_MS));
    let mut reader = CallReader::new(journal);
    reader.read_sessions(At(i64::MIN), before).await?;
    reader.read_memory().await?;
    let history = rows_of(reader.calls);
    while !fold.is_backfilled {
        fold.checked = Some(before);
        let opened = fold.opening(now(), Some(&history));
        let key = SpendOpened::key(opened.number);
        let record = SpendRecord::Opened(opened).encode().with_key(&key);
        let append = Append::to(&StreamName::spend()).expecting(fold.head).record(record);
        match journal.append(append).await {
            Ok(records) => records.iter().for_each(|record| fold.apply(record)),
            Err(Error::Conflict { .. } | Error::Duplicate { .. }) => {
                // A process that has added it meanwhile has read up to a moment of its own.
                fold.checked = None;
                catch_up(journal, fold).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reserves and settles the calls that sessions have recorded since the last check, and that are not in the ledger.
async fn settle_unreserved_calls(journal: &dyn Journal, fold: &mut LedgerFold) -> Result<()> {
    let from = fold.checked.unwrap_or(At(i64::MIN));
    let through = At(now().0.saturating_sub(LEDGER_DELAY_MS));
    loop {
        let mut reader = CallReader::new(journal);
        reader.read_sessions(from, At(i64::MAX)).await?;
        if reader.calls.is_empty() {
            break;
        }
        let records = reader.calls.iter().flat_map(unreserved_records);
        let append = records.fold(Append::to(&StreamName::spend()), Append::record);
        match journal.append(append).await {
            Ok(_) => {
                catch_up(journal, fold).await?;
                break;
            }
            // The process that made one of the calls has written it meanwhile.
            Err(Error::Duplicate { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    fold.checked = Some(from.max(through));
    Ok(())
}

/// The records of a call that the ledger does not know.
fn unreserved_records(call: &RecordedCall) -> Vec<NewRecord> {
    let RecordedCall { session: Some(session), usage, model, .. } = call else { return vec![] };
    let reserved = SpendReserved {
        attempt: usage.attempt,
        session: *session,
        cause: cause_of(usage),
        model: model.clone(),
        limits: vec![],
        past_soft: vec![],
        tokens: usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0)),
        cost: usage.cost,
        made_at: Some(call.at),
        holder: this_process(String::new()),
    };
    vec![reserved_record(&reserved), settled_record(&settle_by_usage(usage))]
}

fn rows_of(calls: Vec<RecordedCall>) -> BTreeMap<RowKey, RowSum> {
    let mut rows: BTreeMap<RowKey, RowSum> = BTreeMap::new();
    for RecordedCall { at, session, model, usage } in calls {
        let sum = RowSum {
            calls: 1,
            input: usage.input.unwrap_or(0),
            output: usage.output.unwrap_or(0),
            cached: usage.cached.unwrap_or(0),
            nano: usage.cost.map_or(0, nano),
            unpriced: u64::from(usage.cost.is_none()),
            at_upper_bound: 0,
        };
        let key = RowKey { day: day_of(at), session, cause: cause_of(&usage), model };
        rows.entry(key).or_default().add(&sum);
    }
    rows
}

fn cause_of(usage: &Usage) -> Cause {
    usage.cause.unwrap_or(match usage.purpose.as_deref() {
        Some("summary") => Cause::Compaction,
        Some("extract" | "consolidate") => Cause::Memory,
        _ => Cause::Turn,
    })
}

/// A call in the records of a session, of its extracts or of a memory.
struct RecordedCall {
    /// When its usage was recorded.
    at: At,
    /// `None` if only the memory is known that it was made for.
    session: Option<SessionId>,
    /// Empty if it is not known.
    model: String,
    usage: Usage,
}

/// Finds the calls that are not in the ledger.
struct CallReader<'a> {
    journal: &'a dyn Journal,
    /// Calls that were seen. A fork has copies of its parent's records.
    seen: HashSet<AttemptId>,
    calls: Vec<RecordedCall>,
}

impl<'a> CallReader<'a> {
    fn new(journal: &'a dyn Journal) -> Self {
        Self { journal, seen: HashSet::new(), calls: vec![] }
    }

    /// Reads the calls of all sessions that were made in this time. Their memory's are read by [`Self::read_memory`].
    async fn read_sessions(&mut self, from: At, before: At) -> Result<()> {
        for session in self.sessions_since(from).await? {
            let stream = StreamName::session(session);
            let found = self.calls.len();
            // What was imported was paid for elsewhere.
            let mark = import_mark(self.journal, session).await?;
            let is_asked_for = |usage: &Usage| (from..before).contains(&usage.attempt.made_at());
            self.read_kind(&stream, "usage", mark.seq, Some(session), is_asked_for).await?;
            if self.calls.len() > found {
                let attempts = self.journal.records_of_kind(&stream, "attempt_started").await?;
                let models = attempts.iter().filter_map(|record| record.decode::<AttemptStarted>().ok());
                let models: HashMap<AttemptId, String> =
                    models.map(|started| (started.attempt, started.model)).collect();
                for call in &mut self.calls[found..] {
                    call.model = models.get(&call.usage.attempt).cloned().unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// Reads the calls of memory. They are recorded after the ledger has them, so those that it does not have are older
    /// than it.
    async fn read_memory(&mut self) -> Result<()> {
        for session in self.sessions_since(At(i64::MIN)).await? {
            let foreign = import_mark(self.journal, session).await?.foreign_extracts_through;
            let extracts = StreamName::extract(session);
            for kind in ["extracted", "extraction_failed"] {
                self.read_kind(&extracts, kind, foreign, Some(session), |_| true).await?;
            }
        }
        let streams = self.journal.streams().await?;
        for stream in streams.into_iter().filter(|stream| stream.as_str().starts_with("memory/")) {
            self.read_kind(&stream, "pages_changed", 0, None, |_| true).await?;
        }
        Ok(())
    }

    /// The sessions that have changed since then. A fork is younger than its parent, so the parent's calls are counted
    /// where they were paid.
    async fn sessions_since(&self, from: At) -> Result<Vec<SessionId>> {
        let entries = all_sessions(self.journal).collect().await?;
        let changed = entries.into_iter().filter(|entry| entry.last_at.is_some_and(|at| at >= from));
        let mut sessions: Vec<SessionId> = changed.map(|entry| entry.id).collect();
        sessions.sort_unstable();
        Ok(sessions)
    }

    /// Reads the calls in the records of one kind that follow a position.
    async fn read_kind(
        &mut self,
        stream: &StreamName,
        kind: &str,
        after: Seq,
        session: Option<SessionId>,
        is_asked_for: impl Fn(&Usage) -> bool,
    ) -> Result<()> {
        let records = self.journal.records_of_kind(stream, kind).await?;
        for record in records.iter().filter(|record| record.seq > after) {
            for usage in usages_of(record).into_iter().filter(&is_asked_for) {
                self.add(record, usage, session).await?;
            }
        }
        Ok(())
    }

    async fn add(&mut self, record: &Record, usage: Usage, session: Option<SessionId>) -> Result<()> {
        let is_counted = usage.input.is_some() || usage.output.is_some();
        if !is_counted || !self.seen.insert(usage.attempt) {
            return Ok(());
        }
        let key = SpendReserved::key(usage.attempt);
        if self.journal.find(&StreamName::spend(), &key).await?.is_none() {
            self.calls.push(RecordedCall { at: record.at, session, model: String::new(), usage });
        }
        Ok(())
    }
}
