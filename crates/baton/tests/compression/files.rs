//! Files: coded once, with heads that are right.

use crate::common::decode::decode;
use crate::common::server::{Server, wait_until};
use crate::site::{CODINGS, PAGE_BYTES, coded, noise, text};

/// Every coding decodes to the file, and its head tells the truth.
fn a_client_gets_the_coding_that_it_prefers(server: &Server) {
    let mut agent = server.agent();
    for coding in CODINGS {
        for (path, len) in [("/page.html", PAGE_BYTES), ("/large.txt", 600_000)] {
            let response = coded(&mut agent, "GET", path, &format!("{coding}, identity;q=0.5"));
            assert_eq!(response.field("content-encoding"), Some(coding));
            assert_eq!(response.field("vary"), Some("Accept-Encoding"));
            assert_eq!(response.field("accept-ranges"), None, "parts are of the file as it is");
            let length = response.body.len().to_string();
            assert_eq!(response.field("content-length"), Some(&*length));
            assert!(response.body.len() < len / 2, "{coding}: {}", response.body.len());
            assert!(decode(coding, &response.body) == text(len), "{coding} of {path}");
            let tag = response.field("etag").expect("a tag");
            assert!(tag.starts_with("W/\"") && tag.ends_with(&format!("-{coding}\"")), "{tag}");
            let head = coded(&mut agent, "HEAD", path, coding);
            let names = ["content-encoding", "content-length", "etag", "vary", "content-type"];
            for name in names {
                assert_eq!(head.field(name), response.field(name), "{name}");
            }
            assert!(head.body.is_empty());
        }
    }
    // Among equals the server chooses.
    let response = coded(&mut agent, "GET", "/page.html", "gzip, deflate, br, zstd");
    assert_eq!(response.field("content-encoding"), Some("zstd"));
}

/// Clients that take no coding get the file, and caches learn that others may not.
fn who_takes_no_coding_gets_the_file(server: &Server) {
    let mut agent = server.agent();
    for fields in [
        "",
        "Accept-Encoding: identity\r\n",
        "Accept-Encoding: deflate\r\n",
        "Accept-Encoding: gzip;q=0, br;q=0, zstd;q=0\r\n",
        "Accept-Encoding: identity, *;q=0.1\r\n",
        "Accept-Encoding: *;q=0\r\n",
        "Accept-Encoding:\r\n",
    ] {
        let response = agent.ask("GET", "/page.html", fields);
        assert_eq!(response.field("content-encoding"), None, "{fields}");
        assert_eq!(response.field("vary"), Some("Accept-Encoding"), "{fields}");
        assert_eq!(response.field("accept-ranges"), Some("bytes"), "{fields}");
        assert!(response.body == text(PAGE_BYTES), "{fields}");
    }
    // Who refuses the file as it is gets any coding.
    let response = coded(&mut agent, "GET", "/page.html", "identity;q=0, *;q=0.1");
    assert_eq!(response.field("content-encoding"), Some("zstd"));
}

/// What would not become shorter, is compressed already or must not be touched goes out as it is.
fn what_is_not_worth_it_goes_out_as_it_is(server: &Server) {
    let mut agent = server.agent();
    for (path, body) in [
        ("/small.txt", text(500)),
        ("/picture.png", text(5_000)),
        ("/final.log", text(5_000)),
        ("/huge.txt", text((2 << 20) + 1)),
    ] {
        let response = agent.ask("GET", path, "Accept-Encoding: gzip, br, zstd\r\n");
        assert_eq!(response.field("content-encoding"), None, "{path}");
        assert!(response.body == body, "{path}");
        assert!(!response.field("etag").expect("a tag").starts_with("W/"), "{path}");
    }
    for _ in 0..3 {
        let response = agent.ask("GET", "/noise.txt", "Accept-Encoding: zstd\r\n");
        assert_eq!(response.field("content-encoding"), None);
        assert!(response.body == noise(20_000));
    }
}

/// A copy that the site has made itself is better than any that the server could make now.
fn a_precompressed_copy_wins(server: &Server) {
    let mut agent = server.agent();
    let response = agent.ask("GET", "/copied.css", "Accept-Encoding: zstd, br, gzip\r\n");
    assert_eq!(response.field("content-encoding"), Some("gzip"));
    assert_eq!(response.text(), "no real copy, but the server's to send");
    assert!(!response.field("etag").expect("a tag").starts_with("W/"));
    let response = coded(&mut agent, "GET", "/copied.css", "br");
    assert_eq!(response.field("content-encoding"), Some("br"));
    assert!(decode("br", &response.body) == text(5_000));
}

