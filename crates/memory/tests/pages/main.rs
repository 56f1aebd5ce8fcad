//! Pages of memory, with the real journal: what people do to them, what the machine does, and their files.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod consolidation;
mod edits;
mod fixtures;
mod mirror;
mod mishaps;
