//! The server over real sockets, with the real journal. Only the model is scripted.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod attacks;
mod document;
mod limits;
mod probes;
mod sign_in;
mod test_server;
mod tls;

#[test]
#[ignore = "a part that keepers play in other processes"]
fn keeper_process() {
    longhaul_agent::keeper::keep_here()
}
