//! The limits on spending, as the config sets them, and the budgets of subagents. Pure.

use std::sync::Arc;

use longhaul_protocol::{Ancestor, At, Limit, ParentLink, SessionId};

use super::amount::{Unit, day_of, dollars, month_of, nano};
use crate::config::LimitSettings;

/// The scope that counts everything.
pub(crate) const TOTAL: &str = "total";

/// A kind of limit. Its name is its key in `[limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitKind {
    CostPerTurn,
    TokensPerTurn,
    CostPerSession,
    CostPerDay,
    TokensPerDay,
    CostPerMonth,
    TokensPerMonth,
    CostTotal,
    /// A session with all its subagents.
    CostPerTree,
    /// What the call that started a subagent lets it spend.
    AgentBudget,
    /// What a schedule lets one of its runs spend, with all subagents.
    CostPerRun,
}

impl LimitKind {
    const ALL: [Self; 11] = [
        Self::CostPerTurn,
        Self::TokensPerTurn,
        Self::CostPerSession,
        Self::CostPerDay,
        Self::TokensPerDay,
        Self::CostPerMonth,
        Self::TokensPerMonth,
        Self::CostTotal,
        Self::CostPerTree,
        Self::AgentBudget,
        Self::CostPerRun,
    ];

    /// The kind that a name of [`CallScope::soft_name`] stands for.
    pub(crate) fn of_soft_name(name: &str) -> Option<Self> {
        let key = name.split('/').next()?;
        Self::ALL.into_iter().find(|kind| kind.name() == key)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CostPerTurn => "cost_per_turn",
            Self::TokensPerTurn => "tokens_per_turn",
            Self::CostPerSession => "cost_per_session",
            Self::CostPerDay => "cost_per_day",
            Self::TokensPerDay => "tokens_per_day",
            Self::CostPerMonth => "cost_per_month",
            Self::TokensPerMonth => "tokens_per_month",
            Self::CostTotal => "cost_total",
            Self::CostPerTree => "cost_per_tree",
            Self::AgentBudget => "budget",
            Self::CostPerRun => "cost_per_run",
        }
    }

    /// What a person calls it: its key in the config.
    pub(crate) fn setting(self) -> String {
        match self {
            Self::CostPerTree => "agents.cost_per_tree".to_owned(),
            Self::AgentBudget => "the budget of the subagent".to_owned(),
            Self::CostPerRun => "cost_per_run of the schedule".to_owned(),
            _ => format!("limits.{}", self.name()),
        }
    }

    pub(crate) fn unit(self) -> Unit {
        match self {
            Self::TokensPerTurn | Self::TokensPerDay | Self::TokensPerMonth => Unit::Tokens,
            _ => Unit::Cost,
        }
    }

    /// The limit in the outcome of a turn.
    pub(crate) fn outcome(self) -> Limit {
        match self.unit() {
            Unit::Tokens => Limit::Tokens,
            Unit::Cost => Limit::Cost,
        }
    }

    /// How a person goes on after the limit is reached.
    pub(crate) fn next_step(self) -> &'static str {
        match self {
            Self::CostPerTurn | Self::TokensPerTurn => "raise it, or send a message to go on",
            Self::CostPerSession | Self::CostPerTree => "raise it, or go on in a new session",
            Self::AgentBudget => "start another one, or give it more",
            Self::CostPerRun => "raise it there, or send a message to go on",
            Self::CostPerDay | Self::TokensPerDay => "raise it, or go on tomorrow (UTC)",
            Self::CostPerMonth | Self::TokensPerMonth => "raise it, or go on next month (UTC)",
            Self::CostTotal => "raise it to go on",
        }
    }
}

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpendLimit {
    pub(crate) kind: LimitKind,
    /// Tokens, or billionths of a US dollar.
    pub(crate) max: u64,
}

impl SpendLimit {
    /// The amount in words: `$0.5000`, `1000 tokens`.
    pub(crate) fn amount_text(self, amount: u64) -> String {
        match self.kind.unit() {
            Unit::Tokens => format!("{amount} tokens"),
            Unit::Cost => format!("${:.4}", dollars(amount)),
        }
    }

