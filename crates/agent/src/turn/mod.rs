//! Acting: what the worker does in a turn.

pub(crate) mod approval;
pub(crate) mod attempt;
pub(crate) mod budget;
pub(crate) mod fallback;
pub(crate) mod full_output;
pub(crate) mod outcome;
pub(crate) mod request;
pub(crate) mod tool_calls;
