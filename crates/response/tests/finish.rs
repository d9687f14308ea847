//! Responses are finished without a connection: a protocol that only notes what it is given, over files in a folder.

use std::fs;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, Piece, Pool};
use baton_content::{
    Blocking, Cache, CacheSettings, Found, HeadForm, Query, Stored, Tree, TreeConfig, View, Whole,
};
use baton_http::origin::ResponseHead;
use baton_http::response::{Client, Framing, HeadLines, push_head};
use baton_http::{AcceptedCodings, HeadLimits, RequestHead, Stamp, Status};
use baton_response::finish;
use baton_response::send_way::{SendWay, SendWays};
use baton_response::{
    Author, Beginning, Body, Digests, IsResident, Page, Ready, Reply, Response, Rules, Supplies,
};
use baton_site::limits::Limits;
use baton_site::mark::Ids;
use baton_site::plan::{Digest, Plan};
use baton_telemetry::log::AccessLogs;
use baton_telemetry::metrics::{Counters, Tally};
use tempfile::TempDir;

/// What the protocol was given.
#[derive(Debug, Default)]
struct Noted {
    whole: Option<Whole>,
    /// A head in lines.
    text: String,
    framing: Option<Framing>,
    body: Beginning,
}

impl Reply for Noted {
    fn client(&mut self) -> Client {
        Client { minor: 1, keep: true, head: false }
    }

    fn head_form(&mut self) -> HeadForm {
        HeadForm::KeepAlive
    }

    fn may_send_by_reference(&self) -> bool {
        true
    }

    fn send_whole(&mut self, whole: Whole) {
        self.whole = Some(whole);
    }

    fn send_head(
        &mut self,
        _heads: &mut Pool,
        lines: HeadLines<'_>,
        framing: Framing,
        fields: &[u8],
        body: Beginning,
    ) {
        let mut text = Vec::new();
        let client = self.client();
        push_head(&mut text, lines, framing, client, fields);
        (self.text, self.framing, self.body) = (String::from_utf8(text).unwrap(), Some(framing), body);
    }

    fn send_switch(&mut self, _heads: &mut Pool, head: &ResponseHead, _fields: &[u8]) -> Status {
        head.status()
    }
}

/// A file of `len` bytes, which is in memory and open.
fn stored(folder: &TempDir, len: usize) -> Arc<Stored> {
    fs::write(folder.path().join("file.txt"), vec![b'a'; len]).unwrap();
    let tree = Tree::open(TreeConfig { root: folder.path().to_owned(), ..TreeConfig::default() }).unwrap();
    let query = Query { path: b"/file.txt", accepted: AcceptedCodings::default(), view: View::default() };
    let cache = Cache::new(CacheSettings::default());
    match cache.find(&Arc::new(tree), &query, &now(), Blocking::Allowed) {
        Ok(Found::File(stored)) => stored,
        other => panic!("{other:?}"),
    }
}

/// Finishes a response to a request with these fields, where files go from the page cache if they may.
fn finished(fields: &str, response: Response, is_resident: Option<IsResident>) -> (Ready, Noted) {
    let plan = Plan::new(Vec::new(), Limits::default(), true);
    finished_by(&Rules::without_site(&plan), fields, response, is_resident)
}

fn finished_by(
    rules: &Rules<'_>,
    fields: &str,
    response: Response,
    is_resident: Option<IsResident>,
) -> (Ready, Noted) {
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let request = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
    let mut tally = Tally::new(Counters::allocate(1).unwrap().remove(0), None);
    let (mut heads, mut ids, mut log, mut digests, mut send_ways) = (
        Pool::new(4, 8192),
        Ids::default(),
        AccessLogs::default(),
        Digests::default(),
        SendWays::new(SendWay::File),
    );
    let mut supplies = Supplies {
        now: &now(),
        heads: &mut heads,
        ids: &mut ids,
        log: &mut log,
        digests: &mut digests,
        tally: &mut tally,
        send_ways: &mut send_ways,
        is_resident,
    };
    let mut noted = Noted::default();
    let ready = finish(response, rules, Some(&request), &mut supplies, &mut noted);
    (ready, noted)
}

fn now() -> Stamp {
    Stamp::at(2_000_000_000)
}

