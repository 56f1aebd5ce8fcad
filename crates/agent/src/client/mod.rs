//! One handle to a session, for programs: send, follow, cancel, answer.

pub(crate) mod cancel;
pub(crate) mod context_report;
pub(crate) mod follow;
pub(crate) mod questions;
pub(crate) mod session;
mod tasks;
pub(crate) mod watch;

pub use tasks::Settled;
