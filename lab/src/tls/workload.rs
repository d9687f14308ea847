//! The loads with TLS and HTTP/2.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::Serialize;

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum TlsWorkload {
    /// 1 KB, HTTP/1.1 over TLS, 32 connections.
    Small,
    /// 16 KB, HTTP/1.1 over TLS, 32 connections.
    Page,
    /// 1 MB, HTTP/1.1 over TLS, 8 connections.
    Large,
    /// 1 KB, HTTP/2 over TLS, 8 connections with 100 streams each.
    H2Small,
    /// 16 KB, HTTP/2 over TLS, 8 connections with 32 streams each.
    H2Page,
    /// 1 MB, HTTP/2 over TLS, 8 connections with 4 streams each.
    H2Large,
    /// As `h2-small`, in clear.
    H2cSmall,
    /// As `h2-page`, in clear.
    H2cPage,
    /// As `h2-large`, in clear.
    H2cLarge,
    /// A full handshake, a request of 1 KB, and the end of the connection.
    Full,
    /// A handshake that resumes an earlier session, a request of 1 KB, and the end of the connection.
    Resumed,
    /// 9,600 connections with TLS that are opened one after the other, make a request and stay open.
    Idle,
}

/// What makes the load, and with which figures.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Requests(Requests),
    Handshakes { resumed: bool },
    IdleConnections(usize),
}

/// Requests that follow each other on kept connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requests {
    pub(super) protocol: Protocol,
    pub(super) connections: usize,
    /// Requests at the same time on each connection.
    pub(super) streams: usize,
    pub(super) path: &'static str,
    pub(super) bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1Tls,
    Http2Tls,
    Http2Clear,
}

/// What was asked of a server.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) requests: u64,
    /// Of bodies.
    pub(super) bytes: u64,
    pub(super) elapsed: Duration,
    pub(super) client_cpu: Duration,
}

impl TlsWorkload {
    pub(super) fn kind(self) -> Kind {
        use Protocol::{Http1Tls, Http2Clear, Http2Tls};
        let small = |protocol, connections, streams| (protocol, connections, streams, SMALL);
        let page = |protocol, connections, streams| (protocol, connections, streams, ("/16k.html", 16 << 10));
        let large = |protocol, connections, streams| (protocol, connections, streams, ("/1m.html", 1 << 20));
        let (protocol, connections, streams, (path, bytes)) = match self {
            Self::Small => small(Http1Tls, 32, 1),
            Self::Page => page(Http1Tls, 32, 1),
            Self::Large => large(Http1Tls, 8, 1),
            Self::H2Small => small(Http2Tls, 8, 100),
            Self::H2Page => page(Http2Tls, 8, 32),
            Self::H2Large => large(Http2Tls, 8, 4),
            Self::H2cSmall => small(Http2Clear, 8, 100),
            Self::H2cPage => page(Http2Clear, 8, 32),
            Self::H2cLarge => large(Http2Clear, 8, 4),
            Self::Full => return Kind::Handshakes { resumed: false },
            Self::Resumed => return Kind::Handshakes { resumed: true },
            Self::Idle => return Kind::IdleConnections(9_600),
        };
        Kind::Requests(Requests { protocol, connections, streams, path, bytes })
    }

    /// The protocol that the server must speak.
    pub(super) fn protocol(self) -> Protocol {
        match self.kind() {
            Kind::Requests(requests) => requests.protocol,
            Kind::Handshakes { .. } | Kind::IdleConnections(_) => Protocol::Http1Tls,
        }
    }
}

impl Protocol {
    pub(super) fn scheme(self) -> &'static str {
        match self {
            Self::Http1Tls | Self::Http2Tls => "https",
            Self::Http2Clear => "http",
        }
    }

    /// Its name in ALPN; `h2c`, which is in clear and has no ALPN, in the reports of h2load.
    pub(super) fn alpn(self) -> &'static str {
        match self {
            Self::Http1Tls => "http/1.1",
            Self::Http2Tls => "h2",
            Self::Http2Clear => "h2c",
        }
    }
}

impl fmt::Display for TlsWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Small => "TLS, 1 KB",
            Self::Page => "TLS, 16 KB",
            Self::Large => "TLS, 1 MB",
            Self::H2Small => "HTTP/2, 1 KB, 8 × 100",
            Self::H2Page => "HTTP/2, 16 KB, 8 × 32",
            Self::H2Large => "HTTP/2, 1 MB, 8 × 4",
            Self::H2cSmall => "HTTP/2 in clear, 1 KB, 8 × 100",
            Self::H2cPage => "HTTP/2 in clear, 16 KB, 8 × 32",
            Self::H2cLarge => "HTTP/2 in clear, 1 MB, 8 × 4",
            Self::Full => "full handshake",
            Self::Resumed => "resumed handshake",
            Self::Idle => "TLS, opening an idle connection",
        })
    }
}

/// The file of the handshakes and of connections that fall idle, and its length in bytes.
pub(super) const SMALL: (&str, u64) = ("/1k.html", 1 << 10);

/// The one cipher that clients offer; the first choice of browsers.
pub(super) const CIPHER: &str = "TLS_AES_128_GCM_SHA256";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::FIXED;

    #[test]
    fn every_file_that_is_asked_for_is_written() {
        for workload in TlsWorkload::value_variants() {
            if let Kind::Requests(requests) = workload.kind() {
                assert!(FIXED.contains(&(requests.path, requests.bytes)), "{workload}");
            }
        }
        assert!(FIXED.contains(&SMALL));
    }
}
