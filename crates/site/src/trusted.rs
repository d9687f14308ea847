//! What is believed of a proxy in front of the server: whose request it passes on, and how the client has asked for it.

use std::net::IpAddr;

use baton_cache::{Arrival, Scheme};
use baton_http::RequestHead;
use baton_http::origin::{Claims, Hop};

use crate::plan::{Delegate, Terms};

impl Delegate {
    /// Whether the other end of the connection is such a proxy; `None`: one on a Unix socket.
    pub fn trusts(&self, peer: Option<IpAddr>) -> bool {
        let trusted = match &self.terms {
            Terms::Cgi(terms) => &terms.trusted,
            Terms::Proxy(terms) => &terms.trusted,
        };
        trusted.contains(peer)
    }

    /// Whether the client has come over TLS, to this server (`is_https`) or to such a proxy.
    /// `head`: the one that the client has sent.
    pub fn is_https(&self, peer: Option<IpAddr>, is_https: bool, head: &RequestHead<'_>) -> bool {
        said_https(self.trusts(peer), head).unwrap_or(is_https)
    }

    /// The client's address as such a proxy has seen it.
    pub fn claimed_address(&self, head: &RequestHead<'_>) -> Option<IpAddr> {
        let hops = Claims::of(head).hops;
        let addresses = hops.iter().rev().map_while(|hop| match hop {
            Hop::Address(address, _) => Some(*address),
            Hop::Word(_) => None,
        });
        let mut addresses = addresses.peekable();
        let nearest = addresses.peek().copied();
        addresses.find(|address| !self.trusts(Some(*address))).or(nearest)
    }

    /// What the shared cache has to know of a connection from this address; `None`: a Unix socket.
    pub fn arrival(&self, peer: Option<IpAddr>, is_https: bool, head: &RequestHead<'_>) -> Arrival {
        let is_https = self.is_https(peer, is_https, head);
        Arrival { scheme: if is_https { Scheme::Https } else { Scheme::Http }, is_trusted: self.trusts(peer) }
    }
}

fn said_https(is_trusted: bool, head: &RequestHead<'_>) -> Option<bool> {
    is_trusted.then(|| Claims::of(head)).and_then(|claims| claims.is_https)
}
