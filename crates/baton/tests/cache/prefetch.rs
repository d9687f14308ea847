//! Segments of a session that come before the client asks for them.

use std::time::{Duration, Instant};

use crate::common::server::wait_until;
use crate::origin::Seen;
use crate::protocols;
use crate::site::{ORIGIN, Site, Visitor, allow, site, status};

protocols::over_every_protocol!(
    the_next_segments_come_before_they_are_asked_for,
    a_range_of_all_bytes_is_the_segment,
    errors_of_segments_are_not_kept,
    a_client_joins_a_prefetch,
);

mod shared {
    use super::nothing_is_fetched_ahead_of_other_requests;

    crate::architectures::under_every_architecture!(by name: nothing_is_fetched_ahead_of_other_requests);
}

/// Less than the time after which a segment that did not come is asked for ahead again.
const SOON: Duration = Duration::from_secs(4);

const FRESH: &str = "200|Cache-Control: max-age=60||segment";

/// A session of its own on the route with `prefetch = 2`.
fn session(site: &Site, test: &str) -> Visitor {
    let mut visitor = site.visitor(test);
    visitor.path = format!("/c/ahead{}/", visitor.path["/c".len()..].to_owned());
    visitor
}

/// The same client and its next request.
impl Visitor {
    fn segment(&mut self, name: &str, answer: &str, fields: &str) -> String {
        let path = format!("{}{name}", self.path);
        let response = self.agent.ask("GET", &path, &format!("X-Answer: {answer}\r\n{fields}"));
        format!("{} {}", response.status, status(&response))
    }

    fn segment_seen(&self, name: &str) -> Vec<Seen> {
        ORIGIN.seen(&format!(" {}{name} ", &self.path["/c".len()..]))
    }

    fn await_segment(&self, name: &str) {
        wait_until(&format!("{name} at the origin"), || self.segment_seen(name).len() == 1);
    }
}

/// Each segment that a client gets has two behind it fetched, and those lead to no others.
fn the_next_segments_come_before_they_are_asked_for(site: &Site) {
    let mut session = session(site, "session");
    assert_eq!(session.segment("seg-08.m4s", FRESH, "X-Session: 1\r\n"), "200 baton; fwd=uri-miss; stored");
    session.await_segment("seg-09.m4s");
    session.await_segment("seg-10.m4s");
    assert_eq!(session.segment_seen("seg-09.m4s")[0].field("x-session"), Some("1"), "as the client asks");
    let hit = |answer: &str| answer.starts_with("200 baton; hit") || answer.ends_with("; collapsed");
    assert!(hit(&session.segment("seg-09.m4s", FRESH, "")));
    session.await_segment("seg-11.m4s");
    // A part is no segment: it shows what is there, and fetches nothing ahead.
    wait_until("the last segment", || {
        session.segment("seg-11.m4s", FRESH, "Range: bytes=0-1\r\n").starts_with("206 baton; hit")
    });
    for name in ["seg-08.m4s", "seg-09.m4s", "seg-10.m4s", "seg-11.m4s"] {
        assert_eq!(session.segment_seen(name).len(), 1, "{name}");
    }
    assert!(session.segment_seen("seg-12.m4s").is_empty());
    // Also a hit that is answered at once leads on.
    assert!(hit(&session.segment("seg-10.m4s", FRESH, "")));
    session.await_segment("seg-12.m4s");
}

/// Some players ask for each segment by the range of all its bytes.
fn a_range_of_all_bytes_is_the_segment(site: &Site) {
    for answer in [FRESH, "200|ETag: \"a\"|Accept-Ranges: bytes|Cache-Control: max-age=60||segment"] {
        let mut session = session(site, "ranges");
        let first = session.segment("seg-1.m4s", answer, "Range: bytes=0-\r\n");
        assert!(first.starts_with("206 "), "{first}");
        session.await_segment("seg-2.m4s");
        session.await_segment("seg-3.m4s");
        wait_until("the second segment", || {
            session.segment("seg-2.m4s", answer, "range: Bytes=0-\r\n").starts_with("206 baton; hit")
        });
        session.await_segment("seg-4.m4s");
        assert!(session.segment_seen("seg-5.m4s").is_empty());
    }
}

/// A live segment that is not there yet may be there when the client asks.
fn errors_of_segments_are_not_kept(site: &Site) {
    let mut session = session(site, "errors");
    let only = format!("only seg-8.m4s {FRESH}");
    let begun = Instant::now();
    assert_eq!(session.segment("seg-8.m4s", &only, ""), "200 baton; fwd=uri-miss; stored");
    session.await_segment("seg-9.m4s");
    session.await_segment("seg-10.m4s");
    let answer = session.segment("seg-9.m4s", FRESH, "");
    assert!(answer.starts_with("200 baton; fwd=uri-miss; stored"), "{answer}");
    assert_eq!(session.segment_seen("seg-9.m4s").len(), 2);
    // It did not come a moment ago, and is not asked for ahead again so soon, unless this machine has taken its time.
    assert!(begun.elapsed() > SOON || session.segment_seen("seg-10.m4s").len() == 1);
}

/// A client that asks for a segment that is being fetched waits for that fetch. What it gets then is its own answer.
fn a_client_joins_a_prefetch(site: &Site) {
    let mut session = session(site, "joined");
    let slow = format!("only seg-8.m4s wait {FRESH}");
    allow(&format!("{}seg-8.m4s", session.path));
    assert_eq!(session.segment("seg-8.m4s", &slow, ""), "200 baton; fwd=uri-miss; stored");
    session.await_segment("seg-9.m4s");
    let path = format!("{}seg-9.m4s", session.path);
    let mut joining = Visitor { agent: site.server.agent(), path: path.clone() };
    joining.begin(FRESH, "");
    allow(&path);
    let response = joining.agent.response();
    assert_eq!((response.status, response.text()), (200, "segment"), "{}", response.line);
    allow(&format!("{}seg-10.m4s", session.path));
}

/// Requests that are not a session's lead to nothing.
fn nothing_is_fetched_ahead_of_other_requests(architecture: &str) {
    let mut session = session(site(architecture), "others");
    session.segment("live-8.m3u8", FRESH, "");
    session.segment("8", FRESH, "");
    session.segment("film-8.mp4", FRESH, "Range: bytes=0-1\r\n");
    session.segment("own-8.ts", FRESH, "Authorization: Basic eA==\r\n");
    session.segment("lost-8.ts", "404|Cache-Control: max-age=60||gone", "");
    session.segment("private-8.ts", "200|Cache-Control: private||mine", "");
    // What is asked behind them leads on, and on the same loop.
    session.segment("seg-8.ts", FRESH, "");
    session.await_segment("seg-9.ts");
    for name in ["live-9.m3u8", "9", "film-9.mp4", "own-9.ts", "lost-9.ts", "private-9.ts"] {
        assert!(session.segment_seen(name).is_empty(), "{name}");
    }
}
