//! P3: commands that try to leave the scope, and programs that must work within it. Real processes throughout.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod workplace;

mod builds;
mod caches;
mod escape_attempts;
mod git;
mod modes;
