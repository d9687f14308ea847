//! Responses of a good origin, in every form that HTTP/1 knows.

use crate::common::agent::{Agent, Body};
use crate::common::folder::pattern;
use crate::common::protocol::Protocol;
use crate::manners::{LONG_BYTES, allow};
use crate::protocols;
use crate::site::{Site, target};

protocols::over_every_protocol!(
    whole,
    every_framing,
    trailers,
    responses_without_bodies,
    a_long_response_to_a_slow_client,
    events_come_as_they_are_sent,
    hints,
    files_beside,
);

fn whole(site: &Site) {
    let mut agent = site.server.agent();
    for _ in 0..3 {
        let path = target(site, "whole", "whole");
        let response = agent.get(&path);
        assert_eq!((response.status, response.field("x-own")), (200, Some("yes")));
        assert_eq!((response.field("x-route"), response.field("date").is_some()), (Some("o"), true));
        assert!(
            response.text().starts_with(&format!("GET {} HTTP/1.1 ", &path["/o".len()..])),
            "{response:?}"
        );
        let line = site.line_of(&path);
        assert_eq!((line["outcome"].as_str(), line["origin"]["tries"].as_u64()), (Some("complete"), Some(1)));
        assert!(line["origin"]["name"].as_str().is_some_and(|name| name.starts_with("http://127.0.0.1:")));
        assert!(line["origin"]["head_us"].is_u64() && line["origin"]["connect_us"].is_u64(), "{line}");
    }
}

fn every_framing(site: &Site) {
    let mut agent = site.server.agent();
    for (manner, body) in [("chunked", "abcdefg"), ("until-close", "all of it"), ("http10", "old but good")] {
        let response = agent.get(&target(site, manner, "framing"));
        assert_eq!((response.status, response.text()), (200, body), "{manner}");
    }
    let own = agent.get(&target(site, "http10", "framing"));
    assert!(!own.line.starts_with("HTTP/1.1") || own.line == "HTTP/1.1 200 Fine", "{}", own.line);
}

/// Fields behind the body go on where the client takes them, and only such that may stand there.
fn trailers(site: &Site) {
    let path = target(site, "chunked", "trailers");
    match site.server.agent() {
        Agent::Http1(mut client) => {
            client.begin("GET", "localhost", &path, "TE: trailers\r\nConnection: TE\r\n", Body::None);
            assert_eq!(client.head().field("transfer-encoding"), Some("chunked"));
            let rest = b"4\r\nabcd\r\n3\r\nefg\r\n0\r\nX-Sum: 7\r\n\r\n";
            let as_one = b"7\r\nabcdefg\r\n0\r\nX-Sum: 7\r\n\r\n";
            let read = client.take(as_one.len());
            assert!(read == as_one || client.take(rest.len() - read.len()).ends_with(b"X-Sum: 7\r\n\r\n"));
            // Without the offer there are none.
            let response = site.server.get(&target(site, "chunked", "trailers"));
            assert_eq!(response.text(), "abcdefg");
        }
        Agent::Http2(mut client) => {
            client.begin("GET", "localhost", &path, "", Body::None).expect("a stream");
            assert_eq!(client.head().expect("a head").status, 200);
            let mut body = Vec::new();
            while let piece @ [_, ..] = &client.piece().expect("a piece")[..] {
                body.extend_from_slice(piece);
            }
            assert_eq!(body, b"abcdefg");
            assert_eq!(client.trailers(), [("x-sum".to_owned(), "7".to_owned())]);
        }
    }
}

fn responses_without_bodies(site: &Site) {
    let mut agent = site.server.agent();
    let response = agent.get(&target(site, "no-content", "none"));
    assert_eq!(
        (response.status, response.field("x-empty"), &response.body[..]),
        (204, Some("yes"), &b""[..])
    );
    let response = agent.get(&target(site, "not-modified", "none"));
    assert_eq!((response.status, response.field("etag"), &response.body[..]), (304, Some("\"a\""), &b""[..]));
    let response = agent.ask("HEAD", &target(site, "head", "none"), "");
    assert_eq!((response.status, response.field("content-length")), (200, Some("12345")));
    assert_eq!(agent.get(&target(site, "whole", "none")).status, 200, "the connection goes on");
}

/// Goal: nothing is lost for a client that does not read at once. Method: a body of more than all buffers.
fn a_long_response_to_a_slow_client(site: &Site) {
    let path = target(site, "long", "slow");
    let mut agent = site.server.agent();
    agent.begin("GET", "localhost", &path, "", Body::None);
    assert_eq!(agent.head().field("content-length"), Some(&*LONG_BYTES.to_string()));
    let mut got = agent.at_least(1);
    got.extend(agent.body().expect("all of it"));
    assert!(got == pattern(LONG_BYTES, 3));
}

fn events_come_as_they_are_sent(site: &Site) {
    let path = target(site, "events", "events");
    let mut agent = site.server.agent();
    agent.begin("GET", "localhost", &path, "", Body::None);
    assert_eq!(agent.head().field("content-type"), Some("text/event-stream"));
    for number in 0..3 {
        // The origin sends the next one when this one is here.
        assert_eq!(agent.at_least(8), format!("data: {number}\n").as_bytes());
        allow(&path);
    }
    assert_eq!(agent.body(), Ok(Vec::new()));
}

/// Goal: an interim response arrives while the origin works. Method: it answers when the client has it.
fn hints(site: &Site) {
    let path = target(site, "hints", "hints");
    let mut agent = site.server.agent();
    agent.begin("GET", "localhost", &path, "", Body::None);
    let link = match &mut agent {
        Agent::Http1(client) => {
            let head = client.head();
            assert_eq!(head.status, 103);
            head.field("link").map(str::to_owned)
        }
        Agent::Http2(client) => {
            let (status, fields) = client.interim();
            assert_eq!(status, 103);
            fields.into_iter().find(|(name, _)| name == "link").map(|(_, value)| value)
        }
    };
    assert_eq!(link.as_deref(), Some("</a.css>"));
    allow(&path);
    assert_eq!(agent.response().text(), "behind hints");
    if site.server.protocol() == Protocol::Http {
        let path = target(site, "hints", "hints");
        allow(&path);
        let mut old = site.server.connect();
        old.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
        assert_eq!(old.head().status, 200, "HTTP/1.0 knows no interim responses");
    }
    let path = target(site, "many-hints", "hints");
    let response = match site.server.agent() {
        Agent::Http1(mut client) => {
            client.begin("GET", "localhost", &path, "", Body::None);
            std::iter::from_fn(|| Some(client.head())).find(|head| head.status != 103).expect("an end")
        }
        agent => {
            let mut agent = agent;
            agent.get(&path)
        }
    };
    assert_eq!(response.status, 502, "not without end");
}

/// What has nothing to do with the origin is as ever.
fn files_beside(site: &Site) {
    let mut agent = site.server.agent();
    for _ in 0..2 {
        assert_eq!(agent.get("/file.txt").text(), "a file");
        assert_eq!(agent.get(&target(site, "whole", "beside")).status, 200);
    }
}
