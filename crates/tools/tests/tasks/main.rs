//! Commands in the background, with real processes under real keepers, called as the runtime calls them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod workplace;

mod background;
mod output_search;
mod secrets;
mod task_end;
mod task_limit;
mod task_list;
mod task_output;
mod task_wait;
