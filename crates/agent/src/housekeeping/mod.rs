//! Work that a runtime does while no user waits for it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `scheduler` | the loop that runs jobs when they are due: idle compaction, idle extraction, consolidation, retention, cleanup |
//! | `idle` | starting and stopping the scheduler, its interval and its status |
//! | `session_check` | the check of one session, and its jobs |
//! | `activity` | when a session was last active, by two clocks |
//! | `backoff` | exponential backoff by key, for everything that fails again and again |
//! | `retention` | moves sessions over the limits to the trash, and deletes them later |
//! | `cleanup` | removes the leftovers of commands a day after they have ended |
//! | `remove_tree` | removes a folder that a command has filled |

pub(crate) mod activity;
pub(crate) mod backoff;
pub(crate) mod cleanup;
pub(crate) mod idle;
pub(crate) mod remove_tree;
pub(crate) mod retention;
pub(crate) mod scheduler;
mod session_check;

pub use idle::IdleStatus;
pub use retention::{PruneMode, PruneReason, Pruned, Pruning, prune};