/// A part is of the file as it is, whatever the client takes.
fn ranges_are_of_the_file_as_it_is(server: &Server) {
    let mut agent = server.agent();
    let coded = coded(&mut agent, "GET", "/page.html", "gzip");
    let weak = coded.field("etag").expect("a tag");
    let part = agent.ask("GET", "/page.html", "Accept-Encoding: gzip\r\nRange: bytes=1000-1999\r\n");
    assert_eq!(part.status, 206);
    assert_eq!(part.field("content-range"), Some(&*format!("bytes 1000-1999/{PAGE_BYTES}")));
    assert_eq!((part.field("content-encoding"), part.field("vary")), (None, Some("Accept-Encoding")));
    assert!(part.body == text(PAGE_BYTES)[1000..2000]);
    let strong = part.field("etag").expect("a tag").to_owned();
    for (tag, status) in [(weak, 200), (&*strong, 206)] {
        let fields = format!("Accept-Encoding: gzip\r\nRange: bytes=0-9\r\nIf-Range: {tag}\r\n");
        let response = agent.ask("GET", "/page.html", &fields);
        assert_eq!((response.status, response.field("content-encoding")), (status, None), "{tag}");
    }
    let outside = agent.ask("GET", "/page.html", "Accept-Encoding: gzip\r\nRange: bytes=100000-\r\n");
    assert_eq!(outside.status, 416);
}

/// A client that has a form of the file does not get that form again, but does get another.
fn conditions_are_about_the_form_that_the_client_gets(server: &Server) {
    let mut agent = server.agent();
    let gzip = coded(&mut agent, "GET", "/page.html", "gzip");
    let plain = agent.get("/page.html");
    let (gzip, plain) = (gzip.field("etag").expect("a tag"), plain.field("etag").expect("a tag"));
    let both = format!("{plain}, {gzip}");
    for (tags, accept, status) in [
        (gzip, "gzip", 304),
        (&*both, "gzip", 304),
        ("*", "gzip", 304),
        (plain, "identity", 304),
        (&*both, "identity", 304),
        (gzip, "identity", 200),
        (plain, "gzip", 200),
        (gzip, "br", 200),
    ] {
        for method in ["GET", "HEAD"] {
            let fields = format!("Accept-Encoding: {accept}\r\nIf-None-Match: {tags}\r\n");
            let mut response = agent.ask(method, "/page.html", &fields);
            if status == 304 && response.status == 200 {
                // Another loop of the server has not coded it yet, or does so now.
                wait_until("it is coded here, too", || {
                    response = agent.ask(method, "/page.html", &fields);
                    response.status == 304
                });
            }
            assert_eq!(response.status, status, "{method} with {tags}, {accept}");
            assert_eq!(response.field("vary"), Some("Accept-Encoding"));
            assert!(status == 200 || response.body.is_empty());
        }
    }
    let since = "Accept-Encoding: gzip\r\nIf-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n";
    let response = agent.ask("GET", "/page.html", since);
    assert_eq!((response.status, response.field("vary")), (304, Some("Accept-Encoding")));
}

/// A file that changes is coded anew.
fn a_changed_file_is_coded_anew(server: &Server) {
    let mut agent = server.agent();
    let name = format!("changing-{:?}-{}.html", server.protocol(), fastrand::u64(..));
    server.folder().write(&name, text(10_000));
    let path = format!("/{name}");
    assert!(decode("br", &coded(&mut agent, "GET", &path, "br").body) == text(10_000));
    server.folder().replace(&name, text(20_000));
    wait_until("the change is seen", || {
        let response = coded(&mut agent, "GET", &path, "br");
        let decoded = decode("br", &response.body);
        assert!(decoded == text(10_000) || decoded == text(20_000));
        decoded.len() == 20_000
    });
}

crate::protocols::over_every_protocol!(
    a_client_gets_the_coding_that_it_prefers,
    who_takes_no_coding_gets_the_file,
    what_is_not_worth_it_goes_out_as_it_is,
    a_precompressed_copy_wins,
    ranges_are_of_the_file_as_it_is,
    conditions_are_about_the_form_that_the_client_gets,
    a_changed_file_is_coded_anew,
);
