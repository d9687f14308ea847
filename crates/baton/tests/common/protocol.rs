//! What clients speak: HTTP/1 or HTTP/2, in clear or over TLS.

use std::fmt;

/// A version of HTTP and what carries it, named as in ALPN and Alt-Svc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.1 in clear.
    Http,
    /// HTTP/1.1 over TLS.
    Https,
    /// HTTP/2 in clear, with prior knowledge.
    H2c,
    /// HTTP/2 over TLS.
    H2,
}

impl Protocol {
    pub(crate) const ALL: [Self; 4] = [Self::Http, Self::Https, Self::H2c, Self::H2];

    pub(crate) fn is_secure(self) -> bool {
        matches!(self, Self::Https | Self::H2)
    }

    pub(crate) fn is_http2(self) -> bool {
        matches!(self, Self::H2c | Self::H2)
    }

    pub(crate) fn scheme(self) -> &'static str {
        if self.is_secure() { "https" } else { "http" }
    }

    /// As logs and applications are told.
    pub(crate) fn version(self) -> &'static str {
        if self.is_http2() { "HTTP/2.0" } else { "HTTP/1.1" }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}
