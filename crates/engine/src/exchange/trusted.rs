//! What is believed of a proxy in front of the server: whose request it passes on, and how the client has asked for it.

use std::net::IpAddr;

use baton_cache::{Arrival, Scheme};
use baton_http::RequestHead;
use baton_http::origin::{Claims, Hop};

use crate::plan::{Delegate, Terms};
use crate::transport::Transport;

impl Delegate {
    /// Whether the other end of the connection is such a proxy.
    pub(super) fn trusts(&self, client: &Transport) -> bool {
        self.trusts_address(client.peer().map(|peer| peer.ip()))
    }

    /// Whether the client has come over TLS, to this server or to such a proxy. `head`: the one that the client has sent.
    pub(super) fn is_https(&self, client: &Transport, head: &RequestHead<'_>) -> bool {
        said_https(self.trusts(client), head).unwrap_or_else(|| client.is_https())
    }

    /// The client's address as such a proxy has seen it.
    pub(super) fn claimed_address(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let hops = Claims::of(head).hops;
        let addresses = hops.iter().rev().map_while(|hop| match hop {
            Hop::Address(address, _) => Some(*address),
            Hop::Word(_) => None,
        });
        let mut addresses = addresses.peekable();
        let nearest = addresses.peek().copied();
        addresses.find(|address| !self.trusts_address(Some(*address))).or(nearest)
    }

    /// What the shared cache has to know of it.
    pub(super) fn arrival(&self, client: &Transport, head: &RequestHead<'_>) -> Arrival {
        self.arrival_from(client.peer().map(|peer| peer.ip()), client.is_https(), head)
    }

    /// What the shared cache has to know of a connection from this address; `None`: a Unix socket.
    pub fn arrival_from(&self, peer: Option<IpAddr>, is_https: bool, head: &RequestHead<'_>) -> Arrival {
        let is_trusted = self.trusts_address(peer);
        let is_https = said_https(is_trusted, head).unwrap_or(is_https);
        Arrival { scheme: if is_https { Scheme::Https } else { Scheme::Http }, is_trusted }
    }

    fn trusts_address(&self, peer: Option<IpAddr>) -> bool {
        let trusted = match &self.terms {
            Terms::Cgi(terms) => &terms.trusted,
            Terms::Proxy(terms) => &terms.trusted,
        };
        trusted.contains(peer)
    }
}

fn said_https(is_trusted: bool, head: &RequestHead<'_>) -> Option<bool> {
    is_trusted.then(|| Claims::of(head)).and_then(|claims| claims.is_https)
}
