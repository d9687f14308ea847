//! How the server answers clients: the configurations of the library, chosen by the name that a client asks for.

use std::sync::Arc;

use rustls::ServerConfig;

/// A protocol above TLS, as clients and servers agree on it (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `h2`
    Http2,
    /// `http/1.1`
    Http11,
}

/// The configurations of a listener.
#[derive(Debug)]
pub struct Server {
    pub(crate) names: Vec<String>,
    pub(crate) terms: Terms,
}

/// The terms on which a site meets clients.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// For the library.
    pub(crate) config: Arc<ServerConfig>,
}

impl Server {
    /// The terms for a client that asks for this name; `None`: no certificate is for it.
    pub(crate) fn terms(&self, name: Option<&str>) -> Option<&Terms> {
        name.is_none_or(|name| self.names.iter().any(|known| known == name)).then_some(&self.terms)
    }
}
