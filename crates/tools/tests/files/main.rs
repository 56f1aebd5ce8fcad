//! The tools for files against real files, called as the runtime calls them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod arguments;
mod boundaries;
mod change_crashes;
mod changes;
mod crashes;
mod edit_file;
mod mounts;
mod protected;
mod races;
mod random_paths;
mod read_file;
mod search;
mod todo;
mod workplace;
mod write_file;
