//! The client that a request is explained for. Guards, origins and applications see this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use baton_engine::ListenAddress;

/// The one that was asked for, or else one of this host. A client of a Unix socket has no address.
pub(super) fn of(asked: Option<IpAddr>, listener: &ListenAddress) -> Option<IpAddr> {
    let own = match listener {
        ListenAddress::Tcp(address) if address.is_ipv4() => Some(Ipv4Addr::LOCALHOST.into()),
        ListenAddress::Tcp(_) => Some(Ipv6Addr::LOCALHOST.into()),
        ListenAddress::Unix(_) => None,
    };
    asked.or(own)
}

/// What a load balancer would say of the client's connection. Its ports and the server's address are made up.
pub(super) fn announcement(client: IpAddr) -> String {
    match client.to_canonical() {
        IpAddr::V4(client) => format!("PROXY TCP4 {client} 127.0.0.1 1 1\r\n"),
        IpAddr::V6(client) => format!("PROXY TCP6 {client} ::1 1 1\r\n"),
    }
}

/// The client in words, to be put behind what it leads to.
pub(super) fn told(asked: Option<IpAddr>, client: Option<IpAddr>) -> String {
    match (asked, client) {
        (Some(client), _) => format!("from {client}"),
        (None, Some(client)) => format!("from {client} (--from ADDRESS asks for another client)"),
        (None, None) => "from a client of this host, which has no address".to_owned(),
    }
}
