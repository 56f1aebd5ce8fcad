//! `longhaul mcp serve` and another agent, as real processes with pipes between them.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod client;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../desk.rs"]
mod desk;
mod input;
mod kills;
mod page;
#[path = "../resuming_processes.rs"]
mod resuming_processes;
