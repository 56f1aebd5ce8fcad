//! Longhaul in editors: the Agent Client Protocol (ACP), versions 1 and 2, over standard input and output.
//!
//! # What this crate promises
//!
//! - **A thin client.** It knows nothing of how a turn works: a prompt is an input in the inbox, and what the editor shows is what the records
//!   and live events say. So a session is the same in the editor, in the terminal and over HTTP, also at the same time.
//! - **The editor may die, the turn goes on** (E6). [`serve`] returns the sessions with unfinished work, and the program lets another process
//!   finish them. The table of kills is in `session`.
//! - **`session/load` shows the whole past**, asks open questions again, and lets a turn that no process runs go on. A message has the id of
//!   its record, so an editor can match what it has.
//! - **Bad input costs only its own answer.** A line that is not JSON or too long, an unknown method and a wrong type are answered with the error that
//!   JSON-RPC has for it, and the connection goes on.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `connection` | the loop: lines in, lines out, methods |
//! | `directory` | the sessions of the home: by the editor's id, and as a list |
//! | `session` | the task of one session: prompts, questions, choices |
//! | `editor_servers` | the MCP servers that the editor brings |
//! | `update` | records and live events become updates; pure |
//! | `prompt`, `question`, `options` | prompts as messages; questions as requests; modes and models |
//! | `wire` | JSON-RPC and the messages of the protocol |
//!
//! The messages are types of our own. The protocol's schema crate turns on a feature of `serde_json` that keeps the order of keys, for the
//! whole program, and with it the bytes of tool schemas and stored bodies would change.

mod connection;
mod directory;
mod editor_servers;
mod error;
mod options;
mod prompt;
mod question;
mod session;
mod update;
mod wire;

pub use connection::{OpenRuntime, serve};
