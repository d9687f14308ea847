//! What is believed of a proxy in front of the server: whose request it passes on, and how the client has asked for it.

use baton_http::RequestHead;
use baton_http::origin::Claims;

use crate::plan::{Delegate, Terms};
use crate::transport::Transport;

impl Delegate {
    /// Whether the other end of the connection is such a proxy.
    pub(super) fn trusts(&self, client: &Transport) -> bool {
        let trusted = match &self.terms {
            Terms::Cgi(terms) => &terms.trusted,
            Terms::Proxy(terms) => &terms.trusted,
        };
        trusted.contains(client.peer().map(|peer| peer.ip()))
    }

    /// Whether the client has come over TLS, to this server or to such a proxy. `head`: the one that the client has sent.
    pub(super) fn is_https(&self, client: &Transport, head: &RequestHead<'_>) -> bool {
        let said = self.trusts(client).then(|| Claims::of(head)).and_then(|claims| claims.is_https);
        said.unwrap_or_else(|| client.is_https())
    }
}