#[test]
fn a_file_goes_from_the_page_cache_only_if_that_waits_for_no_disk() {
    let folder = tempfile::tempdir().unwrap();
    let stored = stored(&folder, 64 << 10);
    let is_by_reference = |is_resident| {
        let (ready, noted) = finished("", Response::file(Arc::clone(&stored)), is_resident);
        assert_eq!(ready.status, Status::OK);
        let whole = noted.whole.expect("the head is ready-made");
        assert!(whole.first.starts_with(b"HTTP/1.1 200 OK\r\n"));
        matches!(whole.rest, Some(Piece::File(_)))
    };
    assert!(is_by_reference(None), "the thread may wait");
    assert!(is_by_reference(Some(|_, _, _| true)));
    assert!(!is_by_reference(Some(|_, _, _| false)));
}

#[test]
fn conditions_and_ranges_are_looked_at_once_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let stored = stored(&folder, 10);
    let answer = |fields: &str| finished(fields, Response::file(Arc::clone(&stored)), None).1;
    let part = answer("Range: bytes=2-4\r\n");
    assert!(part.text.starts_with("HTTP/1.1 206 "), "{}", part.text);
    assert!(part.text.contains("\r\nContent-Range: bytes 2-4/10\r\n"), "{}", part.text);
    assert_eq!((part.framing, part.body.length()), (Some(Framing::Length(3)), 3));
    let beyond = answer("Range: bytes=10-\r\n");
    assert!(beyond.text.starts_with("HTTP/1.1 416 "), "{}", beyond.text);
    assert!(beyond.text.contains("\r\nContent-Range: bytes */10\r\n"), "{}", beyond.text);
    let unchanged = answer("If-None-Match: *\r\n");
    assert!(unchanged.text.starts_with("HTTP/1.1 304 "), "{}", unchanged.text);
    assert_eq!(unchanged.body.length(), 0);
}

#[test]
fn a_page_says_what_its_form_depends_on() {
    let plan = Plan::new(Vec::new(), Limits::default(), true);
    let page = Rules { accept: Some(b"application/json"), ..Rules::without_site(&plan) }
        .page(Page::error(Status::NOT_FOUND));
    let (ready, noted) = finished("", page, None);
    assert_eq!(ready.status, Status::NOT_FOUND);
    for line in ["HTTP/1.1 404 Not Found", "Vary: Accept", "Content-Type: application/json", "Server: baton"]
    {
        assert!(noted.text.lines().any(|said| said == line), "{line}: {}", noted.text);
    }
    let body = Aggregate::from(noted.body);
    assert_eq!(noted.framing, Some(Framing::Length(body.len())));
}

/// An application's response with these lines to a request with these fields, on a route that digests bodies and compresses texts.
fn tagged(digest: Digest, fields: &str, lines: &str, body: &[u8], is_whole: bool) -> Noted {
    let plan = Plan::new(Vec::new(), Limits::default(), true);
    let compress = baton_compress::Rules::default();
    let rules = Rules { digest: Some(digest), compress: Some(&compress), ..Rules::without_site(&plan) };
    let head = ResponseHead::of_lines(lines.into(), Status::OK, "", None, |_| true);
    let mut bytes = Aggregate::new();
    bytes.push(Buffer::new(body.to_vec()));
    let author = Author::Application { is_stored: false };
    let response = Response::of_lines(head, author, Body::Begun(bytes, is_whole));
    finished_by(&rules, fields, response, None).1
}

/// The value of a field in a head.
fn value<'a>(noted: &'a Noted, name: &str) -> Option<&'a str> {
    noted.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// The first half of what `sha256sum` prints for `body`.
const TAG: &str = "\"230d8358dc8e8890b4c58deeb62912ee\"";
const WEAK: &str = "W/\"230d8358dc8e8890b4c58deeb62912ee\"";
const PICTURE: &str = "Content-Type: image/png\r\n";

