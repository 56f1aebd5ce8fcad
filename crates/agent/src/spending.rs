//! What all sessions of a home have cost today, by their records. Whatever is kept here is only a place to read on from.
//!
//! The records of all sessions are looked at now and then; in between, what this process itself spends is added as it is
//! recorded. So a turn sees what others spend while it runs, and a thousand turns don't read a thousand sessions each.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_journal::{Error, Journal, Page, Result, SessionEntry};
use longhaul_protocol::{At, Seq, SessionId, SessionRecord, StreamName, Usage};
use tokio::time::Instant;

use crate::apply::nano;
use crate::attending::{Attended, Heed};
use crate::chronology::first_since;
use crate::clock::now;
use crate::runtime::{Inner, lock};
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
    sessions: HashMap<SessionId, Counted>,
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
        if let Some(known) = self.known() {
            return Ok(known);
        }
        let began = today();
        // What is recorded while the records are read may count twice, until they are read again.
        let before = lock(&self.sum).since;
        if counting.began != began {
            *counting = Today { began, sessions: HashMap::new() };
        }
        count_all(&*runtime.journal, &mut counting).await?;
        let read = counting.sessions.values().map(|counted| counted.nano).sum();
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
        let left = nano(limit).saturating_sub(spent);
        self.policy.limits.left_today_nano = Some(by_this_turn.saturating_add(left));
        Ok(())
    }
}

async fn count_all(journal: &dyn Journal, today: &mut Today) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let page = journal.sessions(after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.key.clone());
        for entry in page.iter().filter(|entry| entry.last_at.is_some_and(|at| at.0 >= today.began)) {
            let next = match today.sessions.get(&entry.id) {
                Some(counted) => counted.next,
                None => {
                    let stream = StreamName::session(entry.id);
                    first_since(journal, &stream, entry.head.seq, At(today.began)).await?
                }
            };
            let (next, more) = count(journal, entry, next).await?;
            let counted = today.sessions.entry(entry.id).or_insert(Counted { next, nano: 0 });
            counted.next = next;
            counted.nano = counted.nano.saturating_add(more);
        }
    }
}

/// What the records from a place on cost, and where they end. A record that is damaged costs nothing that anybody knows.
async fn count(journal: &dyn Journal, entry: &SessionEntry, from: Seq) -> Result<(Seq, u64)> {
    let (mut next, mut sum) = (from, 0_u64);
    while next <= entry.head.seq {
        let page = match journal.read(&StreamName::session(entry.id), next, Page::default()).await {
            Err(Error::Damaged { seq, .. }) => {
                next = next.max(seq) + 1;
                continue;
            }
            page => page?,
        };
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        for record in page.iter().filter(|record| record.kind == "usage") {
            if let Ok(SessionRecord::Usage(usage)) = SessionRecord::decode(record) {
                sum = sum.saturating_add(usage.cost.map_or(0, nano));
            }
        }
    }
    Ok((next, sum))
}
