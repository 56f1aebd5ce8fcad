//! The journal on a real PostgreSQL server: the suite of every engine, with and without a pooler, and what this engine must show
//! besides.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod cutting_proxy;
mod database;

mod bad_input;
mod copies;
mod direct;
mod faults;
mod histories;
mod node_links;
mod nodes;
mod pooled;
mod process_histories;
mod wakes;
