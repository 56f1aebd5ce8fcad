//! For tests only: homes, a journal that can crash and refuse, models that wait, a scripted model server, and invariants that hold for
//! every session whatever happened to it.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `test_home` | a home and a work folder that are removed with the test |
//! | `history` | a session of thousands of turns, without asking a model for them |
//! | `journal` | a real journal with fault injection: it crashes or refuses at a given append |
//! | `mcp` | MCP servers, as programs of their own |
//! | `model` | models that wait at a gate, that record their requests, and that play a script for each session |
//! | `terminal`, `screen`, `screen_svg` | a program in a terminal of its own; the screen that a user sees, and as SVG |
//! | `postgres_server` | a PostgreSQL server that all tests share or that one test has alone, and a pooler |
//! | `random` | random numbers with a printed seed |
//! | `clock` | a library that gives a program another time |
//! | `embedding_server` | a server with `/v1/embeddings` that knows a few synonyms |
//! | `events` | collecting the events of a session |
//! | `invariants` | what must hold for the records of any session |
//! | `web_server` | a web server on loopback that answers with given bytes |
//! | [`wire`] | a scripted model server on loopback, and the same as a transport in memory, byte for byte |

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that can't go on should stop")]

mod clock;
mod embedding_server;
mod events;
mod history;
mod invariants;
mod journal;
mod mcp;
mod model;
mod postgres_server;
mod random;
mod screen;
mod screen_svg;
mod terminal;
mod test_home;
mod web_server;
pub mod wire;

pub use clock::faketime_library;
pub use embedding_server::{EmbeddingManner, EmbeddingServer};
pub use events::{collect_until, ended_turn};
pub use history::repeat_turn;
pub use invariants::{broken_rules, of_newest_epoch, records_of};
pub use journal::{Crash, CrashMoment, FaultyJournal, RecordTimes};
pub use mcp::{McpHttpServer, write_mcp_server};
pub use model::{GatedModel, ModelGate, RecordingModel, RoutedModel};
pub use postgres_server::{PgBouncer, PostgresServer, StopMode};
pub use random::SeededRandom;
pub use screen::TerminalScreen;
pub use terminal::Terminal;
pub use test_home::{TaskProcesses, TestHome};
pub use web_server::{WebReply, WebServer, web_page, web_redirect};
