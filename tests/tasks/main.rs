//! Tasks and questions through the real program, with real keepers.
//!
//! In `questions`, `list`, `chat` and `wait` the records are written by hand: what is tested is what people touch, not how a
//! command comes to be a task. In the others a model server on loopback asks for commands, and everything is as it is for users.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod chat;
mod crashes;
mod desk;
mod forged_output;
mod list;
mod lost_keepers;
mod many;
mod model;
mod processes;
mod questions;
mod read_only;
mod refusals;
mod scenarios;
mod wait;