    /// What a turn that the limit ends says.
    pub(crate) fn reached_text(self, used: u64) -> String {
        let (name, next) = (self.kind.setting(), self.kind.next_step());
        let (used, max) = (self.amount_text(used), self.amount_text(self.max));
        format!("the next model call would pass {name}: {used} of {max} are used or reserved; {next}")
    }
}

/// All limits that are set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SpendLimits {
    pub(crate) limits: Vec<SpendLimit>,
    /// The share of each limit at which a person is asked; 0 for never.
    pub(crate) soft: f64,
}

impl SpendLimits {
    pub(crate) fn new(settings: &LimitSettings) -> Self {
        let all = [
            (LimitKind::CostPerTurn, nano(settings.cost_per_turn)),
            (LimitKind::TokensPerTurn, settings.tokens_per_turn),
            (LimitKind::CostPerSession, nano(settings.cost_per_session)),
            (LimitKind::CostPerDay, nano(settings.cost_per_day)),
            (LimitKind::TokensPerDay, settings.tokens_per_day),
            (LimitKind::CostPerMonth, nano(settings.cost_per_month)),
            (LimitKind::TokensPerMonth, settings.tokens_per_month),
            (LimitKind::CostTotal, nano(settings.cost_total)),
        ];
        let set = all.into_iter().filter(|(_, max)| *max > 0);
        Self { limits: set.map(|(kind, max)| SpendLimit { kind, max }).collect(), soft: settings.soft }
    }

    /// The same with a limit for a session and all its subagents; 0 for none.
    #[must_use]
    pub(crate) fn with_tree_limit(mut self, cost: f64) -> Self {
        let max = nano(cost);
        self.limits.extend((max > 0).then_some(SpendLimit { kind: LimitKind::CostPerTree, max }));
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    pub(crate) fn has_cost_limit(&self) -> bool {
        self.limits.iter().any(|limit| limit.kind.unit() == Unit::Cost)
    }

    /// The names of a record's `limits`: what its session and its time don't tell.
    pub(crate) fn extra_limits(&self, scope: &CallScope) -> Vec<String> {
        let is_per_turn =
            |limit: &SpendLimit| matches!(limit.kind, LimitKind::CostPerTurn | LimitKind::TokensPerTurn);
        let has_turn_limit = self.limits.iter().any(is_per_turn) || scope.run_limits().next().is_some();
        let turn = scope.turn.filter(|_| has_turn_limit).map(|turn| format!("turn/{turn}"));
        let above = scope.ancestors().iter();
        let turns_above = above.clone().filter(|_| has_turn_limit);
        let turns_above = turns_above.map(|above| turn_scope(above.session, above.turn));
        let sessions_above = above.filter(|_| self.needs_session_totals(scope));
        let sessions_above = sessions_above.map(|above| session_scope(above.session));
        turn.into_iter().chain(turns_above).chain(sessions_above).collect()
    }

    /// Whether the totals of the call's session and of those above it have to be known.
    pub(crate) fn needs_session_totals(&self, scope: &CallScope) -> bool {
        self.has_session_limit() || scope.budgets().next().is_some()
    }

    /// Every limit that applies to a call, with the scope in which it counts. The limits of a session and of its turn hold for
    /// everything that its subagents spend, too.
    pub(crate) fn applying_to(&self, call: &CallScope) -> Vec<(SpendLimit, String)> {
        let mut applying = Vec::new();
        for limit in &self.limits {
            applying.extend(call.scopes_of(limit.kind).into_iter().map(|scope| (*limit, scope)));
        }
        applying.extend(call.budgets().chain(call.run_limits()));
        applying
    }

    /// Whether the total of each session has to be known.
    pub(crate) fn has_session_limit(&self) -> bool {
        self.limits
            .iter()
            .any(|limit| matches!(limit.kind, LimitKind::CostPerSession | LimitKind::CostPerTree))
    }
}

/// The turn that a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScopedTurn {
    pub(crate) number: u64,
    /// Billionths of a US dollar that it may cost, as its schedule says.
    pub(crate) max_cost_nano: Option<u64>,
}

