//! The daily budget: the cost of all sessions of a home today, by their records. The cost of one session is not
//! stored: `SessionCost` (crate `transcript`) adds it up.
//!
//! The records of all sessions are read at intervals. In between, this process adds its own costs as they are
//! recorded. So a turn sees what other processes spend while it runs, and a thousand turns do not read a thousand
//! sessions each.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_journal::{Journal, Result, all_sessions, import_mark, records};
use longhaul_protocol::{At, ExtractRecord, MemoryRecord, Record, Seq, SessionRecord, StreamName, Usage};
use tokio::time::Instant;

use crate::clock::now;
use crate::history::by_time::first_since;
use crate::runtime::{RuntimeShared, lock};
use crate::session::apply::nano;
use crate::worker::wait::WakeOn;
use crate::worker::{Worker, WorkerResult};

/// A day begins at midnight UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// The oldest total that is used without reading the records again. So the costs of other processes are seen with
/// this delay.
const MAX_TOTAL_AGE: Duration = Duration::from_secs(5);

/// The amount spent today, in billionths of a US dollar.
#[derive(Default)]
pub(crate) struct SpendLedger {
    total: Mutex<DayTotal>,
    /// Locked while the records are read.
    streams: tokio::sync::Mutex<DayStreams>,
}

#[derive(Default)]
struct DayTotal {
    day_start: i64,
    read_at: Option<Instant>,
    /// The sum of the costs in the records that were read.
    read_nano: u64,
    /// The costs of this process since then.
    added_nano: u64,
}

#[derive(Default)]
struct DayStreams {
    day_start: i64,
    by_name: HashMap<StreamName, StreamSpend>,
}

/// What a stream has cost today, in the records before `next`.
struct StreamSpend {
    next: Seq,
    nano: u64,
}

impl SpendLedger {
    /// Adds the cost of a call that this process has recorded.
    pub(crate) fn add_usage(&self, usage: &Usage) {
        lock(&self.total).added_nano += usage.cost.map_or(0, nano);
    }

    /// Whether the daily budget is spent. For background calls, which are few, so each one reads the records again.
    pub(crate) async fn is_budget_spent(&self, runtime: &RuntimeShared) -> Result<bool> {
        let limit = runtime.config.settings.limits.cost_per_day;
        if limit <= 0.0 {
            return Ok(false);
        }
        let spent = self.read_records(runtime, &mut *self.streams.lock().await).await?;
        Ok(spent.saturating_add(runtime.memory.unrecorded_costs.nano()) >= nano(limit))
    }

    /// Today's total, if the records were read recently.
    fn recent_total(&self) -> Option<u64> {
        let total = lock(&self.total);
        let age = total.read_at.filter(|_| total.day_start == day_start()).map(|at| at.elapsed());
        age.is_some_and(|age| age < MAX_TOTAL_AGE).then(|| total.read_nano.saturating_add(total.added_nano))
    }

    async fn today_total(&self, runtime: &RuntimeShared) -> Result<u64> {
        let mut streams = self.streams.lock().await;
        // Another worker may have read the records while this one waited for the lock.
        match self.recent_total() {
            Some(total) => Ok(total),
            None => self.read_records(runtime, &mut streams).await,
        }
    }

    async fn read_records(&self, runtime: &RuntimeShared, streams: &mut DayStreams) -> Result<u64> {
        let day_start = day_start();
        // A cost that is recorded meanwhile may count twice until the records are read again.
        let added_before = lock(&self.total).added_nano;
        if streams.day_start != day_start {
            *streams = DayStreams { day_start, by_name: HashMap::new() };
        }
        streams.read_new_records(&*runtime.journal).await?;
        let read_nano = streams.by_name.values().map(|stream| stream.nano).sum();
        let mut total = lock(&self.total);
        let added_nano = total.added_nano.saturating_sub(added_before);
        *total = DayTotal { day_start, read_at: Some(Instant::now()), read_nano, added_nano };
        Ok(read_nano.saturating_add(added_nano))
    }
}

/// When today began, in milliseconds.
fn day_start() -> i64 {
    let now = now().0;
    now - now.rem_euclid(DAY_MS)
}

