//! Tasks and questions as people see them, through the real program. The records are written by hand and the keepers are real:
//! what is tested is what people touch, not how a command comes to be a task.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod asking;
mod desk;
mod listing;
mod talking;
mod waiting;
