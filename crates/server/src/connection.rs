//! What a request's connection is known by.

use std::net::SocketAddr;

/// The connection of a request. Every request has it as an extension.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    /// The client, or the proxy before it.
    pub(crate) peer: SocketAddr,
    /// The address that the client reached.
    pub(crate) local: SocketAddr,
    pub(crate) is_tls: bool,
}
