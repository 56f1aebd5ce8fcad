//! The state of a session, which its records fold into, and the decision about the next action. No async, no clock,
//! no I/O.

pub(crate) mod apply;
pub(crate) mod carry_over;
pub(crate) mod decide;
pub(crate) mod events;
#[cfg(test)]
#[path = "fixtures_tests.rs"]
pub(crate) mod fixtures;
pub(crate) mod permission;
pub(crate) mod repeats;
pub(crate) mod state;
pub(crate) mod tasks;
pub(crate) mod work;

pub use crate::compaction::plan::{
    Compaction, CompactionRequest, CompactionTrigger, ContextLimits, next_prompt_tokens,
};
pub use crate::compaction::plan_compaction;
pub use crate::replay::{catch_up, load, load_through};
pub use decide::{Action, BudgetCheck, Policy, TurnEnding, TurnLimits, decide};
pub use events::event_of;
pub use longhaul_context::{CompactionThresholds, ContextBreakdown, ContextBudget};
pub use repeats::RepeatDetector;
pub use state::{
    Attempt, CallState, Epoch, ProviderCount, SessionCreation, State, TokenCounting, TruncatedPrompt, Turn,
    TurnRequest,
};
pub use tasks::{EndNotice, SessionTasks, TaskState};
pub use work::Work;
