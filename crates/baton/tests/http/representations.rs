//! One name, several representations: media types, and copies that were packed before.

use crate::common::server::Server;

crate::protocols::over_every_protocol!(
    names_tell_the_media_type,
    the_client_chooses_the_coding,
    each_coding_is_a_representation_of_its_own,
    without_copies_nothing_varies,
);

fn names_tell_the_media_type(server: &Server) {
    let mut client = server.agent();
    for (path, media_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/small.txt", "text/plain; charset=utf-8"),
        ("/style.css", "text/css; charset=utf-8"),
        ("/packed/only.js", "text/javascript; charset=utf-8"),
        ("/1k.bin", "application/octet-stream"),
        ("/.well-known/acme-challenge/token", "application/octet-stream"),
        ("/packed/page.html.gz", "application/gzip"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.field("content-type")), (200, Some(media_type)), "{path}");
        assert_eq!(response.field("content-encoding"), None, "{path} as it is");
    }
}

/// By q-value; among equals the denser one; refused ones never, unless nothing is left.
fn the_client_chooses_the_coding(server: &Server) {
    let mut client = server.agent();
    for (accepted, coding) in [
        (None, None),
        (Some(""), None),
        (Some("gzip"), Some("gzip")),
        (Some("GZIP"), Some("gzip")),
        (Some("x-gzip"), Some("gzip")),
        (Some("br"), Some("br")),
        (Some("zstd"), Some("zstd")),
        (Some("gzip, deflate, br"), Some("br")),
        (Some("gzip, deflate, br, zstd"), Some("br")),
        (Some("gzip, zstd"), Some("zstd")),
        (Some("gzip;q=1.0, br;q=0.9"), Some("gzip")),
        (Some("br;q=0.1, zstd;q=0.2, gzip;q=0.3"), Some("gzip")),
        (Some("gzip;q=0.001"), Some("gzip")),
        (Some("gzip;q=0"), None),
        (Some("br;q=0, gzip"), Some("gzip")),
        (Some("*"), Some("br")),
        (Some("*;q=0.5, br;q=0"), Some("zstd")),
        (Some("identity, gzip;q=0.5"), None),
        (Some("identity;q=0.5, gzip;q=0.8"), Some("gzip")),
        (Some("deflate, compress"), None),
        (Some("gzip;q=2"), None),
        (Some("gzip;level=9"), None),
        // No representation is acceptable: RFC 9110, 12.5.3, allows to send one anyway.
        (Some("identity;q=0"), None),
        (Some("*;q=0"), None),
    ] {
        let fields = accepted.map_or_else(String::new, |accepted| format!("Accept-Encoding: {accepted}\r\n"));
        let response = client.ask("GET", "/packed/page.html", &fields);
        let body = match coding {
            None => "as it is",
            Some("br") => "packed by brotli",
            Some("zstd") => "packed by zstd",
            Some(_) => "packed by gzip",
        };
        assert_eq!((response.field("content-encoding"), response.text()), (coding, body), "{accepted:?}");
        assert_eq!(response.field("vary"), Some("Accept-Encoding"), "{accepted:?}");
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"), "{accepted:?}");
    }
    // Of those that the client likes, one that exists.
    let only = client.ask("GET", "/packed/only.js", "Accept-Encoding: br, zstd, gzip;q=0.1\r\n");
    assert_eq!(only.field("content-encoding"), Some("gzip"));
    // Even where no copy exists: one may come.
    assert_eq!(
        client.ask("GET", "/small.txt", "Accept-Encoding: br\r\n").field("vary"),
        Some("Accept-Encoding")
    );
    assert_eq!(client.ask("GET", "/packed/alone.html", "Accept-Encoding: gzip\r\n").status, 404);
}

/// Validators and ranges belong to the coded bytes.
fn each_coding_is_a_representation_of_its_own(server: &Server) {
    let mut client = server.agent();
    let codings = ["identity", "gzip", "br", "zstd"];
    let accept = |coding: &str| format!("Accept-Encoding: {coding}\r\n");
    let tags = codings.map(|coding| {
        let response = client.ask("GET", "/packed/page.html", &accept(coding));
        response.field("etag").expect("a tag").to_owned()
    });
    for (index, coding) in codings.iter().enumerate() {
        for (other, tag) in tags.iter().enumerate() {
            let fields = format!("{}If-None-Match: {tag}\r\n", accept(coding));
            let status = client.ask("GET", "/packed/page.html", &fields).status;
            assert_eq!(status == 304, index == other, "{coding}, tag of {}", codings[other]);
        }
    }
    let part = client.ask("GET", "/packed/page.html", "Accept-Encoding: gzip\r\nRange: bytes=-4\r\n");
    assert_eq!((part.status, part.text()), (206, "gzip"));
    assert_eq!(part.field("content-encoding"), Some("gzip"));
    assert_eq!(part.field("content-range"), Some("bytes 10-13/14"));
}

fn without_copies_nothing_varies(server: &Server) {
    let mut client = server.agent();
    let response =
        client.ask_host("open.example", "GET", "/packed/page.html", "Accept-Encoding: gzip, br\r\n");
    assert_eq!(response.text(), "as it is");
    assert_eq!((response.field("content-encoding"), response.field("vary")), (None, None));
}
