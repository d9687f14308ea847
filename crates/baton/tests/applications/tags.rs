//! A route that gives applications' responses the digest of their body as their entity tag, by every transport.

use crate::common::agent::{Body, CutOff};
use crate::common::folder::pattern;
use crate::common::server::Server;

crate::protocols::over_every_protocol!(
    a_client_that_has_the_body_gets_a_304,
    a_tag_does_not_tell_how_the_body_came,
    what_cannot_be_digested_goes_through_untouched,
    a_short_body_is_not_taken_for_a_whole_one,
);

/// The longest body that is digested, which is more than the region of `shm` holds at a time.
const MOST: usize = 256 << 10;

fn a_client_that_has_the_body_gets_a_304(server: &Server, below: &str) {
    let mut client = server.agent();
    for size in [0, 1, 8_184, 100_000, MOST] {
        let path = format!("{below}-tags/bytes?{size}");
        let first = client.get(&path);
        assert!(first.status == 200 && first.body == pattern(size, 1), "{size} bytes");
        let tag = first.field("etag").expect("a tag").to_owned();
        assert!(tag.len() == 34 && tag.starts_with('"'), "{tag}");
        for named in [&tag, &format!("W/{tag}"), "*"] {
            let unchanged = client.ask("GET", &path, &format!("If-None-Match: {named}\r\n"));
            assert_eq!((unchanged.status, unchanged.body.len()), (304, 0), "{size} bytes");
            assert_eq!(unchanged.field("etag"), Some(&*tag));
            assert_eq!(unchanged.field("x-route"), first.field("x-route"));
            assert_eq!(unchanged.field("content-length"), None);
        }
        let other = client.ask("GET", &path, "If-None-Match: \"00000000000000000000000000000000\"\r\n");
        assert!(other.status == 200 && other.body == pattern(size, 1), "{size} bytes");
        assert_eq!(client.ask("GET", &path, "If-Match: \"0\"\r\n").status, 412);
    }
}

/// Goal: tags are equal where bodies are. Method: the same bytes at once and in seven pieces, by this transport and by `unix`.
fn a_tag_does_not_tell_how_the_body_came(server: &Server, below: &str) {
    let mut client = server.agent();
    let mut tag = |below: &str, path: &str| {
        let response = client.get(&format!("{below}-tags/{path}"));
        assert!(response.body == pattern(100_000, 1));
        response.field("etag").expect("a tag").to_owned()
    };
    let expected = tag("/unix", "bytes?100000");
    for path in ["bytes?100000", "stream?100000"] {
        assert_eq!(tag(below, path), expected, "{path}");
    }
}

fn what_cannot_be_digested_goes_through_untouched(server: &Server, below: &str) {
    let mut client = server.agent();
    for path in ["bytes", "stream"] {
        for size in [MOST + 1, 1_000_000] {
            let path = format!("{below}-tags/{path}?{size}");
            let long = client.ask("GET", &path, "If-None-Match: *\r\n");
            assert_eq!((long.status, long.field("etag")), (200, None), "{path}");
            assert!(long.body == pattern(size, 1), "{path}");
        }
    }
    for (method, path, status) in
        [("HEAD", "bytes?5", 200), ("POST", "bytes?5", 200), ("GET", "missing", 404), ("GET", "nothing", 204)]
    {
        let response = client.ask(method, &format!("{below}-tags/{path}"), "If-None-Match: *\r\n");
        assert_eq!((response.status, response.field("etag")), (status, None), "{method} {path}");
    }
    let unasked = client.get(&format!("{below}/bytes?5"));
    assert_eq!(unasked.field("etag"), None, "another route");
}

fn a_short_body_is_not_taken_for_a_whole_one(server: &Server, below: &str) {
    for path in ["short", "short-flushed"] {
        let mut client = server.agent();
        client.begin("GET", "stage", &format!("{below}-tags/{path}"), "If-None-Match: *\r\n", Body::None);
        let head = client.head();
        assert_eq!((head.status, head.field("etag")), (200, None), "{path}");
        assert!(client.body() == Err(CutOff(pattern(10_000, 1).to_vec())), "{path}");
    }
}

/// Goal: who asks why an image comes by no passed socket is told.
#[test]
fn an_explanation_says_why_no_socket_is_passed() {
    let server = crate::site::server("auto");
    let told = server.explain("http://127.0.0.1:0/auto-tags/bytes");
    assert!(told.contains("`etag = \"digest\"` has to see the body"), "{told}");
    assert!(told.contains("a digest of up to 256 KiB in memory: strong"), "{told}");
}
