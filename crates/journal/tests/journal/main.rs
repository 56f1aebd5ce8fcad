//! The journal's promises, held by tests that use it as others do: through the trait, with real files and real
//! processes. `conformance` is for any engine; the rest is what this engine must show besides.

mod chance;
mod child;
mod conformance;

mod damage;
mod formats;
mod kill;
mod processes;
mod random_bytes;
mod restore;
mod sqlite;
mod toy_session;
mod traces;
mod trouble;