/// What a call counts against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallScope {
    pub(crate) at: At,
    pub(crate) session: SessionId,
    /// The open turn, if the call belongs to one.
    pub(crate) turn: Option<u64>,
    /// Billionths of a US dollar that the turn may cost, as its schedule says.
    pub(crate) turn_max_nano: Option<u64>,
    /// What started the session, if it is a subagent.
    pub(crate) parent: Option<Arc<ParentLink>>,
}

impl CallScope {
    fn ancestors(&self) -> &[Ancestor] {
        self.parent.as_ref().map_or(&[], |parent| &parent.ancestors)
    }

    /// The session, and those above it.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.ancestors().iter().map(|above| above.session).chain([self.session])
    }

    /// Whether the session, its turn or one above has a limit of its own.
    pub(crate) fn has_own_limit(&self) -> bool {
        self.budgets().chain(self.run_limits()).next().is_some()
    }

    /// What schedules let the turn cost, and those above that it works for.
    fn run_limits(&self) -> impl Iterator<Item = (SpendLimit, String)> {
        let own = self.turn.and_then(|turn| Some((self.session, turn, self.turn_max_nano?)));
        let above = self.ancestors().iter();
        let above = above.filter_map(|above| Some((above.session, above.turn, above.turn_max_nano?)));
        above.chain(own).map(|(session, turn, max)| {
            (SpendLimit { kind: LimitKind::CostPerRun, max }, turn_scope(session, turn))
        })
    }

    /// The budgets that the call counts against.
    fn budgets(&self) -> impl Iterator<Item = (SpendLimit, String)> {
        let own = self.parent.as_ref().and_then(|parent| Some((self.session, parent.budget_nano?)));
        let above = self.ancestors().iter().filter_map(|above| Some((above.session, above.budget_nano?)));
        above
            .chain(own)
            .map(|(session, max)| (SpendLimit { kind: LimitKind::AgentBudget, max }, session_scope(session)))
    }

    /// The scopes in which a limit counts this call: its own, and for a subagent those of the sessions above.
    fn scopes_of(&self, kind: LimitKind) -> Vec<String> {
        let above = self.ancestors().iter();
        let own = self.of_limit(kind);
        match kind {
            LimitKind::CostPerTurn | LimitKind::TokensPerTurn => {
                own.into_iter().chain(above.map(|above| turn_scope(above.session, above.turn))).collect()
            }
            LimitKind::CostPerSession => {
                own.into_iter().chain(above.map(|above| session_scope(above.session))).collect()
            }
            _ => own.into_iter().collect(),
        }
    }

    /// The scope in which a limit counts this call. `None` if the limit does not apply.
    pub(crate) fn of_limit(&self, kind: LimitKind) -> Option<String> {
        Some(match kind {
            LimitKind::CostPerTurn | LimitKind::TokensPerTurn | LimitKind::CostPerRun => {
                turn_scope(self.session, self.turn?)
            }
            LimitKind::CostPerSession => session_scope(self.session),
            LimitKind::CostPerDay | LimitKind::TokensPerDay => format!("day/{}", day_of(self.at)),
            LimitKind::CostPerMonth | LimitKind::TokensPerMonth => format!("month/{}", month_of(self.at)),
            LimitKind::CostTotal => TOTAL.to_owned(),
            LimitKind::CostPerTree => session_scope(self.sessions().next()?),
            LimitKind::AgentBudget => session_scope(self.session),
        })
    }
}

/// The name under which passing the soft limit is remembered, for the period of the limit.
pub(crate) fn soft_name(kind: LimitKind, scope: &str) -> String {
    match scope.split_once('/') {
        Some((_, period)) => format!("{}/{period}", kind.name()),
        None => kind.name().to_owned(),
    }
}

/// The scope of a turn's total.
pub(crate) fn turn_scope(session: SessionId, turn: u64) -> String {
    format!("turn/{session}/{turn}")
}

/// The scope of a session's total.
pub(crate) fn session_scope(session: SessionId) -> String {
    format!("session/{session}")
}
