//! Protocols that take over a connection: WebSocket and others, by `Upgrade` of HTTP/1.1 and by extended CONNECT of HTTP/2.

use crate::common::agent::Agent;
use crate::common::server::Server;
use crate::protocols;
use crate::site::{ORIGIN, Site, target};

protocols::over_every_protocol!(
    bytes_flow_both_ways,
    each_half_ends_on_its_own,
    a_refused_switch_is_a_response,
    an_origin_gets_one_key,
    no_tunnel_to_http,
);

/// Opens a tunnel, and reads the origin's greeting.
fn open(server: &Server, path: &str) -> Tunnel {
    let mut tunnel = match server.agent() {
        Agent::Http1(mut client) => {
            let fields = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n";
            // The client may hurry.
            client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\nearly"));
            let head = client.head();
            assert_eq!((head.status, head.field("upgrade")), (101, Some("websocket")));
            assert_eq!((head.field("connection"), head.field("x-accepted")), (Some("Upgrade"), Some("yes")));
            Tunnel::Http1(client)
        }
        Agent::Http2(mut client) => {
            client.begin_tunnel("websocket", "localhost", path, &[]);
            let head = client.head().expect("a head");
            assert_eq!(
                (head.status, head.field("x-accepted"), head.field("upgrade")),
                (200, Some("yes"), None)
            );
            client.send_body(b"early", false);
            Tunnel::Http2(client)
        }
    };
    assert_eq!(tunnel.take(11), b"hello,EARLY");
    tunnel
}

enum Tunnel {
    Http1(Box<crate::common::client::Client>),
    Http2(Box<crate::common::http2::Http2>),
}

impl Tunnel {
    fn send(&mut self, bytes: &[u8]) {
        match self {
            Self::Http1(client) => client.send(bytes),
            Self::Http2(client) => client.send_body(bytes, false),
        }
    }

    fn finish(&mut self) {
        match self {
            Self::Http1(client) => client.finish_sending(),
            Self::Http2(client) => client.finish_body(),
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        match self {
            Self::Http1(client) => client.take(count),
            Self::Http2(client) => {
                let mut bytes = Vec::new();
                while bytes.len() < count {
                    let piece = client.piece().expect("no end");
                    assert!(!piece.is_empty(), "the end after {bytes:?}");
                    bytes.extend(piece);
                }
                bytes
            }
        }
    }

    /// What comes up to the end.
    fn rest(&mut self) -> Vec<u8> {
        match self {
            Self::Http1(client) => client.rest(),
            Self::Http2(client) => {
                let mut bytes = Vec::new();
                while let piece @ [_, ..] = &client.piece().expect("an orderly end")[..] {
                    bytes.extend_from_slice(piece);
                }
                bytes
            }
        }
    }
}

fn bytes_flow_both_ways(site: &Site) {
    let path = target(site, "upgrade", "tunnel");
    let mut tunnel = open(&site.server, &path);
    for _ in 0..3 {
        tunnel.send(b"a message");
        assert_eq!(tunnel.take(9), b"A MESSAGE");
    }
    let long = vec![b'x'; 300_000];
    tunnel.send(&long);
    assert!(tunnel.take(300_000) == long.to_ascii_uppercase());
    tunnel.finish();
    assert_eq!(tunnel.rest(), b"bye");
    let line = site.line_of(&path);
    let status = if site.server.protocol().is_http2() { 200 } else { 101 };
    assert_eq!((line["status"].as_u64(), line["outcome"].as_str()), (Some(status), Some("complete")));
    let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
    assert_eq!((seen.field("connection"), seen.field("upgrade")), (Some("Upgrade"), Some("websocket")));
    assert!(seen.field("sec-websocket-key").is_some() && seen.line().starts_with("GET "), "{}", seen.head);
}

/// The origin says that it sends no more, and still reads.
fn each_half_ends_on_its_own(site: &Site) {
    let path = target(site, "upgrade", "half");
    let mut tunnel = open(&site.server, &path);
    tunnel.send(b"leave");
    assert_eq!(tunnel.rest(), b"");
    tunnel.send(b"still there");
    tunnel.finish();
    assert_eq!(site.line_of(&path)["outcome"], "complete");
}

fn a_refused_switch_is_a_response(site: &Site) {
    let path = target(site, "whole", "refused");
    match site.server.agent() {
        Agent::Http1(mut client) => {
            let response = client.ask("GET", &path, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
            assert!((response.status, response.field("upgrade")) == (200, None), "{response:?}");
            assert_eq!(client.get(&target(site, "whole", "refused")).status, 200, "the connection goes on");
        }
        Agent::Http2(mut client) => {
            client.begin_tunnel("websocket", "localhost", &path, &[]);
            assert_eq!(client.head().expect("a head").status, 502, "a success would be a tunnel");
            client.begin_tunnel("websocket", "localhost", "/file.txt", &[]);
            assert_eq!(client.head().expect("a head").status, 501, "files speak HTTP");
            client.begin_tunnel("connect-udp", "localhost", &target(site, "upgrade", "refused"), &[]);
            assert_eq!(client.head().expect("a head").status, 501);
        }
    }
}

/// A proxy that makes an extended CONNECT of a switch may leave the field in it, whose value no longer counts.
fn an_origin_gets_one_key(site: &Site) {
    let Agent::Http2(mut client) = site.server.agent() else { return };
    let path = target(site, "upgrade", "key");
    let own = "dGhlIHNhbXBsZSBub25jZQ==";
    client.begin_tunnel("websocket", "localhost", &path, &[("sec-websocket-key", own)]);
    assert_eq!(client.head().expect("a head").status, 200);
    let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
    let keys = seen.fields("sec-websocket-key");
    assert!(keys.len() == 1 && keys[0] != own, "{keys:?}");
}

/// Requests in such a tunnel would not be routed.
fn no_tunnel_to_http(site: &Site) {
    if let Agent::Http1(mut client) = site.server.agent() {
        let path = target(site, "whole", "http");
        let fields =
            "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
        assert_eq!(client.ask("GET", &path, fields).status, 200);
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        assert_eq!((seen.field("upgrade"), seen.field("http2-settings")), (None, None));
    }
}
