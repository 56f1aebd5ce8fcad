//! Commands in the background, with real processes under real keepers, called as the runtime calls them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod place;

mod ending;
mod going_on;
mod grepping;
mod listing;
mod many;
mod reading;
mod secrets;
mod waiting;
