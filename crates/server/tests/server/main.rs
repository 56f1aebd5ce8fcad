//! The server over real sockets, with the real journal. Only the model is scripted.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod agent_questions;
mod attacks;
mod cluster;
mod console_lists;
mod content;
mod docs;
mod document;
mod event_client;
mod events;
mod inputs;
mod installation;
mod killed;
mod limits;
mod mcp;
mod mcp_killed;
mod mcp_questions;
mod memory;
mod nodes;
mod openai;
mod openai_followers;
mod openai_models;
mod openai_plans;
mod openai_retries;
mod openai_scopes;
mod probes;
mod schedules;
mod session_states;
mod sessions;
mod sign_in;
mod statement;
mod tasks;
mod test_server;
mod tls;

#[test]
#[ignore = "a part that servers play in other processes"]
fn server_process() {
    killed::serve_here();
}

#[test]
#[ignore = "a part that keepers play in other processes"]
fn keeper_process() {
    longhaul_agent::keeper::keep_here()
}
