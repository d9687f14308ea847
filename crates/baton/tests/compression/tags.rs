//! Responses of origins that get the digest of their body as their entity tag: coded, cached, as they come.

use crate::common::agent::Body;
use crate::common::decode::decode;
use crate::common::server::Server;
use crate::origins::{self, BEFORE_PAUSE, tell};
use crate::site::text;

/// Goal: a 304 stands for the response that the client would get: the same tag, the same `Vary`.
fn a_coded_body_has_a_weak_tag(server: &Server) {
    let mut agent = server.agent();
    for (accept, path, is_weak, vary) in [
        ("Accept-Encoding: gzip\r\n", "chunks-of-text", true, Some("Accept-Encoding")),
        ("", "chunks-of-text", false, Some("Accept-Encoding")),
        ("Accept-Encoding: gzip\r\n", "small", false, Some("Accept-Encoding")),
        ("Accept-Encoding: gzip\r\n", "picture", false, None),
        ("Accept-Encoding: gzip\r\n", "coded", false, None),
        ("Accept-Encoding: gzip\r\n", "final", false, None),
    ] {
        let path = format!("/tagged/{path}");
        let sent = agent.ask("GET", &path, accept);
        let tag = sent.field("etag").expect("a tag").to_owned();
        assert_eq!((tag.starts_with("W/"), sent.field("vary")), (is_weak, vary), "{path}");
        let unchanged = agent.ask("GET", &path, &format!("{accept}If-None-Match: {tag}\r\n"));
        assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{path}");
        assert_eq!((unchanged.field("etag"), unchanged.field("vary")), (Some(&*tag), vary), "{path}");
        assert_eq!(unchanged.field("content-encoding").filter(|coding| *coding != "br"), None, "{path}");
    }
    let own = agent.ask("GET", "/tagged/page", "If-None-Match: *\r\n");
    assert_eq!((own.status, own.field("etag")), (200, Some("\"p\"")), "for the origin to say");
}

/// One request to the origin: the digest is that of what the cache keeps, for every client.
fn the_cache_keeps_what_is_digested(server: &Server) {
    let mut agent = server.agent();
    let path = format!("/tagged-cached/{}/kept", fastrand::u64(..));
    let first = agent.ask("GET", &path, "Accept-Encoding: gzip\r\n");
    assert!(decode("gzip", &first.body) == text(100_000));
    let tag = first.field("etag").expect("a tag").to_owned();
    assert!(tag.starts_with("W/"), "the cache has ranges: {tag}");
    for accept in ["Accept-Encoding: br\r\n", "", ""] {
        let hit = agent.ask("GET", &path, accept);
        assert_eq!(hit.field("etag"), Some(&*tag));
        let unchanged = agent.ask("GET", &path, &format!("{accept}If-None-Match: {tag}\r\n"));
        assert_eq!((unchanged.status, unchanged.field("etag")), (304, Some(&*tag)));
        assert_eq!(unchanged.field("cache-control"), hit.field("cache-control"));
    }
    let part = agent.ask("GET", &path, &format!("Range: bytes=10-19\r\nIf-Range: {tag}\r\n"));
    assert_eq!(part.status, 200, "a weak tag adds up no ranges");
    assert_eq!(origins::asked(&path), 1, "the rest came from the cache");
}

/// Events pass at once. What declares more than is digested is not held back either.
fn streams_are_not_held_back(server: &Server) {
    let mut agent = server.agent();
    for name in ["events", "long-pause"] {
        let word = format!("{name}-{}", fastrand::u64(..));
        agent.begin("GET", "localhost", &format!("/tagged/{name}?{word}"), "", Body::None);
        assert_eq!(agent.head().field("etag"), None);
        let first = agent.at_least(BEFORE_PAUSE);
        tell(&word);
        let rest = agent.body().expect("the rest");
        assert!([first, rest].concat().starts_with(&text(2 * BEFORE_PAUSE)));
    }
}

crate::protocols::over_every_protocol!(
    a_coded_body_has_a_weak_tag,
    the_cache_keeps_what_is_digested,
    streams_are_not_held_back,
);

/// `explain` says what kind of tag a response gets.
#[test]
fn an_explanation_names_the_tag() {
    let server = crate::site::server("auto");
    for (path, expected) in [("tagged", "strong"), ("tagged-cached", "weak, since the shared cache")] {
        let told = server.explain(&format!("http://127.0.0.1:0/{path}/page"));
        let line = told.lines().find(|line| line.trim_start().starts_with("etag ")).unwrap_or_default();
        assert!(line.contains("a digest of up to 256 KiB in memory") && line.contains(expected), "{told}");
    }
}
