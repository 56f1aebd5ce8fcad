//! Amounts of tokens and money, and the periods in which they are counted. Pure.

use longhaul_protocol::At;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) tokens: u64,
    /// Billionths of a US dollar, so that sums are exact.
    pub(crate) nano: u64,
}

impl Amount {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { tokens: self.tokens.saturating_add(other.tokens), nano: self.nano.saturating_add(other.nano) }
    }

    pub(crate) fn of(self, unit: Unit) -> u64 {
        match unit {
            Unit::Tokens => self.tokens,
            Unit::Cost => self.nano,
        }
    }
}

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Tokens,
    /// Billionths of a US dollar.
    Cost,
}

/// Converts dollars to billionths. The nearest one, so that an amount survives its way through a record.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cost below 0 is 0")]
pub(crate) fn nano(dollars: f64) -> u64 {
    (dollars * 1e9).round() as u64
}

#[allow(clippy::cast_precision_loss, reason = "exact up to nine million dollars")]
pub(crate) fn dollars(nano: u64) -> f64 {
    nano as f64 / 1e9
}

/// The day of a moment in UTC, as `2026-11-17`.
pub(crate) fn day_of(at: At) -> String {
    date_prefix(at, "2026-11-17".len())
}

/// The month of a moment in UTC, as `2026-11`.
pub(crate) fn month_of(at: At) -> String {
    date_prefix(at, "2026-11".len())
}

fn date_prefix(at: At, length: usize) -> String {
    let mut text = at.to_string();
    text.truncate(length);
    text
}
