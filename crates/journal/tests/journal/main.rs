//! The journal's promises, held by tests that use it as others do: through the trait, with real files and real
//! processes. `sqlite` runs the suite for any engine
//! (`longhaul_journal::conformance`); the rest is what this engine must show besides.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod child;
mod random;
mod recording_vfs;

mod damage;
mod formats;
mod kill;
mod power_loss;
mod processes;
mod random_bytes;
mod restore;
mod sqlite;
mod toy_session;
mod traces;
mod trouble;
