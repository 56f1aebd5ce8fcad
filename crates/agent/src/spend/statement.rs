//! The statement: what was spent, and on what. And what is left of each limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use longhaul_journal::{Append, Error, Journal, Result};
use longhaul_protocol::{At, Cause, NewRecord, SessionId, StreamName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::{Unit, day_of, dollars};
use super::backfill::complete_ledger;
use super::fold::{LedgerFold, RowKey, RowSum, row_of};
use super::limits::{CallScope, LimitKind, SpendLimits, TOTAL};
use super::reader::{SegmentCursor, catch_up, load_fold, session_rows, session_sum, session_total};
use super::recovery::settle_dead_calls;
use super::writer::settled_record;
use crate::clock::now;
use crate::config::LimitSettings;
use crate::runtime::Runtime;

/// The name of items whose session or model is not known.
const UNKNOWN: &str = "unknown";

/// What a statement adds up, and since when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementQuery {
    /// The first day in UTC, as `2026-11-17`. `None` for all.
    pub since: Option<String>,
    /// What the items are.
    pub by: StatementBy,
    /// Whether days come newest first. Other items are always sorted by what they cost.
    pub newest_first: bool,
    /// The name of the item after which the page begins.
    pub after: Option<String>,
    /// The most items of a page. `None` for all.
    pub limit: Option<usize>,
}

/// What the items of a statement are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StatementBy {
    /// Why a model was called.
    #[default]
    Cause,
    /// The session that the call was for.
    Session,
    /// The model, as `provider/model`.
    Model,
    /// The day in UTC.
    Day,
}

/// What was spent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Statement {
    /// Days in their order, everything else the most expensive first.
    pub items: Vec<StatementItem>,
    /// The sum of all items, also of those on other pages.
    pub total: StatementItem,
    /// The `after` of the next page.
    pub next: Option<String>,
}

/// Settled calls, added up.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StatementItem {
    /// The cause, the session's key, the model or the day.
    pub name: String,
    /// Calls that used anything.
    pub calls: u64,
    /// Tokens sent, including cached ones.
    pub input: u64,
    /// Tokens received.
    pub output: u64,
    /// Input tokens that the provider read from its cache.
    pub cached: u64,
    /// US dollars, as far as prices are known. `None` if the price of no call is known.
    pub cost: Option<f64>,
    /// Calls whose price is not known.
    pub unpriced: u64,
    /// Calls that were settled at their upper bound, because their process died.
    pub at_upper_bound: u64,
}

impl Statement {
    /// The statement of a home in which no model was called.
    pub fn empty() -> Self {
        let total = StatementItem::new(TOTAL.to_owned(), &RowSum::default());
        Self { items: vec![], total, next: None }
    }
}

impl StatementItem {
    fn new(name: String, sum: &RowSum) -> Self {
        let &RowSum { calls, input, output, cached, nano, unpriced, at_upper_bound } = sum;
        let cost = (calls == 0 || unpriced < calls).then(|| dollars(nano));
        Self { name, calls, input, output, cached, cost, unpriced, at_upper_bound }
    }
}

/// Adds up what was spent, by the ledger of the home. Settles the calls of processes that died first, and takes over the
/// usage from before the ledger.
pub async fn statement(journal: &dyn Journal, query: &StatementQuery) -> Result<Statement> {
    let fold = current_fold(journal).await?;
    let mut sums: BTreeMap<RowName, RowSum> = BTreeMap::new();
    let mut total = RowSum::default();
    let mut add = |key: &RowKey, sum: &RowSum| {
        if query.since.as_ref().is_none_or(|since| key.day >= *since) {
            sums.entry(RowName::new(query.by, key)).or_default().add(sum);
            total.add(sum);
        }
    };
    fold.spent().iter().for_each(|(key, sum)| add(key, sum));
    let mut segments = SegmentCursor::new(journal, &fold);
    while let Some((at, segment)) = segments.next().await? {
        if query.since.as_ref().is_some_and(|since| day_of(at) < *since) {
            break;
        }
        segment.spent.into_iter().map(row_of).for_each(|(key, sum)| add(&key, &sum));
    }
    let items = sorted_items(journal, query, sums).await?;
    let (items, next) = page(items, query);
    Ok(Statement { items, total: StatementItem::new(TOTAL.to_owned(), &total), next })
}

impl Runtime {
    /// What was spent, with the calls that this runtime has just made.
    pub async fn statement(&self, query: &StatementQuery) -> Result<Statement> {
        self.0.spend.flush().await;
        statement(&*self.journal(), query).await
    }

    /// What one session has spent, as the statement and the limits count it: its turns, its compactions and its memory, and
    /// nothing that a fork copied.
    pub async fn session_spending(&self, session: SessionId) -> Result<StatementItem> {
        let fold = self.flushed_fold().await?;
        let sum = session_sum(&*self.journal(), &fold, session).await?;
        Ok(StatementItem::new(session.to_string(), &sum))
    }

