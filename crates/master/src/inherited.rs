//! Sockets that were open when this process began: from the service manager, or from the server that this one replaces.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use baton_engine::listen::ListenAddress;
use baton_engine::listen::address_of;
use baton_report::OperatorError;
use rustix::net::sockopt;

/// A listening socket that was passed to this process.
#[derive(Debug)]
pub(super) struct InheritedSocket {
    /// The configured address that the socket is for.
    pub(super) address: ListenAddress,
    /// The socket.
    pub(super) socket: OwnedFd,
    /// Whether a service manager opened it, which then also removes it.
    pub(super) managed: bool,
    /// Whether an IPv6 socket accepts IPv4, too.
    dual: bool,
}

impl InheritedSocket {
    /// A socket from the service manager: it stands for what it is bound to.
    ///
    /// # Errors
    /// If it is not a listening socket for clients.
    pub(super) fn from_service_manager(socket: OwnedFd) -> Result<Self, OperatorError> {
        let address =
            address_of(&socket).map_err(|error| OperatorError::of("use a socket that was passed", &error))?;
        Ok(Self::new(address, socket, true))
    }

    /// A socket from the server that this one replaces: it stands for the address in that server's configuration, where
    /// the port may be 0.
    pub(super) fn from_predecessor(configured: ListenAddress, socket: OwnedFd, managed: bool) -> Self {
        Self::new(configured, socket, managed)
    }

    fn new(address: ListenAddress, socket: OwnedFd, managed: bool) -> Self {
        let dual = sockopt::ipv6_v6only(&socket).is_ok_and(|v6only| !v6only);
        Self { address, socket, managed, dual }
    }

    /// Whether it listens for an IPv4 address that is not its own: `ListenStream=80` in a unit is `[::]:80` for both.
    pub(super) fn also_listens_on(&self, configured: &ListenAddress) -> bool {
        match (&self.address, configured) {
            (ListenAddress::Tcp(SocketAddr::V6(own)), ListenAddress::Tcp(SocketAddr::V4(configured))) => {
                let everywhere = own.ip().is_unspecified() && configured.ip().is_unspecified();
                self.dual && everywhere && own.port() == configured.port()
            }
            _ => false,
        }
    }
}
