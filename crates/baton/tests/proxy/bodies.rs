//! Bodies of requests: passed on as they arrive, in the form in which they come.

use crate::common::agent::{Agent, Body};
use crate::common::folder::pattern;
use crate::common::server::wait_until;
use crate::protocols;
use crate::site::{ORIGIN, Site, target};

protocols::over_every_protocol!(
    bodies_arrive,
    a_declared_length_of_zero_is_the_end,
    an_origin_is_told_that_there_is_no_body,
    both_directions_at_once,
    an_early_response_ends_the_upload,
    expect_travels_on,
    a_client_that_leaves_its_upload,
    too_much,
);

/// RFC 9110, 8.6: some origins answer 411 to a POST that does not say how long its content is, though HTTP/2 has said it
/// by the end of the stream, and HTTP/1 by the lack of any framing.
fn an_origin_is_told_that_there_is_no_body(site: &Site) {
    let mut agent = site.server.agent();
    for (method, told) in [
        ("POST", Some("0")),
        ("PUT", Some("0")),
        ("PATCH", Some("0")),
        ("GET", None),
        ("HEAD", None),
        ("DELETE", None),
    ] {
        let path = target(site, "whole", method);
        assert_eq!(agent.ask(method, &path, "").status, 200, "{method}");
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        let told_of = (seen.field("content-length"), seen.field("transfer-encoding"));
        assert_eq!(told_of, (told, None), "{method}");
    }
}

fn bodies_arrive(site: &Site) {
    let mut agent = site.server.agent();
    for (len, is_open) in [(0, false), (5, false), (5, true), (200_000, false), (3_000_000, true), (0, true)]
    {
        let path = target(site, "post", "arrives");
        let content = pattern(len, len as u64);
        let body = if is_open { Body::Open } else { Body::Length(len) };
        agent.begin("POST", "localhost", &path, "", body);
        agent.send_body(content);
        agent.finish_body();
        let response = agent.response();
        assert!(response.text().ends_with(&format!(" {len}")), "{response:?}");
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        assert!(seen.body == content);
        let framing = (seen.field("content-length").is_some(), seen.field("transfer-encoding").is_some());
        assert!(framing.0 != framing.1, "one of them: {}", seen.head);
        assert!(is_open || framing.0, "a known length stays known: {}", seen.head);
    }
}

/// HAProxy 2.6 sometimes sends no frame behind the head of an empty request: both waited for each other.
fn a_declared_length_of_zero_is_the_end(site: &Site) {
    let mut agent = site.server.agent();
    for round in 0..3 {
        let path = target(site, "whole", &format!("empty{round}"));
        agent.begin("POST", "localhost", &path, "", Body::Length(0));
        assert_eq!(agent.response().status, 200);
        agent.finish_body();
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        assert_eq!(seen.field("content-length"), Some("0"));
    }
}

/// Goal: neither direction waits for the other's end. Method: the origin sends each piece back before the next one is sent.
fn both_directions_at_once(site: &Site) {
    for body in [Body::Open, Body::Length(30)] {
        let path = target(site, "echo", "both");
        let mut agent = site.server.agent();
        agent.begin("POST", "localhost", &path, "", body);
        agent.send_body(b"first piece");
        assert_eq!(agent.head().status, 200);
        assert_eq!(agent.at_least(11), b"first piece");
        agent.send_body(b"the second, longer!");
        assert_eq!(agent.at_least(19), b"the second, longer!");
        agent.finish_body();
        assert_eq!(agent.body(), Ok(Vec::new()));
        assert_eq!(site.line_of(&path)["outcome"], "complete");
    }
}

/// The origin answers, and does not read what follows.
fn an_early_response_ends_the_upload(site: &Site) {
    let path = target(site, "early", "early");
    let mut agent = site.server.agent();
    agent.begin("POST", "localhost", &path, "", Body::Length(12_000_000));
    agent.send_body(pattern(100_000, 1));
    let response = agent.response();
    assert_eq!((response.status, response.text()), (200, "enough"));
    assert_eq!(site.line_of(&path)["outcome"], "complete");
}

/// The origin says whether it wants the body: `100 Continue` is its own.
fn expect_travels_on(site: &Site) {
    let mut agent = site.server.agent();
    let path = target(site, "continue", "expect");
    agent.begin("POST", "localhost", &path, "Expect: 100-continue\r\n", Body::Length(4));
    agent.expect_continue();
    agent.send_body(b"body");
    agent.finish_body();
    assert_eq!(agent.response().text(), "body");
    let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
    assert_eq!(seen.field("expect"), Some("100-continue"));

    let path = target(site, "refuse", "expect");
    agent.begin("POST", "localhost", &path, "Expect: 100-continue\r\n", Body::Length(4));
    let response = agent.response();
    assert_eq!(response.status, 417);
    if let Agent::Http1(_) = agent {
        // What comes next could be the body or another request.
        assert_eq!(response.field("connection"), Some("close"));
    }
}

/// The origin must not take a part of a body for all of it.
fn a_client_that_leaves_its_upload(site: &Site) {
    for body in [Body::Open, Body::Length(200_000)] {
        let path = target(site, "echo", "leaves");
        let mut agent = site.server.agent();
        agent.begin("POST", "localhost", &path, "", body);
        agent.send_body(b"some");
        agent.head();
        assert_eq!(agent.at_least(4), b"some");
        drop(agent);
        wait_until("the origin's side of it", || {
            ORIGIN.seen(&format!("CUT POST {}", &path["/o".len()..])).len() == 1
        });
        assert_eq!(site.line_of(&path)["outcome"], "client-gone");
    }
}

fn too_much(site: &Site) {
    let path = target(site, "post", "much");
    let mut agent = site.server.agent();
    agent.begin("POST", "localhost", &path, "", Body::Length(17 << 20));
    assert_eq!(agent.head().status, 413);
    // Of an unknown length: when there is too much of it.
    let path = target(site, "post", "much");
    let mut agent = site.server.agent();
    agent.begin("POST", "localhost", &path, "", Body::Open);
    agent.send_body(pattern(17 << 20, 1));
    agent.finish_body();
    assert_eq!(agent.head().status, 413);
    assert_eq!(site.line_of(&path)["outcome"], "refused");
}