    /// What each of these sessions has spent, in their order. Costs one look at the ledger for all of them.
    pub async fn spending_of_sessions(&self, sessions: &[SessionId]) -> Result<Vec<StatementItem>> {
        let (fold, journal) = (self.flushed_fold().await?, self.journal());
        let mut items = Vec::with_capacity(sessions.len());
        for session in sessions {
            let sum = session_sum(&*journal, &fold, *session).await?;
            items.push(StatementItem::new(session.to_string(), &sum));
        }
        Ok(items)
    }

    /// What one session has spent on what, the most tokens first.
    pub async fn session_causes(&self, session: SessionId) -> Result<Vec<(Cause, StatementItem)>> {
        let fold = self.flushed_fold().await?;
        let mut sums: BTreeMap<Cause, RowSum> = BTreeMap::new();
        for (key, sum) in session_rows(&*self.journal(), &fold, session).await? {
            sums.entry(key.cause).or_default().add(&sum);
        }
        let item = |(cause, sum): (Cause, RowSum)| (cause, StatementItem::new(cause.word().to_owned(), &sum));
        let mut items: Vec<(Cause, StatementItem)> = sums.into_iter().map(item).collect();
        items.sort_by_key(|(_, item)| Reverse(item.input.saturating_add(item.output)));
        Ok(items)
    }

    /// What each session has cost on the day of this moment, in US dollars, as far as prices are known.
    pub async fn day_costs(&self, at: At) -> Result<HashMap<SessionId, f64>> {
        let (fold, day) = (self.flushed_fold().await?, day_of(at));
        let mut nanos: HashMap<SessionId, u64> = HashMap::new();
        let mut add = |key: &RowKey, sum: &RowSum| {
            if let Some(session) = key.session.filter(|_| key.day == day) {
                let cost = nanos.entry(session).or_default();
                *cost = cost.saturating_add(sum.nano);
            }
        };
        fold.spent().iter().for_each(|(key, sum)| add(key, sum));
        let journal = self.journal();
        let mut segments = SegmentCursor::new(&*journal, &fold);
        while let Some((closed, segment)) = segments.next().await? {
            if day_of(closed) < day {
                break;
            }
            segment.spent.into_iter().map(row_of).for_each(|(key, sum)| add(&key, &sum));
        }
        Ok(nanos.into_iter().map(|(session, nano)| (session, dollars(nano))).collect())
    }

    /// The ledger with the calls that this runtime has just made, and without open calls of processes that died.
    async fn flushed_fold(&self) -> Result<LedgerFold> {
        self.0.spend.flush().await;
        let journal = self.journal();
        let mut fold = load_fold(&*journal).await?;
        if !fold.is_backfilled {
            fold = current_fold(&*journal).await?;
        }
        for settled in settle_dead_calls(&*journal, &fold).await? {
            fold.fold_settled(now(), &settled);
        }
        Ok(fold)
    }

    /// The limits that are set, and what is left of each. Limits of a session or a turn are left out if none is given.
    pub async fn limit_status(
        &self,
        session: Option<SessionId>,
        turn: Option<u64>,
    ) -> Result<Vec<LimitStatus>> {
        self.0.spend.limit_status(session, turn).await
    }
}

/// The first day of a statement from a text: a day such as `2026-11-17`, or a number of days
/// before now such as `7d`. `None` if it is neither: the ledger keeps days, so a shorter time would not be exact.
pub fn statement_since(text: &str) -> Option<String> {
    if let Ok(date) = text.parse::<jiff::civil::Date>() {
        return Some(date.to_string());
    }
    let days = text.strip_suffix('d')?.parse::<i64>().ok().filter(|days| *days >= 0)?;
    let ms = days.checked_mul(86_400_000)?;
    Some(day_of(At(now().0.checked_sub(ms)?)))
}

/// What an item is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum RowName {
    Text(String),
    Session(SessionId),
}

impl RowName {
    fn new(by: StatementBy, key: &RowKey) -> Self {
        let known = |name: &str| if name.is_empty() { UNKNOWN.to_owned() } else { name.to_owned() };
        match by {
            StatementBy::Cause => Self::Text(key.cause.word().to_owned()),
            StatementBy::Model => Self::Text(known(&key.model)),
            StatementBy::Day => Self::Text(key.day.clone()),
            StatementBy::Session => key.session.map_or_else(|| Self::Text(known("")), Self::Session),
        }
    }
}

