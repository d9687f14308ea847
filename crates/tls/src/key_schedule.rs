//! What follows a handshake under TLS 1.3: new keys, and tickets from a server.

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{ConnectionTrafficSecrets, Error};

/// The library's part in an established connection.
pub(crate) enum KeySchedule {
    Server(Box<KernelConnection<ServerConnectionData>>),
    Client(Box<KernelConnection<ClientConnectionData>>),
}

impl KeySchedule {
    /// Of a connection that a client has made.
    pub(crate) fn of_server(keys: KernelConnection<ServerConnectionData>) -> Self {
        Self::Server(Box::new(keys))
    }

    /// Of a connection to an origin.
    pub(crate) fn of_client(keys: KernelConnection<ClientConnectionData>) -> Self {
        Self::Client(Box::new(keys))
    }

    pub(crate) fn update_rx_secret(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        match self {
            Self::Server(keys) => keys.update_rx_secret(),
            Self::Client(keys) => keys.update_rx_secret(),
        }
    }

    pub(crate) fn update_tx_secret(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        match self {
            Self::Server(keys) => keys.update_tx_secret(),
            Self::Client(keys) => keys.update_tx_secret(),
        }
    }

    /// Whether the peer may send tickets: it is a server.
    pub(crate) fn may_get_tickets(&self) -> bool {
        matches!(self, Self::Client(_))
    }

    /// Keeps a ticket for the next handshake. Returns whether it is well-formed, and from a server.
    pub(crate) fn handle_ticket(&mut self, payload: &[u8]) -> bool {
        match self {
            Self::Server(_) => false,
            Self::Client(keys) => keys.handle_new_session_ticket(payload).is_ok(),
        }
    }
}
