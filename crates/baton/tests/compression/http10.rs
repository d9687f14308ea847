//! Clients of HTTP/1.0, which know no chunks.

use crate::common::decode::decode;
use crate::common::server::Server;
use crate::site::text;

/// The end of the connection is the end of the body.
fn a_stream_ends_with_the_connection(server: &Server) {
    let mut client = server.connect();
    client.send("GET /origin/chunks HTTP/1.0\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n");
    let head = client.head();
    assert_eq!(head.field("content-encoding"), Some("gzip"));
    assert_eq!((head.field("transfer-encoding"), head.field("content-length")), (None, None));
    assert!(decode("gzip", &client.until_the_end()) == text(300_000));
}

crate::protocols::over_http1!(a_stream_ends_with_the_connection);
