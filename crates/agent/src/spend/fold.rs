//! What the records of the ledger add up to. Pure: `apply` folds one record, and nothing else changes the fold.

use std::collections::{BTreeMap, BTreeSet};

use longhaul_protocol::{
    At, AttemptId, Cause, OpenReservation, Record, Seq, SessionId, SpendOpened, SpendRecord, SpendReserved,
    SpendSettled, SpendSource, SpendTotal, SpentRow,
};

use super::amount::{Amount, day_of, dollars, month_of, nano};
use super::limits::{TOTAL, session_scope};

/// Records after which the ledger is opened anew, so that a fold never reads many more.
pub(crate) const RECORDS_PER_SEGMENT: u64 = 1_000;
/// How long the total of a turn is kept after its last call. A turn may wait that long for a person.
const TURN_TOTAL_MS: i64 = 31 * 24 * 60 * 60 * 1_000;

/// The ledger up to a record.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LedgerFold {
    /// The last record.
    pub(crate) head: Seq,
    /// The newest `spend_opened`: its number and its position.
    pub(crate) opened: Option<(u64, Seq)>,
    /// Whether the usage from before the ledger is in it.
    pub(crate) is_backfilled: bool,
    /// All calls of sessions that were made before this moment are in the ledger.
    pub(crate) checked: Option<At>,
    /// What was settled, by scope. A session's total is here only if it was loaded.
    totals: BTreeMap<String, Amount>,
    /// The last change of each turn's total.
    turns_changed: BTreeMap<String, At>,
    open: BTreeMap<AttemptId, OpenReservation>,
    past_soft: BTreeSet<String>,
    /// Soft limits that a person does not want to be passed.
    refused: BTreeSet<String>,
    /// The calls that were settled since the ledger was opened.
    spent: BTreeMap<RowKey, RowSum>,
    /// The day of the last record.
    day: String,
}

/// What a row of the statement is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    pub(crate) day: String,
    pub(crate) session: Option<SessionId>,
    pub(crate) cause: Cause,
    pub(crate) model: String,
}

/// Settled calls, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RowSum {
    pub(crate) calls: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: u64,
    pub(crate) nano: u64,
    /// Calls whose price is not known.
    pub(crate) unpriced: u64,
    /// Calls that were settled at their upper bound.
    pub(crate) at_upper_bound: u64,
}

impl RowSum {
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cached = self.cached.saturating_add(other.cached);
        self.nano = self.nano.saturating_add(other.nano);
        self.unpriced += other.unpriced;
        self.at_upper_bound += other.at_upper_bound;
    }

    pub(crate) fn amount(&self) -> Amount {
        Amount { tokens: self.input.saturating_add(self.output), nano: self.nano }
    }
}

impl LedgerFold {
    /// Folds the next record. A record that can't be decoded counts only as a position.
    pub(crate) fn apply(&mut self, record: &Record) {
        self.head = record.seq;
        match SpendRecord::decode(record) {
            Ok(SpendRecord::Reserved(reserved)) => self.fold_reserved(record.at, reserved),
            Ok(SpendRecord::Settled(settled)) => self.fold_settled(record.at, &settled),
            Ok(SpendRecord::Refused(refused)) => self.fold_refused(refused.names),
            Ok(SpendRecord::Opened(opened)) => self.fold_opened(record, opened),
            Ok(SpendRecord::Unknown { .. }) | Err(_) => {}
        }
        self.day = day_of(record.at);
    }

    /// Adds a reservation.
    pub(crate) fn fold_reserved(&mut self, at: At, reserved: SpendReserved) {
        self.past_soft.extend(reserved.past_soft.iter().cloned());
        let at = reserved.made_at.unwrap_or(at);
        self.open.insert(reserved.attempt, OpenReservation { at, reserved });
    }

    /// Adds soft limits that are not to be passed.
    pub(crate) fn fold_refused(&mut self, names: Vec<String>) {
        self.refused.extend(names);
    }

    /// Settles a reservation. One that is not open stays settled as it is.
    pub(crate) fn fold_settled(&mut self, at: At, settled: &SpendSettled) {
        let Some(open) = self.open.remove(&settled.attempt) else { return };
        let (key, sum) = settled_row(&open, settled);
        for scope in scopes_of(&open) {
            let is_turn = scope.starts_with("turn/");
            if is_turn {
                self.turns_changed.insert(scope.clone(), at);
            }
            let is_session = scope.starts_with("session/");
            if is_session && !self.totals.contains_key(&scope) {
                continue;
            }
            let total = self.totals.entry(scope).or_default();
            *total = total.plus(sum.amount());
        }
        if sum.calls > 0 {
            self.spent.entry(key).or_default().add(&sum);
        }
    }

