//! What all sessions of a home have cost today, by their records. Whatever is kept here is only a place to read on from.

use std::collections::HashMap;

use longhaul_journal::{Journal, Page, Result, SessionEntry};
use longhaul_protocol::{Seq, SessionId, SessionRecord, StreamName};

use crate::apply::nano;
use crate::clock::now;
use crate::runtime::Inner;
use crate::worker::{Step, Worker};

/// A day begins at midnight UTC.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// So many sessions are listed at once.
const PAGE: usize = 256;

/// How far today's records were counted.
#[derive(Default)]
pub(crate) struct Ledger(tokio::sync::Mutex<Today>);

#[derive(Default)]
struct Today {
    began: i64,
    sessions: HashMap<SessionId, Counted>,
}

struct Counted {
    next: Seq,
    nano: u64,
}

impl Worker {
    /// What the turn that is open, or about to begin, may still cost today.
    pub(crate) async fn look_at_the_money(&mut self) -> Step<()> {
        let limit = self.runtime.config.settings.limits.cost_per_day;
        if limit <= 0.0 || self.policy.limits.left_today_nano.is_some() {
            return Ok(());
        }
        let spent = spent_today(&self.runtime).await?;
        let by_this_turn = self.state.turn.as_ref().map_or(0, |turn| turn.cost_nano);
        let before = spent.saturating_sub(by_this_turn);
        self.policy.limits.left_today_nano = Some(nano(limit).saturating_sub(before));
        Ok(())
    }
}

async fn spent_today(runtime: &Inner) -> Result<u64> {
    let began = now().0 - now().0.rem_euclid(DAY_MS);
    let mut today = runtime.ledger.0.lock().await;
    if today.began != began {
        *today = Today { began, sessions: HashMap::new() };
    }
    let mut after: Option<String> = None;
    loop {
        let page = runtime.journal.sessions(after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        for entry in page.iter().filter(|entry| entry.last_at.is_some_and(|at| at.0 >= began)) {
            let next = match today.sessions.get(&entry.id) {
                Some(counted) => counted.next,
                None => first_since(&*runtime.journal, entry, began).await?,
            };
            let (next, more) = count(&*runtime.journal, entry, next).await?;
            let counted = today.sessions.entry(entry.id).or_insert(Counted { next, nano: 0 });
            counted.next = next;
            counted.nano += more;
        }
    }
    Ok(today.sessions.values().map(|counted| counted.nano).sum())
}

/// The first record of today: the time of records grows with their place.
async fn first_since(journal: &dyn Journal, entry: &SessionEntry, began: i64) -> Result<Seq> {
    let stream = StreamName::session(entry.id);
    let (mut from, mut to) = (1, entry.head.seq + 1);
    while from < to {
        let middle = from.midpoint(to);
        let record = journal.read(&stream, middle, Page { records: 1, bytes: 0 }).await?.pop();
        if record.is_some_and(|record| record.at.0 < began) { from = middle + 1 } else { to = middle }
    }
    Ok(from)
}

/// What the records from a place on cost, and where they end.
async fn count(journal: &dyn Journal, entry: &SessionEntry, from: Seq) -> Result<(Seq, u64)> {
    let (mut next, mut sum) = (from, 0);
    while next <= entry.head.seq {
        let page = journal.read(&StreamName::session(entry.id), next, Page::default()).await?;
        let Some(last) = page.last() else { break };
        next = last.seq + 1;
        for record in page.iter().filter(|record| record.kind == "usage") {
            if let Ok(SessionRecord::Usage(usage)) = SessionRecord::decode(record) {
                sum += usage.cost.map_or(0, nano);
            }
        }
    }
    Ok((next, sum))
}
