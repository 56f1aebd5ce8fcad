//! What helps people along: completions, the first run, the doctor, and a session as a page.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../desk.rs"]
mod desk;

mod completions;
mod doctor;
mod first_run;
mod report;
mod requests;
