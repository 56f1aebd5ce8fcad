//! The limits on spending, as the config sets them. Pure.

use longhaul_protocol::{At, Limit, SessionId};

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
}

impl LimitKind {
    const ALL: [Self; 8] = [
        Self::CostPerTurn,
        Self::TokensPerTurn,
        Self::CostPerSession,
        Self::CostPerDay,
        Self::TokensPerDay,
        Self::CostPerMonth,
        Self::TokensPerMonth,
        Self::CostTotal,
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
            Self::CostPerSession => "raise it, or go on in a new session",
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
        let (name, next) = (self.kind.name(), self.kind.next_step());
        let (used, max) = (self.amount_text(used), self.amount_text(self.max));
        format!("the next model call would pass limits.{name}: {used} of {max} are used or reserved; {next}")
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
        let turn = scope.turn.filter(|_| self.limits.iter().any(is_per_turn));
        turn.map(|turn| format!("turn/{turn}")).into_iter().collect()
    }

    /// Whether the total of each session has to be known.
    pub(crate) fn has_session_limit(&self) -> bool {
        self.limits.iter().any(|limit| limit.kind == LimitKind::CostPerSession)
    }
}

/// What a call counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallScope {
    pub(crate) at: At,
    pub(crate) session: SessionId,
    /// The open turn, if the call belongs to one.
    pub(crate) turn: Option<u64>,
}

impl CallScope {
    /// The scope in which a limit counts this call. `None` if the limit does not apply.
    pub(crate) fn of_limit(&self, kind: LimitKind) -> Option<String> {
        Some(match kind {
            LimitKind::CostPerTurn | LimitKind::TokensPerTurn => {
                format!("turn/{}/{}", self.session, self.turn?)
            }
            LimitKind::CostPerSession => session_scope(self.session),
            LimitKind::CostPerDay | LimitKind::TokensPerDay => format!("day/{}", day_of(self.at)),
            LimitKind::CostPerMonth | LimitKind::TokensPerMonth => format!("month/{}", month_of(self.at)),
            LimitKind::CostTotal => TOTAL.to_owned(),
        })
    }

    /// The name under which passing the soft limit is remembered, for the period of the limit.
    pub(crate) fn soft_name(&self, kind: LimitKind) -> Option<String> {
        let scope = self.of_limit(kind)?;
        Some(match scope.split_once('/') {
            Some((_, period)) => format!("{}/{period}", kind.name()),
            None => kind.name().to_owned(),
        })
    }
}

/// The scope of a session's total.
pub(crate) fn session_scope(session: SessionId) -> String {
    format!("session/{session}")
}
