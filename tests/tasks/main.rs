//! Tasks and questions through the real program, with real keepers.
//!
//! In `asking`, `listing`, `talking` and `waiting` the records are written by hand: what is tested is what people touch, not how a
//! command comes to be a task. In the others a model server on loopback asks for commands, and everything is as it is for users.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod asking;
mod desk;
mod forging;
mod listing;
mod looking;
mod lost;
mod many;
mod model;
mod processes;
mod refusing;
mod returning;
mod stories;
mod talking;
mod waiting;
