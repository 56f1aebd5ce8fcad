//! The ledger as the sessions of a runtime use it: reserve a call, judge the next one, flush.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{Journal, Result};
use longhaul_memory::ReservedCall;
use longhaul_model::{CallPermit, Prices};
use longhaul_protocol::{AttemptId, Cause, ParentLink, SessionId, SpendRefused, SpendReserved, SpendSettled};
use tokio::sync::{mpsc, oneshot};

use super::decision::{CallBound, LimitReached, SoftLimits, Urgency, Verdict, WantedCall, judge};
use super::fold::LedgerFold;
use super::limits::{CallScope, ScopedTurn, SpendLimits};
use super::recovery::LiveHolder;
use super::settlement::{reserved_cost, settle_call};
use super::statement::{LimitStatus, list_limits};
use super::writer::LedgerWriter;
use crate::clock::now;
use crate::runtime::lock;

/// How long the end of a runtime waits for its last settlements.
const CLOSE_GRACE: Duration = Duration::from_millis(500);
/// How often a session that asks about a soft limit looks whether another one has the answer.
const DECISION_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Sessions whose last call is remembered.
const MAX_REMEMBERED_CALLS: usize = 1_000;

/// The ledger of a runtime.
pub(crate) struct SpendLedger {
    commands: mpsc::UnboundedSender<LedgerCommand>,
    limits: Arc<SpendLimits>,
    /// The ledger as this process last saw it. `None` until a limit needs it.
    fold: Arc<Mutex<Option<LedgerFold>>>,
    holder: Arc<LiveHolder>,
    /// The bound of the last call of each session's turns.
    last_calls: Mutex<HashMap<SessionId, CallBound>>,
}

/// What the writer is asked to do.
pub(super) enum LedgerCommand {
    /// Decide about a call, and record the reservation.
    Reserve(Box<PendingReservation>),
    /// Record a reservation that needs no decision.
    Record(Box<SpendReserved>),
    Settle(SpendSettled),
    /// Record that a person does not want soft limits to be passed.
    Refuse(SpendRefused),
    /// Write what waits.
    Flush(oneshot::Sender<()>),
    /// Read what is new in the ledger, and the totals of these sessions if a limit needs them.
    Load(Vec<SessionId>, oneshot::Sender<Result<()>>),
}

/// A reservation that waits for a decision.
pub(super) struct PendingReservation {
    pub(super) call: NewCall,
    /// For the settlement.
    pub(super) commands: mpsc::UnboundedSender<LedgerCommand>,
    pub(super) reply: oneshot::Sender<Result<ReserveOutcome>>,
}

/// A call before it is reserved.
#[derive(Debug, Clone)]
pub(crate) struct NewCall {
    pub(crate) attempt: AttemptId,
    pub(crate) cause: Cause,
    /// As `provider/model`.
    pub(crate) model: String,
    pub(crate) prices: Option<Prices>,
    pub(crate) wanted: WantedCall,
}

/// The decision about a call.
pub(crate) enum ReserveOutcome {
    Granted(Reservation),
    Reached(LimitReached),
    Ask(SoftLimits),
}

/// A reserved call. Dropping it settles what the call used.
pub(crate) struct Reservation {
    permit: CallPermit,
    bound: CallBound,
    prices: Option<Prices>,
    /// Soft limits that this call is the first to pass.
    pub(crate) past_soft: Vec<String>,
    commands: mpsc::UnboundedSender<LedgerCommand>,
}

impl SpendLedger {
    pub(crate) fn open(journal: Arc<dyn Journal>, limits: SpendLimits) -> Self {
        let (commands, receiver) = mpsc::unbounded_channel();
        let (limits, fold, holder) = (Arc::new(limits), Arc::default(), Arc::new(LiveHolder::new()));
        let writer = LedgerWriter::new(journal, limits.clone(), Arc::clone(&fold), holder.clone());
        tokio::spawn(writer.run(receiver));
        Self { commands, limits, fold, holder, last_calls: Mutex::default() }
    }

