//! Whether a model call may be made within the limits. Pure.

use longhaul_model::{PriceBound, Prices};
use longhaul_protocol::Limit;

use super::amount::{Amount, Unit};
use super::fold::LedgerFold;
use super::limits::{CallScope, LimitKind, SpendLimit, SpendLimits, soft_name};

/// An answer is never given less room than this, in tokens.
pub(crate) const MIN_ANSWER_TOKENS: u64 = 1_024;

/// The most that a call can use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CallBound {
    /// Input tokens, as counted before the call.
    pub(crate) input: u64,
    /// The most tokens of the answer.
    pub(crate) max_output: u64,
    /// `None` if no price is known.
    pub(crate) price: Option<PriceBound>,
}

impl CallBound {
    pub(crate) fn new(input: u64, max_output: u64, prices: Option<&Prices>) -> Self {
        Self { input, max_output, price: prices.map(|prices| prices.bound(input)) }
    }

    /// The same call with another room for the answer.
    pub(crate) fn with_answer(self, max_output: u64) -> Self {
        Self { max_output, ..self }
    }

    /// The least room that the answer may be given.
    fn min_answer(&self) -> u64 {
        self.max_output.min(MIN_ANSWER_TOKENS)
    }

    pub(crate) fn cost_nano(&self) -> Option<u64> {
        let price = self.price?;
        #[allow(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
        let cost = price.input + self.max_output as f64 * price.output_token;
        Some(ceil_nano(cost))
    }

    pub(crate) fn amount(&self) -> Amount {
        Amount { tokens: self.input.saturating_add(self.max_output), nano: self.cost_nano().unwrap_or(0) }
    }

    /// The largest room for the answer with which the call uses at most `left`. `None` if not even the input fits.
    fn answer_within(&self, unit: Unit, left: u64) -> Option<u64> {
        let room = match (unit, self.price) {
            (Unit::Tokens, _) => left.checked_sub(self.input)?,
            // Without a price, the limit does not hold.
            (Unit::Cost, None) => u64::MAX,
            (Unit::Cost, Some(price)) => {
                let left = left.checked_sub(ceil_nano(price.input))?;
                let each = price.output_token * 1e9;
                #[allow(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the room is at most what was asked for"
                )]
                if each > 0.0 { (left as f64 / each).floor() as u64 } else { u64::MAX }
            }
        };
        // Rounding must not make the whole call cost a billionth too much.
        let fits = |room: u64| self.with_answer(room).amount().of(unit) <= left;
        let room = room.min(self.max_output);
        if fits(room) { Some(room) } else { room.checked_sub(1).filter(|less| fits(*less)) }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost below 0 is 0")]
fn ceil_nano(dollars: f64) -> u64 {
    // A product of prices such as 0.3 has an error in its last digits, which is no billionth more.
    (dollars * 1e9 - 1e-3).ceil() as u64
}

/// Who waits for a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Urgency {
    /// A turn, or a person. What happens before a soft limit is passed.
    Foreground { at_soft: AtSoftLimit },
    /// No one. The call is made only if a further one of the session's model still fits.
    Background { further: CallBound },
}

/// What happens when a call that someone waits for would pass a soft limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtSoftLimit {
    /// A person is asked first.
    Ask,
    /// The call is made, and the session gets a warning.
    Warn,
    /// The call is made, and the next call of its turn asks or warns: a question now would stop the turn halfway.
    LeaveToNextCall,
}

/// A call for which a reservation is wanted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WantedCall {
    pub(crate) scope: CallScope,
    pub(crate) bound: CallBound,
    pub(crate) urgency: Urgency,
    /// Soft limits that a person has agreed to pass.
    pub(crate) consents: Vec<String>,
}

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fits {
        /// The most tokens of the answer.
        max_output: u64,
        /// Soft limits that it passes for the first time.
        past_soft: Vec<String>,
    },
    /// It may fit once other calls are settled.
    Wait,
    Reached(LimitReached),
    /// A person has to agree first that these soft limits are passed.
    Ask(SoftLimits),
}

/// The limit that a call would pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitReached {
    /// The limit in the outcome of the turn.
    pub limit: Limit,
    /// Which limit it is, and how to go on.
    pub text: String,
}

/// Soft limits that a call would pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoftLimits {
    /// Names of the limits with their periods.
    pub names: Vec<String>,
    /// The question to the person.
    pub text: String,
}

impl LimitReached {
    /// A person said no to passing these soft limits.
    pub(crate) fn refused(names: &[String]) -> Self {
        let kind = names.first().and_then(|name| LimitKind::of_soft_name(name));
        let kind = kind.unwrap_or(LimitKind::CostTotal);
        let (name, next) = (kind.setting(), kind.next_step());
        let text = format!("you said no to passing the soft limit of {name}; {next}");
        Self { limit: kind.outcome(), text }
    }
}

/// How much room a limit leaves for the answer.
enum Room {
    Answer(u64),
    /// There will be room if other calls use less than they reserved.
    Later,
    None,
}

