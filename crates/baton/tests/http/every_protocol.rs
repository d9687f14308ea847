//! Every architecture speaks every protocol.

use crate::common::ARCHITECTURES;
use crate::common::agent::Body;
use crate::common::matrix::{USUAL, by_name, others};
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::museum::{ALPHABET, pattern_of};

crate::architectures::under_every_architecture!(
    all_are_spoken,
    a_client_in_the_wrong_place_is_told,
    what_was_negotiated_is_spoken,
);

/// The kinds of responses by their ways through the server: from memory, from a file, a part, nothing but a head, an error,
/// a refused upload, and a file again.
fn all_are_spoken(server: &Server) {
    for protocol in Protocol::ALL {
        eprintln!("{protocol:?}:");
        let mut client = server.over(protocol).agent();
        assert_eq!(client.get("/alphabet.txt").text(), ALPHABET);
        assert!(client.get("/1m.bin").body == pattern_of("1m.bin"));
        let part = client.ask("GET", "/100k.bin", "Range: bytes=70000-70009\r\n");
        assert_eq!((part.status, &part.body[..]), (206, &pattern_of("100k.bin")[70_000..70_010]));
        let head = client.ask("HEAD", "/1m.bin", "");
        assert_eq!((head.status, head.field("content-length"), head.body.len()), (200, Some("1048576"), 0));
        assert_eq!(client.get("/none").status, 404);
        assert_eq!(client.send("POST", "/small.txt", &[b'x'; 1000]).status, 405);
        client.begin("POST", "localhost", "/small.txt", "", Body::Open);
        client.send_body(b"of no known length");
        client.finish_body();
        assert_eq!(client.response().status, 405);
        assert_eq!(client.get("/small.txt").text(), "small\n");
    }
}

/// HTTP in clear on the port for TLS.
fn a_client_in_the_wrong_place_is_told(server: &Server) {
    let mut client = crate::common::client::Client::connect(server.over(Protocol::Https).address());
    client.send("GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (400, Some("close")));
    client.expect_end();
}

/// A client that has agreed on HTTP/1.1 (ALPN) and begins with the preface of HTTP/2.
fn what_was_negotiated_is_spoken(server: &Server) {
    let mut client = server.over(Protocol::Https).connect();
    client.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (505, Some("close")));
}

/// Goal: each architecture is met by some test, one that is added, too. Method: the names of many tests choose.
#[test]
fn no_architecture_is_left_out() {
    let tests = || (0..1_000).map(|number| format!("test {number}"));
    let is_met = |architecture| {
        USUAL.contains(&architecture) || tests().any(|test| by_name(&test, &others(&USUAL)) == architecture)
    };
    let never: Vec<_> = ARCHITECTURES.into_iter().filter(|architecture| !is_met(*architecture)).collect();
    assert!(never.is_empty(), "{never:?}");
    assert!(USUAL.iter().all(|usual| ARCHITECTURES.contains(usual)), "{USUAL:?}");
}
