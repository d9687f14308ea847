//! Streams: complete, in time, and cut where they are cut.

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::decode::{decode, decode_beginning};
use crate::common::server::Server;
use crate::origins::{BEFORE_PAUSE, tell};
use crate::site::{CODINGS, text};

fn begin(agent: &mut Agent, path: &str, coding: &str) {
    agent.begin("GET", "localhost", path, &format!("Accept-Encoding: {coding}\r\n"), Body::None);
    let head = agent.head();
    assert_eq!((head.status, head.field("content-encoding")), (200, Some(coding)), "{path}");
    assert_eq!(head.field("content-length"), None, "{path}");
}

/// A long body arrives as it was sent, and the connection goes on.
fn a_long_body_is_complete(server: &Server) {
    let mut agent = server.agent();
    for coding in CODINGS {
        begin(&mut agent, "/origin/chunks", coding);
        assert!(decode(coding, &agent.body().expect("all of it")) == text(300_000));
    }
    // From the second request on the program could be given the client's socket, and would answer by itself.
    for _ in 0..3 {
        let response = agent.ask("GET", "/run/count.cgi", "Accept-Encoding: gzip\r\n");
        assert_eq!(response.field("content-encoding"), Some("gzip"));
        let decoded = String::from_utf8(decode("gzip", &response.body)).expect("text");
        assert!(decoded.ends_with("\n19999\n20000\n") && response.body.len() < decoded.len());
    }
}

/// Goal: a slow page shows what there is of it. Method: the origin goes on only once the client has decoded the first part.
fn where_the_origin_pauses_the_client_has_all_so_far(server: &Server) {
    let mut agent = server.agent();
    for coding in CODINGS {
        for path in ["/origin/pause", "/events/events"] {
            if path == "/events/events" && coding != "gzip" {
                continue;
            }
            let name = format!("{coding}-{}", fastrand::u64(..));
            begin(&mut agent, &format!("{path}?{name}"), coding);
            let mut body = Vec::new();
            while decode_beginning(coding, &body).len() < BEFORE_PAUSE {
                let piece = agent.piece().expect("no end");
                assert!(!piece.is_empty(), "the body ends early");
                body.extend(piece);
            }
            tell(&name);
            body.extend(agent.body().expect("the rest"));
            assert!(decode(coding, &body) == text(2 * BEFORE_PAUSE));
        }
    }
}

/// Events are compressed only where the configuration names them: each client would keep an encoder for hours.
fn events_are_left_alone_by_default(server: &Server) {
    let mut agent = server.agent();
    let name = format!("events-{}", fastrand::u64(..));
    agent.begin(
        "GET",
        "localhost",
        &format!("/origin/events?{name}"),
        "Accept-Encoding: gzip\r\n",
        Body::None,
    );
    assert_eq!(agent.head().field("content-encoding"), None);
    let first = agent.at_least(BEFORE_PAUSE);
    tell(&name);
    let rest = agent.body().expect("the rest");
    assert!([first, rest].concat() == text(2 * BEFORE_PAUSE));
}

/// Half a response never looks whole, though its length is not sent any more.
fn a_body_that_breaks_off_is_cut_for_the_client_too(server: &Server) {
    for path in ["/origin/short", "/origin/broken"] {
        for coding in CODINGS {
            let mut agent = server.agent();
            begin(&mut agent, path, coding);
            let CutOff(body) = agent.body().expect_err("it breaks off");
            let decoded = decode_beginning(coding, &body);
            assert!(text(150_000).starts_with(&decoded), "{path} in {coding}");
        }
    }
}

crate::protocols::over_every_protocol!(
    a_long_body_is_complete,
    where_the_origin_pauses_the_client_has_all_so_far,
    events_are_left_alone_by_default,
    a_body_that_breaks_off_is_cut_for_the_client_too,
);
