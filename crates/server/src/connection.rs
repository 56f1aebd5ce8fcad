//! What a request's connection is known by.

use std::net::SocketAddr;
use std::sync::Arc;

use longhaul_agent::keeper::is_client_a_command;
use tokio::sync::OnceCell;

/// The connection of a request. Every request has it as an extension.
#[derive(Debug, Clone)]
pub(crate) struct Connection {
    /// The client, or the proxy before it.
    pub(crate) peer: SocketAddr,
    /// The address that the client reached.
    pub(crate) local: SocketAddr,
    pub(crate) is_tls: bool,
    is_of_command: Arc<OnceCell<bool>>,
}

impl Connection {
    pub(crate) fn new(peer: SocketAddr, local: SocketAddr, is_tls: bool) -> Self {
        Self { peer, local, is_tls, is_of_command: Arc::default() }
    }

    /// Whether a command of an agent is the client. The first call takes some milliseconds.
    pub(crate) async fn is_of_command(&self) -> bool {
        let (peer, local) = (self.peer, self.local);
        let look = || async move {
            let looked = tokio::task::spawn_blocking(move || is_client_a_command(peer, local)).await;
            // The runtime ends.
            looked.unwrap_or(true)
        };
        *self.is_of_command.get_or_init(look).await
    }
}
