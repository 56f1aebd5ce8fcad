//! JSON-RPC 2.0, as editors (ACP) and other agents (MCP) speak it to Longhaul.
//!
//! # What this crate promises
//!
//! - **A peer can send anything.** A message that is not JSON, is too long or has the wrong form is an error, with the code that JSON-RPC has
//!   for it and the id to answer to. It harms nothing else.
//! - **It knows no protocol.** Methods and their parameters are the business of the surface that reads the message.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `line` | reading lines of bounded length, and writing lines, each with one message |
//! | `message` | requests, notifications and replies |

mod line;
mod message;

pub use line::{Line, LineReader, MAX_LINE_BYTES, write_lines};
pub use message::{BadMessage, Message, MessageError, Params, RpcError, parse_message};