#[test]
fn a_digest_is_strong_where_the_client_gets_these_bytes() {
    for (digest, fields, lines, expected) in [
        (Digest::Passing, "", PICTURE, Some(TAG)),
        (Digest::Passing, "", "", Some(TAG)),
        (
            Digest::Passing,
            "",
            "Content-Type: image/png\r\nCache-Control: no-transform, private\r\n",
            Some(TAG),
        ),
        (Digest::Passing, "", "Content-Type: text/html\r\nContent-Encoding: br\r\n", Some(TAG)),
        (Digest::Passing, "", "Accept-Ranges: none\r\n", Some(TAG)),
        (Digest::Passing, "", "Accept-Ranges: bytes\r\n", Some(WEAK)),
        (Digest::Kept, "", PICTURE, Some(WEAK)),
        (Digest::Passing, "", "ETag: \"own\"\r\n", Some("\"own\"")),
        (Digest::Passing, "", "etag: W/\"own\"\r\n", None),
        (Digest::Passing, "", "Cache-Control: max-age=0, No-Store\r\n", None),
        (Digest::Passing, "", "Content-Type: text/event-stream;charset=utf-8\r\n", None),
    ] {
        let noted = tagged(digest, fields, lines, b"body", true);
        assert_eq!(value(&noted, "ETag"), expected, "{lines}: {}", noted.text);
        assert_eq!(noted.body.length(), 4);
    }
    assert_eq!(value(&tagged(Digest::Passing, "", PICTURE, b"body", false), "ETag"), None, "it goes on");
    let most = Digest::BYTES_MAX as usize;
    for (len, is_tagged) in [(0, true), (most, true), (most + 1, false)] {
        let noted = tagged(Digest::Passing, "", PICTURE, &vec![7; len], true);
        assert_eq!(value(&noted, "ETag").is_some(), is_tagged, "{len} bytes");
    }
}

#[test]
fn a_body_that_the_client_has_is_not_sent() {
    for (fields, status) in [
        (format!("If-None-Match: {TAG}"), 304),
        (format!("If-None-Match: {WEAK}"), 304),
        (format!("If-None-Match: \"a\", {TAG}"), 304),
        ("If-None-Match: *".to_owned(), 304),
        ("If-None-Match: \"a\"".to_owned(), 200),
        // Only the application knows when it has changed.
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT".to_owned(), 200),
        (format!("If-Match: {TAG}"), 200),
        ("If-Match: \"a\"".to_owned(), 412),
    ] {
        let lines = "Content-Type: image/png\r\nSet-Cookie: a\r\nVary: Cookie\r\n";
        let noted = tagged(Digest::Passing, &format!("{fields}\r\n"), lines, b"body", true);
        assert!(noted.text.starts_with(&format!("HTTP/1.1 {status} ")), "{fields}: {}", noted.text);
        if status == 304 {
            assert_eq!((noted.framing, noted.body.length()), (Some(Framing::None), 0));
            assert_eq!(value(&noted, "Content-Length"), None);
            let kept = ["ETag", "Set-Cookie", "Vary"].map(|name| value(&noted, name));
            assert_eq!(kept, [Some(TAG), Some("a"), Some("Cookie")]);
        }
    }
}

/// Goal: a 304 has the tag and the `Vary` of the response in whose place it is (RFC 9110 section 15.4.5).
#[test]
fn a_304_varies_as_its_response() {
    let text = b"a text that is compressed ".repeat(100);
    for (accept, is_weak) in [("Accept-Encoding: gzip\r\n", true), ("", false)] {
        let sent = tagged(Digest::Passing, accept, "Content-Type: text/html\r\n", &text, true);
        let tag = value(&sent, "ETag").unwrap();
        assert_eq!((tag.starts_with("W/"), value(&sent, "Content-Encoding").is_some()), (is_weak, is_weak));
        assert_eq!(value(&sent, "Vary"), Some("Accept-Encoding"));
        let fields = format!("{accept}If-None-Match: {tag}\r\n");
        let unchanged = tagged(Digest::Passing, &fields, "Content-Type: text/html\r\n", &text, true);
        assert!(unchanged.text.starts_with("HTTP/1.1 304 "), "{}", unchanged.text);
        for name in ["ETag", "Vary"] {
            assert_eq!(value(&unchanged, name), value(&sent, name), "{accept}{name}");
        }
        assert_eq!(value(&unchanged, "Content-Encoding"), None);
    }
    let picture = tagged(Digest::Passing, "If-None-Match: *\r\n", PICTURE, &text, true);
    assert_eq!((value(&picture, "Vary"), picture.body.length()), (None, 0));
}

/// Goal: a body shorter than its application has said is no body that a client may have.
#[test]
fn what_is_missing_is_not_digested() {
    let plan = Plan::new(Vec::new(), Limits::default(), true);
    let rules = Rules { digest: Some(Digest::Passing), ..Rules::without_site(&plan) };
    let mut bytes = Aggregate::new();
    bytes.push(Buffer::new(b"body".to_vec()));
    let head = ResponseHead::of_lines(Vec::new(), Status::OK, "", Some(5), |_| true);
    let response = Response::of_lines(head, Author::Origin, Body::Begun(bytes, true));
    let (ready, noted) = finished_by(&rules, "If-None-Match: *\r\n", response, None);
    assert_eq!((ready.status, value(&noted, "ETag")), (Status::OK, None));
}
