//! The task that writes the ledger. It puts the reservations and settlements of all sessions of its runtime into one
//! append.
//!
//! Where limits are set, each append expects the head that the decisions rest on. Where none are set, nothing is decided,
//! and the order between processes does not matter.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_journal::{Append, Error, Journal, Result, record_at};
use longhaul_protocol::{
    AttemptId, NewRecord, Record, Seq, SessionId, SpendOpened, SpendRecord, SpendRefused, SpendReserved,
    SpendSettled, StreamName,
};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::amount::day_of;
use super::backfill::complete_ledger;
use super::decision::{Verdict, judge};
use super::fold::{LedgerFold, RECORDS_PER_SEGMENT};
use super::ledger::{LedgerCommand, PendingReservation, Reservation, ReserveOutcome, reservation_record};
use super::limits::{CallScope, SpendLimits};
use super::reader::{catch_up, load_fold, session_total};
use super::recovery::{LiveHolder, settle_dead_calls};
use super::settlement::settle_at_nothing;
use crate::clock::now;
use crate::runtime::lock;

/// How long a settlement waits for a reservation whose append it can join.
const SETTLEMENT_DELAY: Duration = Duration::from_millis(250);
/// How often a call that waits for the calls of other processes looks at the ledger.
const WAIT_INTERVAL: Duration = Duration::from_millis(100);
/// The pause after the journal refused an append for now.
const RETRY_DELAY: Duration = Duration::from_millis(250);
/// Tries to open a new segment while other processes write.
const MAX_OPENING_TRIES: usize = 5;
/// Times in a row that the journal may say that a record is there already, after which the ledger counts as unusable: a
/// damaged record can't be found by reading.
const MAX_DUPLICATES: usize = 5;

pub(super) struct LedgerWriter {
    journal: Arc<dyn Journal>,
    limits: Arc<SpendLimits>,
    fold: Arc<Mutex<Option<LedgerFold>>>,
    holder: Arc<LiveHolder>,
    /// Records of calls that need no decision, in their order.
    records: Vec<SpendReserved>,
    settlements: Vec<SpendSettled>,
    refusals: Vec<SpendRefused>,
    /// Reservations that wait for a decision.
    waiting: Vec<PendingReservation>,
    flushes: Vec<oneshot::Sender<()>>,
    loads: Vec<(Vec<SessionId>, oneshot::Sender<Result<()>>)>,
    /// When there is something to do although no command comes.
    deadline: Option<Instant>,
    /// The day of the last record, where no limits are set.
    day: Option<String>,
    /// The last append failed, but may be on disk. The ledger is read before anything else is decided.
    is_in_doubt: bool,
}

/// The records of one append, and the reservations that they grant or that are refused.
#[derive(Default)]
struct Batch {
    records: Vec<NewRecord>,
    /// The index of each granted reservation in `waiting`, with its record.
    granted: Vec<(usize, SpendReserved)>,
    refused: Vec<(usize, Verdict)>,
    /// Reservations that have to wait.
    has_waiting: bool,
}

impl Batch {
    /// Whether a decision may change when the newest records are read.
    fn depends_on_others(&self) -> bool {
        self.has_waiting || !self.refused.is_empty()
    }
}

impl LedgerWriter {
    pub(super) fn new(
        journal: Arc<dyn Journal>,
        limits: Arc<SpendLimits>,
        fold: Arc<Mutex<Option<LedgerFold>>>,
        holder: Arc<LiveHolder>,
    ) -> Self {
        Self {
            journal,
            limits,
            fold,
            holder,
            records: vec![],
            settlements: vec![],
            refusals: vec![],
            waiting: vec![],
            flushes: vec![],
            loads: vec![],
            deadline: None,
            day: None,
            is_in_doubt: false,
        }
    }

