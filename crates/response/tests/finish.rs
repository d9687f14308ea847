//! Responses are finished without a connection: a protocol that only notes what it is given, over files in a folder.

use std::fs;
use std::sync::Arc;

use baton_buf::{Aggregate, Piece, Pool};
use baton_content::{
    Blocking, Cache, CacheSettings, Found, HeadForm, Query, Stored, Tree, TreeConfig, View, Whole,
};
use baton_http::origin::ResponseHead;
use baton_http::response::{Client, Framing, HeadLines, push_head};
use baton_http::{AcceptedCodings, HeadLimits, RequestHead, Stamp, Status};
use baton_response::finish;
use baton_response::send_way::{SendWay, SendWays};
use baton_response::{Beginning, IsResident, Page, Ready, Reply, Response, Rules, Supplies};
use baton_site::limits::Limits;
use baton_site::mark::Ids;
use baton_site::plan::Plan;
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
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let request = RequestHead::parse(text.as_bytes(), &HeadLimits::default()).unwrap();
    let plan = Plan::new(Vec::new(), Limits::default(), true);
    let mut tally = Tally::new(Counters::allocate(1).unwrap().remove(0), None);
    let (mut heads, mut ids, mut log, mut send_ways) =
        (Pool::new(4, 8192), Ids::default(), AccessLogs::default(), SendWays::new(SendWay::File));
    let mut supplies = Supplies {
        now: &now(),
        heads: &mut heads,
        ids: &mut ids,
        log: &mut log,
        tally: &mut tally,
        send_ways: &mut send_ways,
        is_resident,
    };
    let mut noted = Noted::default();
    let rules = Rules::without_site(&plan);
    let ready = finish(response, &rules, Some(&request), &mut supplies, &mut noted);
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