    pub(crate) fn limits(&self) -> &SpendLimits {
        &self.limits
    }

    /// Whether a limit or a budget applies to a call.
    pub(crate) fn is_limited(&self, scope: &CallScope) -> bool {
        !self.limits.is_empty() || scope.has_own_limit()
    }

    /// Reserves a call. Returns at once where no limit is set. Otherwise waits until the reservation is on disk, and while
    /// other calls hold what it needs.
    pub(crate) async fn reserve(&self, call: NewCall) -> Result<ReserveOutcome> {
        let commands = self.commands.clone();
        if !self.is_limited(&call.wanted.scope) {
            let bound = call.wanted.bound;
            let record = reservation_record(&call, &self.limits, bound, vec![], &self.holder);
            let reservation = Reservation::new(&record, bound, call.prices, commands);
            let _ = self.commands.send(LedgerCommand::Record(Box::new(record)));
            return Ok(ReserveOutcome::Granted(reservation));
        }
        let (reply, decided) = oneshot::channel();
        let pending = PendingReservation { call, commands, reply };
        let _ = self.commands.send(LedgerCommand::Reserve(Box::new(pending)));
        decided.await.unwrap_or(Err(longhaul_journal::Error::Closed))
    }

    /// Whether a call would fit, as far as this process knows. A reservation decides.
    pub(crate) async fn judge(&self, wanted: &WantedCall) -> Result<Verdict> {
        if !self.is_limited(&wanted.scope) {
            return Ok(Verdict::Fits { max_output: wanted.bound.max_output, past_soft: vec![] });
        }
        if !self.is_loaded(&wanted.scope) {
            let is_needed = self.limits.needs_session_totals(&wanted.scope);
            self.load(wanted.scope.sessions().filter(|_| is_needed).collect()).await?;
        }
        let fold = lock(&self.fold);
        let fold = fold.as_ref().ok_or(longhaul_journal::Error::Closed)?;
        Ok(judge(fold, &self.limits, wanted))
    }

    /// Returns when a question about passing these soft limits needs no answer any more: the one of another session was
    /// answered, or no limits are set.
    pub(crate) async fn wait_until_decided(&self, names: &[String]) {
        let is_decided = |fold: &LedgerFold| fold.is_soft_decided(names);
        while !self.limits.is_empty() {
            // A ledger that can't be read now is read at the next look.
            if self.load(vec![]).await.is_ok() && lock(&self.fold).as_ref().is_some_and(is_decided) {
                return;
            }
            tokio::time::sleep(DECISION_CHECK_INTERVAL).await;
        }
    }

    /// Reads what is new in the ledger.
    async fn load(&self, sessions: Vec<SessionId>) -> Result<()> {
        let (done, loaded) = oneshot::channel();
        let _ = self.commands.send(LedgerCommand::Load(sessions, done));
        loaded.await.unwrap_or(Err(longhaul_journal::Error::Closed))
    }

    /// The limits that are set, and what is left of each. Reads only what is new in the ledger.
    pub(crate) async fn limit_status(
        &self,
        session: Option<SessionId>,
        turn: Option<u64>,
    ) -> Result<Vec<LimitStatus>> {
        if self.limits.is_empty() {
            return Ok(vec![]);
        }
        self.load(session.filter(|_| self.limits.has_session_limit()).into_iter().collect()).await?;
        let fold = lock(&self.fold);
        let fold = fold.as_ref().ok_or(longhaul_journal::Error::Closed)?;
        Ok(list_limits(fold, &self.limits, session, turn))
    }

    fn is_loaded(&self, scope: &CallScope) -> bool {
        let fold = lock(&self.fold);
        let knows = |fold: &LedgerFold| {
            !self.limits.needs_session_totals(scope)
                || scope.sessions().all(|session| fold.knows_session(session))
        };
        fold.as_ref().is_some_and(knows)
    }