/// The items with their names: days in their order or newest first, everything else the most expensive first.
async fn sorted_items(
    journal: &dyn Journal,
    query: &StatementQuery,
    sums: BTreeMap<RowName, RowSum>,
) -> Result<Vec<StatementItem>> {
    let mut items: HashMap<String, RowSum> = HashMap::new();
    for (name, sum) in sums {
        let name = match name {
            RowName::Text(name) => name,
            // A session that was deleted has no key any more. What it cost stays.
            RowName::Session(id) => {
                journal.session_with_id(id).await?.map_or_else(|| id.to_string(), |entry| entry.key)
            }
        };
        items.entry(name).or_default().add(&sum);
    }
    let mut items: Vec<(String, RowSum)> = items.into_iter().collect();
    items.sort_by(|(name, sum), (other_name, other)| match query.by {
        StatementBy::Day if query.newest_first => other_name.cmp(name),
        StatementBy::Day => name.cmp(other_name),
        _ => {
            let key = |sum: &RowSum| (sum.nano, sum.input.saturating_add(sum.output));
            key(other).cmp(&key(sum)).then_with(|| name.cmp(other_name))
        }
    });
    Ok(items.into_iter().map(|(name, sum)| StatementItem::new(name, &sum)).collect())
}

fn page(items: Vec<StatementItem>, query: &StatementQuery) -> (Vec<StatementItem>, Option<String>) {
    let from = match &query.after {
        Some(after) => items.iter().position(|item| item.name == *after).map_or(items.len(), |at| at + 1),
        None => 0,
    };
    let limit = query.limit.unwrap_or(usize::MAX).max(1);
    let through = from.saturating_add(limit).min(items.len());
    let next = (through < items.len()).then(|| items[through - 1].name.clone());
    (items.into_iter().take(through).skip(from).collect(), next)
}

/// The ledger with the calls that only the sessions know, and without open calls of processes that died.
async fn current_fold(journal: &dyn Journal) -> Result<LedgerFold> {
    let mut fold = load_fold(journal).await?;
    let updated = async {
        complete_ledger(journal, &mut fold).await?;
        loop {
            let dead = settle_dead_calls(journal, &fold).await?;
            if dead.is_empty() {
                return Ok(());
            }
            let records: Vec<NewRecord> = dead.iter().map(settled_record).collect();
            let append = Append::to(&StreamName::spend()).expecting(fold.head);
            match journal.append(records.into_iter().fold(append, Append::record)).await {
                Ok(records) => records.iter().for_each(|record| fold.apply(record)),
                Err(Error::Conflict { .. } | Error::Duplicate { .. }) => catch_up(journal, &mut fold).await?,
                Err(error) => return Err(error),
            }
        }
    };
    match updated.await {
        // A full disk is no reason not to show what is known.
        Err(error) if error.may_pass() => Ok(fold),
        Err(error) => Err(error),
        Ok(()) => Ok(fold),
    }
}

/// A limit, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LimitStatus {
    /// Its key in `[limits]`.
    pub name: &'static str,
    /// `tokens` or `cost` in US dollars.
    pub unit: &'static str,
    /// The limit itself.
    pub limit: f64,
    /// What settled calls used.
    pub used: f64,
    /// Reserved by calls that are not settled yet.
    pub reserved: f64,
    /// What is neither used nor reserved.
    pub left: f64,
}

/// The limits that are set, and what is left of each. Limits of a session or a turn are left out if none is given.
pub async fn limit_status(
    journal: &dyn Journal,
    settings: &LimitSettings,
    session: Option<SessionId>,
    turn: Option<u64>,
) -> Result<Vec<LimitStatus>> {
    let limits = SpendLimits::new(settings);
    if limits.is_empty() {
        return Ok(vec![]);
    }
    let mut fold = current_fold(journal).await?;
    if let Some(session) = session {
        let total = session_total(journal, &fold, session).await?;
        fold.load_session(session, total);
    }
    Ok(list_limits(&fold, &limits, session, turn))
}

/// The limits, and what is left of each by a ledger that knows the session's total.
pub(super) fn list_limits(
    fold: &LedgerFold,
    limits: &SpendLimits,
    session: Option<SessionId>,
    turn: Option<u64>,
) -> Vec<LimitStatus> {
    let known = session.unwrap_or(SessionId::from_bits(0));
    let turn = session.and(turn);
    let scope = CallScope { at: now(), session: known, turn, turn_max_nano: None, parent: None };
    let mut status = Vec::new();
    for limit in &limits.limits {
        let is_of_session = matches!(limit.kind, LimitKind::CostPerSession | LimitKind::CostPerTree);
        let Some(name) = scope.of_limit(limit.kind).filter(|_| session.is_some() || !is_of_session) else {
            continue;
        };
        let (settled, open) = fold.used(&name);
        let unit = limit.kind.unit();
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let number = |amount: u64| match unit {
            Unit::Tokens => amount as f64,
            Unit::Cost => dollars(amount),
        };
        let (used, reserved) = (settled.of(unit), open.of(unit));
        status.push(LimitStatus {
            name: limit.kind.name(),
            unit: if unit == Unit::Tokens { "tokens" } else { "cost" },
            limit: number(limit.max),
            used: number(used),
            reserved: number(reserved),
            left: number(limit.max.saturating_sub(used).saturating_sub(reserved)),
        });
    }
    status
}

#[cfg(test)]
#[path = "statement_tests.rs"]
mod tests;