    fn fold_opened(&mut self, record: &Record, opened: SpendOpened) {
        let backfilled_now = opened.taken_over && !self.is_backfilled;
        // The totals of sessions are not in the record. The usage from before the ledger changes them.
        let is_loaded = |(scope, _): &(String, Amount)| scope.starts_with("session/") && !backfilled_now;
        let sessions = std::mem::take(&mut self.totals).into_iter().filter(is_loaded);
        let turns = opened.totals.iter().filter_map(|total| Some((total.scope.clone(), total.at?)));
        let turns_changed = turns.collect();
        let totals = opened
            .totals
            .into_iter()
            .map(|SpendTotal { scope, tokens, cost, .. }| (scope, Amount { tokens, nano: nano(cost) }));
        *self = Self {
            head: record.seq,
            opened: Some((opened.number, record.seq)),
            is_backfilled: opened.taken_over,
            checked: self.checked.max(opened.checked).or(opened.taken_over.then_some(record.at)),
            totals: totals.chain(sessions).collect(),
            turns_changed,
            open: opened.open.into_iter().map(|open| (open.reserved.attempt, open)).collect(),
            past_soft: opened.past_soft.into_iter().collect(),
            refused: opened.refused.into_iter().collect(),
            spent: BTreeMap::new(),
            day: day_of(record.at),
        };
    }