    /// Remembers the bound of a turn's call. A background call is made only if another such call still fits.
    pub(crate) fn remember_call(&self, session: SessionId, bound: CallBound) {
        let mut calls = lock(&self.last_calls);
        if calls.len() >= MAX_REMEMBERED_CALLS
            && !calls.contains_key(&session)
            && let Some(any) = calls.keys().next().copied()
        {
            calls.remove(&any);
        }
        calls.insert(session, bound);
    }

    /// How urgent a call is that no one waits for. A session that made no call in this process yet counts as if its next one
    /// needed as much as this one.
    pub(crate) fn background(&self, session: SessionId, bound: CallBound) -> Urgency {
        Urgency::Background { further: lock(&self.last_calls).get(&session).copied().unwrap_or(bound) }
    }

    /// The scope of a call that is made now. `parent` is given for a subagent.
    pub(crate) fn scope(
        &self,
        session: SessionId,
        turn: Option<ScopedTurn>,
        parent: Option<&Arc<ParentLink>>,
    ) -> CallScope {
        let turn_max_nano = turn.and_then(|turn| turn.max_cost_nano);
        let turn = turn.map(|turn| turn.number);
        CallScope { at: now(), session, turn, turn_max_nano, parent: parent.cloned() }
    }

    /// Records that a person does not want these soft limits to be passed.
    pub(crate) fn refuse(&self, session: SessionId, names: Vec<String>) {
        let _ = self.commands.send(LedgerCommand::Refuse(SpendRefused { names, session }));
    }

    /// Writes the settlements that wait, at the end of a turn. Where limits are set, they are on disk when this returns, so
    /// that the next call is decided on what this one really used. Where none are set, nothing waits for the ledger.
    pub(crate) async fn end_turn(&self) {
        if self.limits.is_empty() {
            let _ = self.commands.send(LedgerCommand::Flush(oneshot::channel().0));
        } else {
            self.flush().await;
        }
    }

    /// Writes the settlements that wait. They are on disk when this returns, unless the journal refuses them.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let _ = self.commands.send(LedgerCommand::Flush(done));
        let _ = flushed.await;
    }

    /// Writes what waits, at the end of the runtime.
    pub(crate) async fn close(&self) {
        let _ = tokio::time::timeout(CLOSE_GRACE, self.flush()).await;
    }
}

impl Reservation {
    pub(super) fn new(
        record: &SpendReserved,
        bound: CallBound,
        prices: Option<Prices>,
        commands: mpsc::UnboundedSender<LedgerCommand>,
    ) -> Self {
        let permit = CallPermit::for_reservation(record);
        Self { permit, bound, prices, past_soft: record.past_soft.clone(), commands }
    }
}

#[async_trait]
impl ReservedCall for Reservation {
    fn permit(&self) -> &CallPermit {
        &self.permit
    }

    fn max_answer(&self) -> u64 {
        self.bound.max_output
    }

    async fn settle(self: Box<Self>) {
        let commands = self.commands.clone();
        drop(self);
        let (done, flushed) = oneshot::channel();
        let _ = commands.send(LedgerCommand::Flush(done));
        let _ = flushed.await;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let (attempt, progress) = (self.permit.attempt(), self.permit.progress());
        let settled = settle_call(attempt, &progress, &self.bound, self.prices.as_ref());
        // After the end of the runtime, the next one settles the call.
        let _ = self.commands.send(LedgerCommand::Settle(settled));
    }
}

/// The record of a reservation.
pub(super) fn reservation_record(
    call: &NewCall,
    limits: &SpendLimits,
    bound: CallBound,
    past_soft: Vec<String>,
    holder: &LiveHolder,
) -> SpendReserved {
    let amount = bound.amount();
    SpendReserved {
        attempt: call.attempt,
        session: call.wanted.scope.session,
        cause: call.cause,
        model: call.model.clone(),
        limits: limits.extra_limits(&call.wanted.scope),
        past_soft,
        tokens: amount.tokens,
        cost: reserved_cost(&bound),
        made_at: None,
        holder: holder.holder().clone(),
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
