//! The shared cache keeps responses as they are, and each client gets its coding of them.

use crate::common::decode::decode;
use crate::common::server::Server;
use crate::origins;
use crate::site::{PAGE_BYTES, text};

/// One request to the origin, every coding for the clients.
fn the_cache_keeps_the_body_as_it_is(server: &Server) {
    let mut agent = server.agent();
    let path = format!("/cached/{}/page", fastrand::u64(..));
    let first = agent.ask("GET", &path, "Accept-Encoding: gzip\r\n");
    assert!(decode("gzip", &first.body) == text(PAGE_BYTES));
    for coding in ["gzip", "br", "zstd", "gzip"] {
        let hit = agent.ask("GET", &path, &format!("Accept-Encoding: {coding}\r\n"));
        assert_eq!(hit.field("content-encoding"), Some(coding));
        assert_eq!(hit.field("etag"), Some("W/\"p\""));
        assert!(decode(coding, &hit.body) == text(PAGE_BYTES));
    }
    let plain = agent.get(&path);
    assert_eq!((plain.field("content-encoding"), plain.field("etag")), (None, Some("\"p\"")));
    assert_eq!(plain.field("vary"), Some("Cookie, Accept-Encoding"));
    assert!(plain.body == text(PAGE_BYTES));
    let part = agent.ask("GET", &path, "Accept-Encoding: gzip\r\nRange: bytes=10-19\r\n");
    assert_eq!((part.status, part.field("content-encoding")), (206, None));
    assert!(part.body == text(PAGE_BYTES)[10..20]);
    let same = agent.ask("GET", &path, "Accept-Encoding: gzip\r\nIf-None-Match: W/\"p\"\r\n");
    assert_eq!(same.status, 304);
    let head = agent.ask("HEAD", &path, "Accept-Encoding: gzip\r\n");
    assert_eq!((head.field("content-encoding"), head.body.len()), (Some("gzip"), 0));
    assert_eq!(origins::asked(&path), 1, "the rest came from the cache");
}

crate::protocols::over_every_protocol!(the_cache_keeps_the_body_as_it_is);
