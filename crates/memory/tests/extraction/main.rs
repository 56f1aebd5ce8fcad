//! Extraction against the real journal. Only the model is made up.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod answers;
mod counts;
mod poison;
mod ranges;
mod schedules;
mod scripted_model;
mod staged;