    /// What was settled in a scope, and what is reserved in it.
    pub(crate) fn used(&self, scope: &str) -> (Amount, Amount) {
        let settled = self.totals.get(scope).copied().unwrap_or_default();
        let of_scope = self.open.values().filter(|open| scopes_of(open).iter().any(|other| other == scope));
        (settled, of_scope.map(|open| bound_of(&open.reserved)).fold(Amount::default(), Amount::plus))
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &OpenReservation> {
        self.open.values()
    }

    pub(crate) fn is_open(&self, attempt: AttemptId) -> bool {
        self.open.contains_key(&attempt)
    }

    /// The reservation of an attempt that is not settled.
    pub(crate) fn open_reservation(&self, attempt: AttemptId) -> Option<&SpendReserved> {
        self.open.get(&attempt).map(|open| &open.reserved)
    }

    pub(crate) fn is_past_soft(&self, name: &str) -> bool {
        self.past_soft.contains(name)
    }

    /// Whether a person has said no to passing this soft limit.
    pub(crate) fn is_refused(&self, name: &str) -> bool {
        self.refused.contains(name)
    }

    /// Whether a question about passing these soft limits needs no answer any more: all of them are passed, or a person has
    /// said no to one, in whichever session.
    pub(crate) fn is_soft_decided(&self, names: &[String]) -> bool {
        let are_past = !names.is_empty() && names.iter().all(|name| self.is_past_soft(name));
        are_past || names.iter().any(|name| self.is_refused(name))
    }

    /// The calls that were settled since the ledger was opened, by row.
    pub(crate) fn spent(&self) -> &BTreeMap<RowKey, RowSum> {
        &self.spent
    }

    pub(crate) fn knows_session(&self, session: SessionId) -> bool {
        self.totals.contains_key(&session_scope(session))
    }

    /// Adds the total of a session, from then on kept up to date.
    pub(crate) fn load_session(&mut self, session: SessionId, total: Amount) {
        self.totals.insert(session_scope(session), total);
    }

    /// Whether the ledger should be opened anew: on a new day, and after many records.
    pub(crate) fn should_open(&self, now: At) -> bool {
        let from = self.opened.map_or(0, |(_, seq)| seq);
        self.head.saturating_sub(from) >= RECORDS_PER_SEGMENT || (self.head > 0 && self.day != day_of(now))
    }

    /// The record that opens the ledger anew. `history` is the usage from before the ledger, if it is taken over now.
    pub(crate) fn opening(&self, now: At, history: Option<&BTreeMap<RowKey, RowSum>>) -> SpendOpened {
        let mut spent = self.spent.clone();
        let mut totals = self.totals.clone();
        for (key, sum) in history.into_iter().flatten() {
            spent.entry(key.clone()).or_default().add(sum);
            for scope in [format!("day/{}", key.day), format!("month/{}", &key.day[..7]), TOTAL.to_owned()] {
                let total = totals.entry(scope).or_default();
                *total = total.plus(sum.amount());
            }
        }
        let open_scopes: BTreeSet<String> = self.open.values().flat_map(scopes_of).collect();
        let today = [TOTAL.to_owned(), format!("day/{}", day_of(now)), format!("month/{}", month_of(now))];
        let newest = self.newest_turns();
        let is_current = |scope: &String| match self.turns_changed.get(scope) {
            Some(at) => {
                let is_newest = split_turn(scope).is_none_or(|(session, turn)| newest[session] == turn);
                is_newest && now.0.saturating_sub(at.0) < TURN_TOTAL_MS
            }
            None => today.contains(scope) || (open_scopes.contains(scope) && !scope.starts_with("session/")),
        };
        let totals = totals.into_iter().filter(|(scope, _)| is_current(scope));
        let keep_current = |names: &BTreeSet<String>| {
            let is_current = |name: &&String| match turn_scope(name) {
                Some(turn) => is_current(&turn),
                None => is_current_period(name, now),
            };
            names.iter().filter(is_current).cloned().collect()
        };
        SpendOpened {
            number: self.opened.map_or(0, |(number, _)| number) + 1,
            previous: self.opened.map(|(_, seq)| seq),
            taken_over: self.is_backfilled || history.is_some(),
            checked: self.checked,
            totals: totals.map(|(scope, amount)| self.total_of(scope, amount)).collect(),
            open: self.open.values().cloned().collect(),
            past_soft: keep_current(&self.past_soft),
            refused: keep_current(&self.refused),
            spent: spent.into_iter().map(|(key, sum)| spent_row(key, sum)).collect(),
        }
    }

    fn total_of(&self, scope: String, amount: Amount) -> SpendTotal {
        let at = self.turns_changed.get(&scope).copied();
        SpendTotal { scope, tokens: amount.tokens, cost: dollars(amount.nano), at }
    }

    /// The last turn of each session that made a call.
    fn newest_turns(&self) -> BTreeMap<&str, u64> {
        let mut newest = BTreeMap::new();
        for (session, turn) in self.turns_changed.keys().filter_map(|scope| split_turn(scope)) {
            let last = newest.entry(session).or_insert(turn);
            *last = turn.max(*last);
        }
        newest
    }
}

/// The session and the number in the scope of a turn.
fn split_turn(scope: &str) -> Option<(&str, u64)> {
    let (session, turn) = scope.rsplit_once('/')?;
    Some((session, turn.parse().ok()?))
}

/// The scope of the turn that a soft limit is about, if it is about one.
fn turn_scope(name: &str) -> Option<String> {
    match name.split_once('/')? {
        ("cost_per_turn" | "tokens_per_turn", turn) => Some(format!("turn/{turn}")),
        _ => None,
    }
}

/// Whether the period of a passed soft limit may still go on. A session and the total are kept for ever: each is one
/// short name.
fn is_current_period(name: &str, now: At) -> bool {
    match name.split_once('/') {
        Some(("cost_per_day" | "tokens_per_day", day)) => day == day_of(now),
        Some(("cost_per_month" | "tokens_per_month", month)) => month == month_of(now),
        _ => true,
    }
}

/// Everything that a reservation counts against.
fn scopes_of(open: &OpenReservation) -> Vec<String> {
    let OpenReservation { at, reserved } = open;
    let mut scopes = vec![
        TOTAL.to_owned(),
        format!("day/{}", day_of(*at)),
        format!("month/{}", month_of(*at)),
        session_scope(reserved.session),
    ];
    // A turn without a session is one of the call's own session.
    let own_turn = |limit: &str| limit.strip_prefix("turn/")?.parse().ok();
    scopes.extend(reserved.limits.iter().map(|limit| match own_turn(limit) {
        Some(turn) => super::limits::turn_scope(reserved.session, turn),
        None => limit.clone(),
    }));
    scopes
}

/// The most that a reservation may use.
pub(crate) fn bound_of(reserved: &SpendReserved) -> Amount {
    Amount { tokens: reserved.tokens, nano: reserved.cost.map_or(0, nano) }
}

/// A settled call as a row.
fn settled_row(open: &OpenReservation, settled: &SpendSettled) -> (RowKey, RowSum) {
    let reserved = &open.reserved;
    let key = RowKey {
        day: day_of(open.at),
        session: Some(reserved.session),
        cause: reserved.cause,
        model: reserved.model.clone(),
    };
    if settled.source == SpendSource::None {
        return (key, RowSum::default());
    }
    let at_bound = settled.source == SpendSource::Bound;
    let usage = settled.usage;
    // How the bound is split between input and output is not recorded.
    let input = usage.input.unwrap_or(if at_bound { reserved.tokens } else { 0 });
    let sum = RowSum {
        calls: 1,
        input,
        output: usage.output.unwrap_or(0),
        cached: usage.cached.unwrap_or(0),
        nano: settled.cost.map_or(0, nano),
        unpriced: u64::from(settled.cost.is_none()),
        at_upper_bound: u64::from(at_bound),
    };
    (key, sum)
}

fn spent_row(key: RowKey, sum: RowSum) -> SpentRow {
    let RowKey { day, session, cause, model } = key;
    let RowSum { calls, input, output, cached, nano, unpriced, at_upper_bound } = sum;
    let cost = dollars(nano);
    SpentRow { day, session, cause, model, calls, input, output, cached, cost, unpriced, at_upper_bound }
}

/// A row of a record, as it is added up.
pub(crate) fn row_of(row: SpentRow) -> (RowKey, RowSum) {
    let SpentRow { day, session, cause, model, calls, input, output, cached, cost, unpriced, at_upper_bound } =
        row;
    let sum = RowSum { calls, input, output, cached, nano: nano(cost), unpriced, at_upper_bound };
    (RowKey { day, session, cause, model }, sum)
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
