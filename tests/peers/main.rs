//! The real binary against programs that are not ours: a judge of a client's manners, a scripted server of four wire formats, a
//! small real model, judges of the HTTP server, nginx, the package that knows prices, two packages that know cron, the checker of
//! skills, and the conformance suite, the inspector and some servers of MCP. `scripts/peers` installs them, `scripts/test`
//! runs this.

#![allow(clippy::unwrap_used, reason = "a test that can't go on should stop")]

mod client_behaviour;
mod cron;
mod desk;
mod editors;
mod http_server;
#[path = "../installed.rs"]
mod installed;
mod mcp_clients;
mod mcp_conformance;
mod mcp_servers;
mod openai_clients;
mod prices;
mod reverse_proxy;
mod scenarios;
mod servers;
mod skills;
mod small_model;