/// Determines how much the open turn, or the next one, may still cost today (`limits.cost_per_day`).
pub(crate) async fn check_budget(worker: &mut Worker) -> WorkerResult<()> {
    let runtime = worker.runtime().clone();
    let limit = runtime.config.settings.limits.cost_per_day;
    if limit <= 0.0 {
        return Ok(());
    }
    let spent = match runtime.ledger.recent_total() {
        Some(spent) => spent,
        None => {
            let mut reading = pin!(runtime.ledger.today_total(&runtime));
            match worker.wait_for(&mut reading, WakeOn::Cancel, None).await?.into_done()? {
                Some(spent) => spent?,
                // The turn ends anyway.
                None => return Ok(()),
            }
        }
    };
    let by_this_turn = worker.state().turn.as_ref().map_or(0, |turn| turn.cost_nano);
    let left = nano(limit).saturating_sub(spent).saturating_sub(runtime.memory.unrecorded_costs.nano());
    worker.set_budget_left(by_this_turn.saturating_add(left));
    Ok(())
}

impl DayStreams {
    async fn read_new_records(&mut self, journal: &dyn Journal) -> Result<()> {
        let day_start = self.day_start;
        let mut sessions = all_sessions(journal);
        while let Some(entry) = sessions.next().await? {
            if entry.last_at.is_some_and(|at| at.0 >= day_start) {
                self.read_stream(journal, StreamName::session(entry.id), entry.head.seq).await?;
            }
        }
        // Memory records its costs in its own streams, even for sessions that were not used today.
        let is_of_memory = |stream: &StreamName| {
            let family = stream.as_str().split('/').next();
            matches!(family, Some("extract" | "memory"))
        };
        for stream in journal.streams().await?.into_iter().filter(is_of_memory) {
            let head = journal.head(&stream).await?.seq;
            self.read_stream(journal, stream, head).await?;
        }
        Ok(())
    }

    /// Adds the cost of a stream since it was last read. A damaged record counts as free.
    async fn read_stream(&mut self, journal: &dyn Journal, stream: StreamName, head: Seq) -> Result<()> {
        let next = match self.by_name.get(&stream) {
            Some(spend) => spend.next,
            None => {
                let first_today = first_since(journal, &stream, head, At(self.day_start)).await?;
                first_today.max(first_own_record(journal, &stream).await?)
            }
        };
        let mut sum = 0_u64;
        let mut cursor = records(journal, &stream, next).through(head);
        while let Some(record) = cursor.next_undamaged().await? {
            sum = sum.saturating_add(cost_nano(&record));
        }
        let next = next.max(head.saturating_add(1));
        let spend = self.by_name.entry(stream).or_insert(StreamSpend { next, nano: 0 });
        spend.next = next;
        spend.nano = spend.nano.saturating_add(sum);
        Ok(())
    }
}

/// The first record of a stream that was paid for here. An imported session was paid for elsewhere.
async fn first_own_record(journal: &dyn Journal, stream: &StreamName) -> Result<Seq> {
    let Some(session) = stream.session_id() else { return Ok(1) };
    let mark = import_mark(journal, session).await?;
    let is_session = *stream == StreamName::session(session);
    Ok(1 + if is_session { mark.seq } else { mark.foreign_extracts_through.min(Seq::MAX - 1) })
}

fn cost_nano(record: &Record) -> u64 {
    let usages = match record.kind.as_str() {
        "usage" => match SessionRecord::decode(record) {
            Ok(SessionRecord::Usage(usage)) => vec![usage],
            _ => return 0,
        },
        "extracted" => match ExtractRecord::decode(record) {
            Ok(ExtractRecord::Extracted(extracted)) => extracted.usage,
            _ => return 0,
        },
        "pages_changed" => match MemoryRecord::decode(record) {
            Ok(MemoryRecord::PagesChanged(changed)) => changed.usage,
            _ => return 0,
        },
        _ => return 0,
    };
    usages.iter().filter_map(|usage| usage.cost).map(nano).fold(0, u64::saturating_add)
}
