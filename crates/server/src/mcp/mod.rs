//! Longhaul as an MCP server: other agents send to sessions, read them and answer their questions (E3).
//!
//! # What this module promises
//!
//! - **A turn is a task that survives us.** `session_send` puts an input into the inbox and answers with a task. The task's id names the
//!   session and the input's place in its inbox, so any process of the home finds the turn again, and nothing about a task is kept anywhere
//!   else.
//! - **The same key never runs a second turn.** A call that is repeated with its `key` is answered by the first call's turn.
//! - **What another agent sends is never a person's word** (P8): its inputs have the sender [`Sender::Agent`](longhaul_protocol::Sender).
//! - **A connection never owns a turn.** A client that goes away, or that gives a request up, ends its waiting and nothing else. Only
//!   `tasks/cancel` cancels a turn.
//! - **Every request stands alone.** Nothing is remembered between two requests, so a client of either revision goes on after our death as
//!   if nothing had happened.
//!
//! | a crash | is on disk | the client that asks again gets |
//! | --- | --- | --- |
//! | before the input is in the inbox | nothing | with `session_send` again: its first turn |
//! | after it, before the client has the task | the input with its key | with `session_send` and the same key: the same task |
//! | after that, before the turn begins | the input | `working`; the next process begins the turn |
//! | in the turn | its records | `working`; the next process goes on with it |
//! | while a question is open | the question | the same question |
//! | after an answer, before its acknowledgement | the answer, in the inbox | with the same answer again: an acknowledgement |
//! | in `tasks/cancel`, before its acknowledgement | maybe an order, in the inbox | `cancelled`; or `working`, and it cancels again |
//! | after the turn's end | the outcome | that outcome, however often it asks |
//!
//! Two revisions of the protocol are spoken, over HTTP and over standard input and output: 2026-07-28, which has no handshake and where
//! tasks are an extension, and those from 2025-03-26 to 2025-11-25, which begin with `initialize`.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `http`, `stdio` | the two transports |
//! | `request` | what a request says about its client: revision, capabilities, headers |
//! | `dispatch` | methods |
//! | `tools` | the tools and their arguments |
//! | `turn` | waiting for a turn; what a client gets of it |
//! | `task` | tasks: ids, states, and how each revision writes them |
//! | `question` | questions as elicitations, and their answers |
//! | `error` | errors with their codes |

mod dispatch;
mod error;
mod http;
mod question;
mod request;
mod stdio;
mod task;
mod tools;
mod turn;

pub(crate) use http::routes;
pub use stdio::serve_mcp;
