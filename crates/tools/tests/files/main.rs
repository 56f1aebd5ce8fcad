//! The tools for files against real files, called as the runtime calls them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod arguments;
mod borders;
mod chance;
mod crashes;
mod editing;
mod mounts;
mod protected;
mod races;
mod reading;
mod searching;
mod todo;
mod workplace;
mod writing;
