//! What the model sees, as pure functions: no clock, no disk, no network.
//!
//! # What this crate promises
//!
//! - **Every call has exactly one result, and every result its call**, whatever the records say ([`normalise`]).
//! - **A context only grows at its end.** What [`normalise`] makes of a list of whole steps is the beginning of what it makes
//!   of any longer one, so a provider's cache holds and cost stays linear.
//! - **The same parts, the same prompt.** [`system_prompt`] depends on nothing but what it is given.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `prompt` | the system prompt |
//! | `notices` | what it is told of tasks: notifications of their ends, notes on those that run |
//! | `normalise` | a list of items that every provider accepts |
//! | `tokens` | how much room it takes: an estimate that learns from what providers count |

mod normalise;
mod notices;
mod prompt;
mod tokens;

pub use normalise::normalise;
pub use notices::{notification, running_tasks, waits_for_input};
pub use prompt::{Prompt, system_prompt};
pub use tokens::{Calibration, estimate, estimate_bytes, estimate_items};