    /// Writes until the runtime has gone.
    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<LedgerCommand>) {
        loop {
            let deadline = self.deadline;
            let timer = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let (is_timer, is_closed) = tokio::select! {
                biased;
                command = commands.recv() => {
                    let is_closed = command.is_none();
                    command.into_iter().for_each(|command| self.take(command));
                    while let Ok(command) = commands.try_recv() {
                        self.take(command);
                    }
                    (false, is_closed)
                }
                () = timer => (true, false),
            };
            if is_timer || is_closed || self.is_urgent() {
                self.write().await;
            } else if !self.settlements.is_empty() {
                self.deadline.get_or_insert_with(|| Instant::now() + SETTLEMENT_DELAY);
            }
            if is_closed {
                return;
            }
        }
    }

    fn take(&mut self, command: LedgerCommand) {
        match command {
            LedgerCommand::Reserve(pending) => self.waiting.push(*pending),
            LedgerCommand::Record(reserved) => self.records.push(*reserved),
            LedgerCommand::Settle(settled) => self.settlements.push(settled),
            LedgerCommand::Refuse(refused) => self.refusals.push(refused),
            LedgerCommand::Flush(done) => self.flushes.push(done),
            LedgerCommand::Load(sessions, done) => self.loads.push((sessions, done)),
        }
    }

    fn is_urgent(&self) -> bool {
        !(self.waiting.is_empty()
            && self.records.is_empty()
            && self.flushes.is_empty()
            && self.loads.is_empty())
    }

    /// Writes everything that can be written now.
    async fn write(&mut self) {
        self.deadline = None;
        let is_decided = !(self.waiting.is_empty() && self.loads.is_empty());
        let written = match (self.limits.is_empty(), is_decided) {
            (true, false) => self.write_unlimited().await,
            (true, true) => self.write_with_budgets().await,
            (false, _) => self.write_limited().await,
        };
        match written {
            Ok(()) if !self.waiting.is_empty() => self.deadline = Some(Instant::now() + WAIT_INTERVAL),
            Ok(()) => {}
            Err(error) if error.may_pass() => self.deadline = Some(Instant::now() + RETRY_DELAY),
            Err(error) => {
                // Without a ledger, no call is made. A reservation that is on disk after all is given back.
                for pending in self.waiting.drain(..) {
                    self.settlements.push(settle_at_nothing(pending.call.attempt));
                    let _ = pending.reply.send(Err(error.clone()));
                }
                for (_, done) in self.loads.drain(..) {
                    let _ = done.send(Err(error.clone()));
                }
            }
        }
        for done in self.flushes.drain(..) {
            let _ = done.send(());
        }
    }

    async fn write_unlimited(&mut self) -> Result<()> {
        let records = match self.append_unlimited(&self.records, &self.settlements).await {
            // An earlier try was committed, although the journal reported an error.
            Err(Error::Duplicate { .. }) => {
                let (reserved, settled) = self.unwritten().await?;
                self.append_unlimited(&reserved, &settled).await?
            }
            appended => appended?,
        };
        self.records.clear();
        self.settlements.clear();
        if self.is_new_day(&records).await? || crosses_segment(&records) {
            self.open_segment(&records).await;
        }
        Ok(())
    }

    /// Whether the first of these records is the first of its day.
    async fn is_new_day(&mut self, appended: &[Record]) -> Result<bool> {
        let Some(first) = appended.first() else { return Ok(false) };
        let today = day_of(first.at);
        let last_day = match (self.day.take(), first.seq) {
            (Some(day), _) => day,
            (None, 1) => today.clone(),
            (None, seq) => match record_at(&*self.journal, &StreamName::spend(), seq - 1).await {
                Ok(Some(last)) => day_of(last.at),
                Ok(None) | Err(Error::Damaged { .. }) => today.clone(),
                Err(error) => return Err(error),
            },
        };
        let is_new = last_day != today;
        self.day = Some(today);
        Ok(is_new)
    }

    async fn append_unlimited(
        &self,
        reserved: &[SpendReserved],
        settled: &[SpendSettled],
    ) -> Result<Vec<Record>> {
        let records = reserved.iter().map(reserved_record).chain(settled.iter().map(settled_record));
        let append = records.fold(Append::to(&StreamName::spend()), Append::record);
        if append.records().is_empty() { Ok(vec![]) } else { self.journal.append(append).await }
    }

    /// The records that are not in the ledger yet.
    async fn unwritten(&self) -> Result<(Vec<SpendReserved>, Vec<SpendSettled>)> {
        let stream = StreamName::spend();
        let (mut reserved, mut settled) = (Vec::new(), Vec::new());
        for record in &self.records {
            if self.journal.find(&stream, &SpendReserved::key(record.attempt)).await?.is_none() {
                reserved.push(record.clone());
            }
        }
        for record in &self.settlements {
            if self.journal.find(&stream, &SpendSettled::key(record.attempt)).await?.is_none() {
                settled.push(record.clone());
            }
        }
        Ok((reserved, settled))
    }

    /// Closes the segment of the last day, or one that has become long, so that a later fold begins after it. If this
    /// fails, the next time tries again.
    async fn open_segment(&self, appended: &[Record]) {
        let from = appended.first().map_or(0, |first| first.seq);
        for _ in 0..MAX_OPENING_TRIES {
            let Ok(mut fold) = load_fold(&*self.journal).await else { return };
            let is_open = |(_, opened): (u64, Seq)| opened > from;
            if fold.opened.is_some_and(is_open) {
                return;
            }
            // What the sessions knew alone is looked for at each opening, so that no check reads far back.
            if fold.is_backfilled && complete_ledger(&*self.journal, &mut fold).await.is_err() {
                return;
            }
            let append = Append::to(&StreamName::spend()).expecting(fold.head);
            match self.journal.append(append.record(opening_record(&fold))).await {
                Err(Error::Conflict { .. }) => {}
                _ => return,
            }
        }
    }

    /// Decides about the calls of subagents with a budget where no limits are set. What other sessions write meanwhile needs no
    /// decision, so the ledger is read before these.
    async fn write_with_budgets(&mut self) -> Result<()> {
        self.write_unlimited().await?;
        self.is_in_doubt = true;
        self.write_limited().await
    }

    async fn write_limited(&mut self) -> Result<()> {
        self.load().await?;
        if !self.loads.is_empty() {
            self.catch_up().await?;
        }
        for (_, done) in self.loads.drain(..) {
            let _ = done.send(Ok(()));
        }
        let mut is_current = false;
        let mut duplicates = 0;
        if self.is_in_doubt {
            self.catch_up().await?;
            (self.is_in_doubt, is_current) = (false, true);
        }
        loop {
            let batch = self.plan();
            if batch.depends_on_others() && !is_current {
                self.catch_up().await?;
                is_current = true;
                continue;
            }
            if batch.records.is_empty() {
                self.answer(batch);
                self.settlements.clear();
                self.refusals.clear();
                return Ok(());
            }
            let head = lock(&self.fold).as_ref().map_or(0, |fold| fold.head);
            let append = Append::to(&StreamName::spend()).expecting(head);
            let append = batch.records.iter().cloned().fold(append, Append::record);
            match self.journal.append(append).await {
                Ok(records) => {
                    self.apply(&records);
                    self.settlements.clear();
                    self.refusals.clear();
                    self.answer(batch);
                    return Ok(());
                }
                Err(error @ (Error::Conflict { .. } | Error::Duplicate { .. })) => {
                    duplicates += usize::from(matches!(error, Error::Duplicate { .. }));
                    if duplicates > MAX_DUPLICATES {
                        return Err(error);
                    }
                    self.catch_up().await?;
                    is_current = true;
                }
                Err(error) => {
                    self.is_in_doubt = true;
                    return Err(error);
                }
            }
        }
    }

    /// Reads the ledger the first time, with the usage from before it, and the totals of sessions.
    async fn load(&mut self) -> Result<()> {
        // The sessions go on judging by what was known while this reads.
        let known = lock(&self.fold).clone();
        let mut fold = match known {
            Some(fold) => fold,
            None => {
                let mut fold = load_fold(&*self.journal).await?;
                complete_ledger(&*self.journal, &mut fold).await?;
                self.settlements.extend(settle_dead_calls(&*self.journal, &fold).await?);
                fold
            }
        };
        let waiting = self.waiting.iter().map(|pending| &pending.call.wanted.scope);
        let waiting = waiting.filter(|scope| self.limits.needs_session_totals(scope));
        let loads = self.loads.iter().flat_map(|(sessions, _)| sessions.iter().copied());
        let wanted: HashSet<SessionId> = waiting.flat_map(CallScope::sessions).chain(loads).collect();
        for session in wanted {
            if !fold.knows_session(session) {
                let total = session_total(&*self.journal, &fold, session).await?;
                fold.load_session(session, total);
            }
        }
        *lock(&self.fold) = Some(fold);
        Ok(())
    }

    /// Reads what other processes wrote, and settles the calls of those that died.
    async fn catch_up(&mut self) -> Result<()> {
        let Some(mut fold) = lock(&self.fold).clone() else { return Ok(()) };
        catch_up(&*self.journal, &mut fold).await?;
        let known: HashSet<AttemptId> = self.settlements.iter().map(|settled| settled.attempt).collect();
        let dead = settle_dead_calls(&*self.journal, &fold).await?;
        self.settlements.extend(dead.into_iter().filter(|settled| !known.contains(&settled.attempt)));
        *lock(&self.fold) = Some(fold);
        // The usage from before the ledger may have been taken over meanwhile, which changes the totals of sessions.
        self.load().await
    }

    fn apply(&self, records: &[Record]) {
        if let Some(fold) = &mut *lock(&self.fold) {
            records.iter().for_each(|record| fold.apply(record));
        }
    }

    /// Decides about everything that waits: settlements first, then the reservations in their order, each on top of those
    /// before it.
    fn plan(&self) -> Batch {
        let mut batch = Batch::default();
        let Some(mut fold) = lock(&self.fold).clone() else { return batch };
        let at = now();
        let opening = fold.should_open(at).then(|| opening_record(&fold));
        for settled in self.settlements.iter() {
            if fold.is_open(settled.attempt) {
                batch.records.push(settled_record(settled));
                fold.fold_settled(at, settled);
            }
        }
        for refused in &self.refusals {
            if !refused.names.iter().all(|name| fold.is_refused(name)) {
                let record = SpendRecord::Refused(refused.clone());
                batch.records.push(record.encode());
                fold.fold_refused(refused.names.clone());
            }
        }
        for (index, pending) in self.waiting.iter().enumerate() {
            // An earlier try was committed, although the journal reported an error.
            if let Some(reserved) = fold.open_reservation(pending.call.attempt) {
                batch.granted.push((index, reserved.clone()));
                continue;
            }
            // The caller has stopped waiting.
            if pending.reply.is_closed() {
                continue;
            }
            match judge(&fold, &self.limits, &pending.call.wanted) {
                Verdict::Fits { max_output, past_soft } => {
                    let bound = pending.call.wanted.bound.with_answer(max_output);
                    let record =
                        reservation_record(&pending.call, &self.limits, bound, past_soft, &self.holder);
                    batch.records.push(reserved_record(&record));
                    fold.fold_reserved(at, record.clone());
                    batch.granted.push((index, record));
                }
                Verdict::Wait => batch.has_waiting = true,
                verdict => batch.refused.push((index, verdict)),
            }
        }
        if !batch.records.is_empty() {
            batch.records.splice(..0, opening);
        }
        batch
    }

    /// Answers the callers whose reservation is decided. The others go on waiting.
    fn answer(&mut self, batch: Batch) {
        let mut waiting: Vec<Option<PendingReservation>> = self.waiting.drain(..).map(Some).collect();
        for (index, record) in batch.granted {
            let Some(PendingReservation { call, commands, reply }) = waiting[index].take() else { continue };
            let wanted = call.wanted.bound;
            let bound = wanted.with_answer(record.tokens.saturating_sub(wanted.input));
            let reservation = Reservation::new(&record, bound, call.prices, commands);
            // If the caller has stopped waiting, the reservation is dropped here, and so settled at nothing.
            let _ = reply.send(Ok(ReserveOutcome::Granted(reservation)));
        }
        for (index, verdict) in batch.refused {
            let Some(PendingReservation { reply, .. }) = waiting[index].take() else { continue };
            let outcome = match verdict {
                Verdict::Reached(reached) => ReserveOutcome::Reached(reached),
                Verdict::Ask(soft) => ReserveOutcome::Ask(soft),
                Verdict::Fits { .. } | Verdict::Wait => continue,
            };
            let _ = reply.send(Ok(outcome));
        }
        self.waiting = waiting.into_iter().flatten().filter(|pending| !pending.reply.is_closed()).collect();
    }
}

pub(super) fn reserved_record(reserved: &SpendReserved) -> NewRecord {
    SpendRecord::Reserved(reserved.clone()).encode().with_key(&SpendReserved::key(reserved.attempt))
}

pub(super) fn settled_record(settled: &SpendSettled) -> NewRecord {
    SpendRecord::Settled(settled.clone()).encode().with_key(&SpendSettled::key(settled.attempt))
}

fn opening_record(fold: &LedgerFold) -> NewRecord {
    let opened = fold.opening(now(), None);
    let key = SpendOpened::key(opened.number);
    SpendRecord::Opened(opened).encode().with_key(&key)
}

/// Whether these records are the ones after which the ledger should be opened anew.
fn crosses_segment(records: &[Record]) -> bool {
    let (Some(first), Some(last)) = (records.first(), records.last()) else { return false };
    (first.seq - 1) / RECORDS_PER_SEGMENT != last.seq / RECORDS_PER_SEGMENT
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
