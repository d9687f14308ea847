//! What the programs have in common: protocols, the one cipher, the file, what was made.

use std::time::Duration;

use crate::experiment::ProtocolName;

/// What was asked of a server.
#[derive(Debug)]
pub(in crate::runner) struct Made {
    pub(in crate::runner) requests: u64,
    /// Of bodies.
    pub(in crate::runner) bytes: u64,
    pub(in crate::runner) elapsed: Duration,
    pub(in crate::runner) client_cpu: Duration,
    /// Memory of the server for an idle connection, where the load has some.
    pub(in crate::runner) idle_bytes: Option<f64>,
}

/// In a URL, and in ALPN; `h2c`, which is in clear and has no ALPN, is its name in the reports of h2load.
pub(super) fn names(protocol: ProtocolName) -> (&'static str, &'static str) {
    match protocol {
        ProtocolName::Http1Tls => ("https", "http/1.1"),
        ProtocolName::Http2Tls => ("https", "h2"),
        ProtocolName::Http2Clear => ("http", "h2c"),
    }
}

/// The file of the handshakes and of connections that fall idle, and its length in bytes.
pub(super) const SMALL: (&str, u64) = ("/1k.html", 1 << 10);

/// The one cipher that clients offer; the first choice of browsers.
pub(super) const CIPHER: &str = "TLS_AES_128_GCM_SHA256";
