//! What all sessions of a home have cost today, by their records. Whatever is kept here is only a place to read on from.
//!
//! The records of all sessions are looked at now and then; in between, what this process itself spends is added as it is
//! recorded. So a turn sees what others spend while it runs, and a thousand turns don't read a thousand sessions each.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_journal::{Error, Journal, Page, Result, import_mark};
use longhaul_protocol::{At, ExtractRecord, MemoryRecord, Record, Seq, SessionRecord, StreamName, Usage};
use tokio::time::Instant;

use crate::clock::now;
use crate::history::by_time::first_since;
use crate::runtime::{Inner, lock};
use crate::session::apply::nano;
use crate::worker::wait::{Attended, Heed};
use crate::worker::{Step, Stopped, Worker};

/// A day begins at midnight UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// So many sessions are listed at once.
const PAGE: usize = 256;
/// What other processes spend is seen after this at the latest.
const FRESH: Duration = Duration::from_secs(5);

/// What was spent today, as far as it is known.
#[derive(Default)]
pub(crate) struct Ledger {
    sum: Mutex<Sum>,
    /// Held by whoever reads the records.
    counting: tokio::sync::Mutex<Today>,
}

#[derive(Default)]
struct Sum {
    began: i64,
    read_at: Option<Instant>,
    /// By the records that were read.
    read: u64,
    /// By this process, since then.
    since: u64,
}

#[derive(Default)]
struct Today {
    began: i64,
    streams: HashMap<StreamName, Counted>,
}

struct Counted {
    next: Seq,
    nano: u64,
}

impl Ledger {
    /// This process has spent something.
    pub(crate) fn spent(&self, usage: &Usage) {
        lock(&self.sum).since += usage.cost.map_or(0, nano);
    }

    /// What is known of today, if that was read lately.
    fn known(&self) -> Option<u64> {
        let sum = lock(&self.sum);
        let is_fresh = sum.began == today() && sum.read_at.is_some_and(|at| at.elapsed() < FRESH);
        is_fresh.then(|| sum.read.saturating_add(sum.since))
    }

    async fn read(&self, runtime: &Inner) -> Result<u64> {
        let mut counting = self.counting.lock().await;
        // Somebody else may just have done it.
        match self.known() {
            Some(known) => Ok(known),
            None => self.count(runtime, &mut counting).await,
        }
    }

    async fn count(&self, runtime: &Inner, counting: &mut Today) -> Result<u64> {
        let began = today();
        // What is recorded while the records are read may count twice, until they are read again.
        let before = lock(&self.sum).since;
        if counting.began != began {
            *counting = Today { began, streams: HashMap::new() };
        }
        count_all(&*runtime.journal, counting).await?;
        let read = counting.streams.values().map(|counted| counted.nano).sum();
        let mut sum = lock(&self.sum);
        *sum = Sum { began, read_at: Some(Instant::now()), read, since: sum.since.saturating_sub(before) };
        Ok(sum.read.saturating_add(sum.since))
    }
}

/// When today began.
fn today() -> i64 {
    let now = now().0;
    now - now.rem_euclid(DAY_MS)
}

impl Worker {
    /// What the turn that is open, or about to begin, may still cost today.
    pub(crate) async fn look_at_the_money(&mut self) -> Step<()> {
        let limit = self.runtime.config.settings.limits.cost_per_day;
        if limit <= 0.0 {
            return Ok(());
        }
        let runtime = self.runtime.clone();
        let spent = match runtime.ledger.known() {
            Some(spent) => spent,
            None => {
                let mut reading = pin!(runtime.ledger.read(&runtime));
                match self.attend(&mut reading, Heed::Cancel, None).await? {
                    Attended::Done(spent) => spent?,
                    // The turn ends anyway.
                    Attended::Called | Attended::Due => return Ok(()),
                    Attended::Suspended => return Err(Stopped::Suspended),
                }
            }
        };
        let by_this_turn = self.state.turn.as_ref().map_or(0, |turn| turn.cost_nano);
        let left = nano(limit).saturating_sub(spent).saturating_sub(runtime.memory.unrecorded_costs.nano());
        self.policy.limits.left_today_nano = Some(by_this_turn.saturating_add(left));
        Ok(())
    }
}

impl Inner {
    /// Whether what may be spent today is spent, for calls that nobody waits for: there are few of them, and each is a reason to count
    /// what stands in the records by now.
    pub(crate) async fn is_out_of_money(&self) -> Result<bool> {
        let limit = self.config.settings.limits.cost_per_day;
        if limit <= 0.0 {
            return Ok(false);
        }
        let spent = self.ledger.count(self, &mut *self.ledger.counting.lock().await).await?;
        Ok(spent.saturating_add(self.memory.unrecorded_costs.nano()) >= nano(limit))
    }
}

async fn count_all(journal: &dyn Journal, today: &mut Today) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let page = journal.sessions(after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        let began = today.began;
        for entry in page.iter().filter(|entry| entry.last_at.is_some_and(|at| at.0 >= began)) {
            count(journal, today, StreamName::session(entry.id), entry.head.seq).await?;
        }
    }
    // What memory costs stands in streams of its own, and comes when sessions are long at rest.
    let is_of_memory = |stream: &StreamName| {
        let family = stream.as_str().split('/').next();
        matches!(family, Some("extract" | "memory"))
    };
    for stream in journal.streams().await?.into_iter().filter(is_of_memory) {
        let head = journal.head(&stream).await?.seq;
        count(journal, today, stream, head).await?;
    }
    Ok(())
}

/// Adds what a stream has cost since it was last looked at. A record that is damaged costs nothing that anybody knows.
async fn count(journal: &dyn Journal, today: &mut Today, stream: StreamName, head: Seq) -> Result<()> {
    let mut next = match today.streams.get(&stream) {
        Some(counted) => counted.next,
        None => first_since(journal, &stream, head, At(today.began))
            .await?
            .max(first_own(journal, &stream).await?),
    };
    let mut sum = 0_u64;
    while next <= head {
        let page = match journal.read(&stream, next, Page::default()).await {
            Err(Error::Damaged { seq, .. }) => {
                next = next.max(seq) + 1;
                continue;
            }
            page => page?,
        };
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        sum = page.iter().map(cost).fold(sum, u64::saturating_add);
    }
    let counted = today.streams.entry(stream).or_insert(Counted { next, nano: 0 });
    counted.next = next;
    counted.nano = counted.nano.saturating_add(sum);
    Ok(())
}

/// The first record of a stream that was paid for here: what an imported session has cost was paid elsewhere.
async fn first_own(journal: &dyn Journal, stream: &StreamName) -> Result<Seq> {
    let Some(session) = stream.session_id() else { return Ok(1) };
    let mark = import_mark(journal, session).await?;
    let is_session = *stream == StreamName::session(session);
    Ok(1 + if is_session { mark.seq } else { mark.foreign_extracts_through.min(Seq::MAX - 1) })
}

fn cost(record: &Record) -> u64 {
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
