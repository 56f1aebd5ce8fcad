//! What goes over the wire: JSON-RPC, and the messages of the Agent Client Protocol, version 1, that this crate reads or sends.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `line` | lines of bounded length |
//! | `rpc` | requests, notifications and replies, in both directions |
//! | `params` | what the editor sends |
//! | `reply` | what the agent answers |
//! | `update` | what the agent shows: `session/update`, `session/request_permission` |
//!
//! `tests/peers` checks every line that the program sends against the published schema.

pub(crate) mod line;
pub(crate) mod params;
pub(crate) mod reply;
pub(crate) mod rpc;
pub(crate) mod update;

/// The version of the protocol.
pub(crate) const PROTOCOL_VERSION: u16 = 1;
