//! What a session is: the state that its records fold into, and what to do next. No async, no clock, no I/O.

pub(crate) mod apply;
pub(crate) mod carry_over;
pub(crate) mod decide;
pub(crate) mod events;
#[cfg(test)]
#[path = "fixtures_tests.rs"]
pub(crate) mod fixtures;
pub(crate) mod repeats;
pub(crate) mod state;
pub(crate) mod tasks;
pub(crate) mod work;
