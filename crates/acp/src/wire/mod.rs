//! What goes over the wire: JSON-RPC, and the messages of the Agent Client Protocol that this crate reads or sends.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `rpc` | what goes to the editor: replies, notifications and requests |
//! | `params` | what the editor sends |
//! | `reply` | what the agent answers |
//! | `update` | what the agent shows: `session/update`, `session/request_permission` |
//! | `version2` | the same in version 2, for editors that ask for it |
//!
//! `tests/peers` checks every line that the program sends against the published schema.

pub(crate) mod params;
pub(crate) mod reply;
pub(crate) mod rpc;
pub(crate) mod update;
pub(crate) mod version2;

/// The version of the protocol that an editor speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ProtocolVersion {
    #[default]
    V1,
    V2,
}
