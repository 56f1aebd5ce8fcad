//! The cost of a session or a turn: the sum of its tokens and of its money.

use longhaul_protocol::Usage;
use serde::Serialize;

use crate::text::{format_count, format_number};

/// The largest sum of costs, in US dollars. The scale of a chart needs a bound.
const MAX_COST: f64 = 1e15;

/// Tokens and cost of several attempts. Unknown amounts are not counted, and the text says so.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionCost {
    input: u64,
    output: u64,
    cached: u64,
    /// US dollars, as far as prices are known.
    pub cost: Option<f64>,
    /// Attempts whose price is not known.
    pub unpriced: u64,
    /// Some provider reported tokens.
    #[serde(skip)]
    is_reported: bool,
    /// The model was not called, so that nothing is unknown.
    #[serde(skip)]
    has_no_call: bool,
}

impl SessionCost {
    /// Nothing, because the model was not called.
    pub(crate) fn of_no_call() -> Self {
        Self { has_no_call: true, ..Self::default() }
    }

    pub fn add(&mut self, usage: &Usage) {
        self.input = self.input.saturating_add(usage.input.unwrap_or(0));
        self.output = self.output.saturating_add(usage.output.unwrap_or(0));
        self.cached = self.cached.saturating_add(usage.cached.unwrap_or(0));
        self.is_reported |= usage.input.is_some() || usage.output.is_some();
        self.add_price(usage.cost);
    }

    /// Tokens sent and received.
    pub fn tokens(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds the price of one attempt, in US dollars, without its tokens.
    pub fn add_price(&mut self, price: Option<f64>) {
        match price {
            Some(price) => self.cost = Some((self.cost.unwrap_or(0.0) + price).clamp(0.0, MAX_COST)),
            None => self.unpriced += 1,
        }
    }
}

/// `1,234 tokens in (1,000 cached), 56 out, $0.0123`.
impl std::fmt::Display for SessionCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.has_no_call {
            return f.write_str("nothing spent");
        }
        if !self.is_reported {
            return f.write_str("tokens unknown");
        }
        write!(f, "{} in", format_count(self.input, "token"))?;
        if self.cached > 0 {
            write!(f, " ({} cached)", format_number(self.cached))?;
        }
        write!(f, ", {} out", format_number(self.output))?;
        match (self.cost, self.unpriced) {
            (Some(cost), 0) => write!(f, ", {}", format_money(cost)),
            (Some(cost), _) => write!(f, ", at least {}", format_money(cost)),
            (None, _) => Ok(()),
        }
    }
}

/// An amount in US dollars.
pub fn format_money(dollars: f64) -> String {
    if dollars < 1.0 { format!("${dollars:.4}") } else { format!("${dollars:.2}") }
}

#[cfg(test)]
#[path = "cost_tests.rs"]
mod tests;