/// Whether a call may be made, and with how much room for its answer.
pub(crate) fn judge(fold: &LedgerFold, limits: &SpendLimits, call: &WantedCall) -> Verdict {
    let mut max_output = call.bound.max_output;
    let mut waits = false;
    let mut asked = Vec::new();
    let mut past_soft = Vec::new();
    for (limit, scope) in limits.applying_to(&call.scope) {
        let Some(used) = Used::of(fold, limit, &scope, call) else { continue };
        match used.room(call, limit.max) {
            Room::Answer(room) => max_output = max_output.min(room),
            Room::Later if matches!(call.urgency, Urgency::Foreground { .. }) => waits = true,
            Room::Later | Room::None => {
                let limit_text = limit.reached_text(used.settled.saturating_add(used.open));
                return Verdict::Reached(LimitReached { limit: limit.kind.outcome(), text: limit_text });
            }
        }
        let Some((name, max)) = soft_limit(fold, limits, limit, &scope) else { continue };
        if call.consents.contains(&name) {
            past_soft.push(name);
            continue;
        }
        match (used.room(call, max), call.urgency) {
            // Someone waits for the answer, and it is not cut short only to put off a question.
            (Room::Answer(_), Urgency::Foreground { .. }) => {}
            (Room::Answer(room), Urgency::Background { .. }) => max_output = max_output.min(room),
            (Room::Later, Urgency::Foreground { .. }) => waits = true,
            (Room::None, Urgency::Foreground { .. }) if fold.is_refused(&name) => {
                return Verdict::Reached(LimitReached::refused(&[name]));
            }
            (Room::None, Urgency::Foreground { at_soft }) => match at_soft {
                AtSoftLimit::Ask => asked.push((name, limit, used)),
                AtSoftLimit::Warn => past_soft.push(name),
                AtSoftLimit::LeaveToNextCall => {}
            },
            (Room::Later | Room::None, Urgency::Background { .. }) => {
                let text = format!("the soft limit of {} is reached", limit.kind.setting());
                return Verdict::Reached(LimitReached { limit: limit.kind.outcome(), text });
            }
        }
    }
    if waits {
        return Verdict::Wait;
    }
    if !asked.is_empty() {
        return Verdict::Ask(question_about(limits.soft, asked));
    }
    Verdict::Fits { max_output, past_soft }
}

/// The soft limit that is not passed yet: its name and its amount.
fn soft_limit(
    fold: &LedgerFold,
    limits: &SpendLimits,
    limit: SpendLimit,
    scope: &str,
) -> Option<(String, u64)> {
    let has_none = matches!(limit.kind, LimitKind::AgentBudget | LimitKind::CostPerRun);
    if limits.soft <= 0.0 || has_none {
        return None;
    }
    let name = Some(soft_name(limit.kind, scope)).filter(|name| !fold.is_past_soft(name))?;
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the limit"
    )]
    let max = (limit.max as f64 * limits.soft.min(1.0)) as u64;
    Some((name, max))
}

/// What is used of a limit, in its unit.
struct Used {
    unit: Unit,
    settled: u64,
    open: u64,
}

impl Used {
    /// `None` if no price is known for a limit in money.
    fn of(fold: &LedgerFold, limit: SpendLimit, scope: &str, call: &WantedCall) -> Option<Self> {
        let unit = limit.kind.unit();
        if unit == Unit::Cost && call.bound.price.is_none() {
            return None;
        }
        let (settled, open) = fold.used(scope);
        Some(Self { unit, settled: settled.of(unit), open: open.of(unit) })
    }

    fn room(&self, call: &WantedCall, max: u64) -> Room {
        let further = match call.urgency {
            Urgency::Background { further } => {
                further.with_answer(further.min_answer()).amount().of(self.unit)
            }
            Urgency::Foreground { .. } => 0,
        };
        let answer_with = |reserved: u64| {
            let left = max.checked_sub(self.settled.saturating_add(reserved).saturating_add(further))?;
            call.bound.answer_within(self.unit, left).filter(|room| *room >= call.bound.min_answer())
        };
        match (answer_with(self.open), answer_with(0)) {
            (Some(room), _) => Room::Answer(room),
            (None, Some(_)) => Room::Later,
            (None, None) => Room::None,
        }
    }
}

fn question_about(soft: f64, asked: Vec<(String, SpendLimit, Used)>) -> SoftLimits {
    let part = |(_, limit, used): &(String, SpendLimit, Used)| {
        let (name, max) = (limit.kind.setting(), limit.amount_text(limit.max));
        let used = limit.amount_text(used.settled.saturating_add(used.open));
        format!("{name} ({used} of {max} used)")
    };
    let parts: Vec<String> = asked.iter().map(part).collect();
    let text =
        format!("The next model call would pass {:.0}% of {}. Go on?", soft * 100.0, parts.join(" and of "));
    SoftLimits { names: asked.into_iter().map(|(name, ..)| name).collect(), text }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
