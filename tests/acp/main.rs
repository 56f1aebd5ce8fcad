//! `longhaul acp` and an editor, as real processes with pipes between them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../desk.rs"]
mod desk;
mod editor;
mod handover;
mod input;
mod load;
mod page;
mod questions;
#[path = "../resuming_processes.rs"]
mod resuming_processes;
mod servers;
mod turns;
mod version2;
