//! Kept connections that end: what may be sent again is, once, and nothing else.

use crate::common::agent::{Agent, Body};
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::origin::{Origin, Peer};
use crate::site::logged;

/// Answers the first request of each connection, and takes the second for its end.
fn once_per_connection(peer: &mut Peer) {
    if peer.request().is_some() {
        peer.answer("", "first");
        peer.request();
    }
}

/// Answers, says that it keeps connections for two seconds, and does.
fn for_two_seconds(peer: &mut Peer) {
    while peer.request().is_some() {
        peer.answer("Keep-Alive: timeout=2\r\n", "kept");
    }
}

/// One process, so that the second request meets the connection of the first.
fn server(origin: &Origin, more: &str) -> Server {
    let configuration = format!(
        "processes = 1\n[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n[[site]]\n{{listen}}\n\
         [[site.route]]\npath = '/'\nproxy = {{ to = 'http://{}', {more} }}\n",
        origin.address()
    );
    Server::run(Folder::new(), &configuration)
}

fn ask(agent: &mut Agent, method: &str, path: &str) -> u16 {
    match method {
        "GET" | "DELETE" | "PUT" => agent.ask(method, path, "").status,
        _ => agent.send(method, path, b"a body").status,
    }
}

/// A kept connection ends while a request is on its way: no error of the client's if it may be repeated.
#[test]
fn a_request_is_repeated_if_that_does_no_harm() {
    let origin = Origin::start(once_per_connection);
    let server = server(&origin, "idle_ms = 60000");
    for protocol in Protocol::ALL {
        for (method, status, sent, tries) in
            [("GET", 200, 2, 2), ("DELETE", 200, 2, 2), ("PUT", 200, 2, 2), ("POST", 502, 1, 1)]
        {
            let mut agent = server.over(protocol).agent();
            let first = format!("/first?{protocol:?}-{method}");
            // The connection that is kept is the one that was used last.
            assert_eq!(ask(&mut agent, "POST", &first), 200);
            let path = format!("/second?{protocol:?}-{method}");
            assert_eq!(ask(&mut agent, method, &path), status, "{protocol:?} {method}");
            assert_eq!(origin.seen(&path).len(), sent, "{protocol:?} {method}");
            assert_eq!(logged(&server, &path)["origin"]["tries"], tries);
            if status == 200 {
                // Uses up the connection that is kept now.
                assert_eq!(ask(&mut agent, "POST", &format!("/third?{protocol:?}-{method}")), 502);
            }
        }
    }
}

/// Goal: a body that is still to come keeps no request from being repeated, as long as nothing of it was sent. Method: the kept
/// connection ends behind the head, and the client sends the body when the head has come a second time.
#[test]
fn a_request_is_repeated_before_its_body_comes() {
    fn ends_behind_the_second_head(peer: &mut Peer) {
        let Some(mut first) = peer.head() else { return };
        peer.note(&first);
        if peer.body(&mut first) {
            peer.answer("", &first.body);
            peer.head().iter().for_each(|second| peer.note(second));
        }
    }
    let origin = Origin::start(ends_behind_the_second_head);
    let server = server(&origin, "idle_ms = 60000");
    for protocol in Protocol::ALL {
        for body in [Body::Length(6), Body::Open] {
            let mut agent = server.over(protocol).agent();
            assert_eq!(agent.get("/first").status, 200);
            let path = format!("/put?{protocol:?}-{}", matches!(body, Body::Open));
            // The origin is asked before anything of the body is there.
            agent.begin("PUT", "localhost", &path, "Expect: 100-continue\r\n", body);
            wait_until("the head, twice", || origin.seen(&path).len() == 2);
            agent.send_body(b"a body");
            agent.finish_body();
            assert_eq!((agent.head().status, agent.body()), (200, Ok(b"a body".to_vec())), "{path}");
            assert_eq!(logged(&server, &path)["origin"]["tries"], 2);
            // Uses up the connection that is kept now.
            assert_eq!(ask(&mut agent, "POST", "/last"), 502);
        }
    }
}

/// Goal: an idle connection that the origin ends is not used again. Method: the origin ends it at once, and the worker sees
/// that before it asks for anything else.
#[test]
fn a_connection_that_ended_while_idle_is_not_used() {
    fn once(peer: &mut Peer) {
        if peer.request().is_some() {
            peer.answer("", "once");
        }
    }
    let origin = Origin::start(once);
    let server = server(&origin, "");
    let mut agent = server.agent();
    for number in 0..20 {
        let path = format!("/post?{number}");
        assert_eq!(agent.send("GET", &path, b"").status, 200);
        let idle = || server.status_text().contains("\"idle\":0");
        wait_until("no idle connection", idle);
    }
    assert_eq!(origin.seen("/post").len(), 20);
}

/// The origin is asked less often than it closes connections.
#[test]
fn a_connection_is_closed_before_the_origin_does_it() {
    let origin = Origin::start(for_two_seconds);
    let server = server(&origin, "idle_ms = 60000");
    assert_eq!(server.get("/a").text(), "kept");
    assert_eq!(server.get("/b").text(), "kept");
    assert_eq!(origin.seen("/b")[0].connection, 0, "it is kept");
    wait_until("its end", || server.status_text().contains("\"idle\":0"));
    assert_eq!(server.get("/c").text(), "kept");
    assert_eq!(origin.seen("/c")[0].connection, 1);
}

#[test]
fn the_settings_of_connections() {
    let origin = Origin::start(for_two_seconds);
    for (more, last) in [
        ("requests_per_connection_max = 2", 1),
        ("keep_connections = false", 2),
        ("idle_connections_max = 0", 2),
    ] {
        let server = server(&origin, more);
        let before = origin.seen("/").iter().map(|seen| seen.connection + 1).max().unwrap_or(0);
        let mut agent = server.agent();
        for number in 0..3 {
            assert_eq!(agent.get(&format!("/{number}")).text(), "kept");
        }
        let after = origin.seen("/").iter().map(|seen| seen.connection).max().expect("some");
        assert_eq!(after, before + last, "{more}");
    }
}
