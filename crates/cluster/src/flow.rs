//! What a connection is known by.

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};

/// A connection's number at one agent, never used again by it. Another agent's number for the same connection is another one.
pub type FlowId = u64;

/// The two ends of a connection, by which the kernel knows its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tuple {
    /// The client's end.
    pub client: SocketAddr,
    /// The end that front-ends and nodes have in common.
    pub server: SocketAddr,
}

impl Tuple {
    /// The tuple of a socket with these ends. A socket that serves both families writes addresses of IPv4 as ones of IPv6;
    /// packets do not. `None`: the ends are of different families, or not those of one connection.
    pub fn new(client: SocketAddr, server: SocketAddr) -> Option<Self> {
        let (client, server) = (canonical(client), canonical(server));
        (client.is_ipv4() == server.is_ipv4() && client != server).then_some(Self { client, server })
    }
}

impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.client, self.server)
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match Ipv6Addr::to_canonical(v6.ip()) {
            std::net::IpAddr::V4(ip) => SocketAddr::from((ip, v6.port())),
            std::net::IpAddr::V6(ip) => SocketAddrV6::new(ip, v6.port(), 0, 0).into(),
        },
    }
}
