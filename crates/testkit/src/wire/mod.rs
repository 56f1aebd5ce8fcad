//! A model server that does what it is told, byte for byte: as a real server on loopback ([`ModelServer`]), and as a transport
//! without any network for tests under a paused clock ([`MemoryTransport`]).
//!
//! Both follow a [`Script`], which has a [`Reply`] to every request and remembers what was asked. What a model would say in
//! each of the four protocols is made by [`ScriptedAnswer`].

mod answers;
mod memory;
mod reply;
mod rules;
mod script;
mod server;

pub use answers::ScriptedAnswer;
pub use memory::MemoryTransport;
pub use reply::{End, Latch, Reply, ReplyPart};
pub use rules::RoleRule;
pub use script::{ReceivedRequest, Script};
pub use server::ModelServer;
