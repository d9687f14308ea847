//! Heads on their way to the origin and back: what goes on, what is added, what is changed.

use std::net::TcpListener;

use crate::common::agent::{Agent, Body};
use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::origin::Origin;
use crate::protocols;
use crate::site::{ORIGIN, Site, target};

protocols::over_every_protocol!(
    what_the_origin_is_told,
    forged_fields_stay_outside,
    fields_of_a_connection_end_there,
    paths,
    locations_and_cookies,
    an_origin_that_knows_its_route,
    a_trusted_proxy_is_believed,
    both_families_say_the_same,
    loops_end,
    methods,
    underscores_are_hyphens,
);

fn what_the_origin_is_told(site: &Site) {
    let path = target(site, "told", "told");
    site.server.agent().ask_host(
        "front.example",
        "GET",
        &path,
        "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\n",
    );
    let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
    let protocol = site.server.protocol();
    assert_eq!(seen.field("host"), Some("front.example"));
    assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.field("x-forwarded-proto"), Some(protocol.scheme()));
    assert_eq!(seen.field("x-forwarded-host"), Some("front.example"));
    let forwarded = format!("for=127.0.0.1;proto={};host=front.example", protocol.scheme());
    assert_eq!(seen.field("forwarded"), Some(&*forwarded));
    let via = seen.field("via").expect("Via");
    assert!(via.starts_with(if protocol.is_http2() { "2 baton-" } else { "1.1 baton-" }), "{via}");
}

/// Goal: an origin that believes the server believes no client. Method: every spelling that an application may take for one of
/// these fields.
fn forged_fields_stay_outside(site: &Site) {
    let fields: String = [
        "X-Forwarded-For: 6.6.6.6",
        "x-forwarded-for: 6.6.6.6",
        "X_Forwarded_For: 6.6.6.6",
        "X-Forwarded_For: 6.6.6.6",
        "X-Forwarded-Host: evil",
        "X_FORWARDED_HOST: evil",
        "X-Forwarded-Proto: evil",
        "X-Forwarded-Port: 6666",
        "X-Forwarded-Prefix: /evil",
        "X-Forwarded-Server: evil",
        "X-Forwarded-Ssl: evil",
        "X-Real-IP: 6.6.6.6",
        "X_Real_IP: 6.6.6.6",
        "Forwarded: for=6.6.6.6",
        "Forwarded: host=evil",
    ]
    .map(|field| format!("{field}\r\n"))
    .concat();
    let path = target(site, "forged", "forged");
    let mut agent = site.server.agent();
    assert_eq!(agent.ask("GET", &path, &fields).status, 200);
    let check = |path: &str| {
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        assert!(!seen.head.contains("6.6") && !seen.head.contains("evil"), "{}", seen.head);
        assert_eq!(seen.field("x-forwarded-for"), Some("127.0.0.1"));
        assert!(seen.field("forwarded").is_some_and(|told| told.starts_with("for=127.0.0.1;")));
        assert_eq!(seen.field("x-forwarded-proto"), Some(site.server.protocol().scheme()));
        seen.body.clone()
    };
    check(&path);
    if let Agent::Http1(mut client) = agent {
        // A client cannot name the server's own fields away, nor send them behind the body.
        let path = target(site, "forged", "nominated");
        let nominated = "Connection: X-Forwarded-For, Forwarded, X-Forwarded-Proto\r\n";
        assert_eq!(client.ask("GET", &path, &format!("{nominated}{fields}")).status, 200);
        check(&path);
        let path = target(site, "forged", "trailers");
        client.begin("POST", "localhost", &path, "", Body::Open);
        client.send("1\r\nx\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n");
        assert_eq!(client.response().status, 200);
        assert_eq!(check(&path), b"x");
    }
}

fn fields_of_a_connection_end_there(site: &Site) {
    let mut agent = site.server.agent();
    let response = agent.get(&target(site, "fields", "fields"));
    for gone in ["x-gone", "keep-alive", "x-hidden"] {
        assert_eq!(response.field(gone), None, "{gone}");
    }
    assert_eq!((response.field("x-kept"), response.field("server")), (Some("2"), Some("own")));
    if let Agent::Http1(mut client) = agent {
        let path = target(site, "fields", "fields");
        client.ask(
            "GET",
            &path,
            "Connection: keep-alive, X-Secret\r\nX-Secret: 1\r\nTE: gzip\r\nX-Open: 2\r\n",
        );
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        assert_eq!((seen.field("x-secret"), seen.field("te")), (None, None));
        assert_eq!((seen.field("x-open"), seen.field("connection")), (Some("2"), None));
    }
}

fn paths(site: &Site) {
    let mut agent = site.server.agent();
    let query = &target(site, "", "paths")["/o/".len()..];
    for (asked, told) in [
        ("/o", "/"),
        ("/o/", "/"),
        ("/o/a%20b;c//d%2Fe", "/a%20b;c//d%2Fe"),
        ("/o/x/../y", "/y"),
        ("/same/x", "/same/x"),
        ("/base", "/inner"),
        ("/base/x", "/inner/x"),
    ] {
        let response = agent.get(&format!("{asked}{query}"));
        assert!(
            response.text().starts_with(&format!("GET {told}{query} HTTP/1.1 ")),
            "{asked}: {response:?}"
        );
    }
}

fn locations_and_cookies(site: &Site) {
    let mut agent = site.server.agent();
    let response = agent.get(&target(site, "moved", "moved"));
    assert_eq!(response.field("location"), Some("/o/next?a"));
    assert_eq!(response.field("set-cookie"), Some("a=b; Path=/o/"));
    assert_eq!(response.field("x-host"), Some("localhost"));
}

/// An origin that was told its prefix says it itself.
fn an_origin_that_knows_its_route(site: &Site) {
    let response = site.server.agent().get(&target(site, "knows", "knows"));
    assert_eq!(response.field("location"), Some("/o/next?a"));
    assert_eq!(response.field("content-location"), Some("/o"));
    assert_eq!(response.field("refresh"), Some("1; url=/o/next"));
    assert_eq!(response.field("set-cookie"), Some("a=b; Path=/o/"));
}

/// On this route the origin reads its own host, and a proxy in front of the server is believed.
fn a_trusted_proxy_is_believed(site: &Site) {
    let query = &target(site, "", "trusted")["/o/".len()..];
    let fields = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\nCookie: a=b\r\n";
    site.server.agent().ask("GET", &format!("/base/x{query}"), fields);
    let [seen] = &ORIGIN.seen(&format!("/inner/x{query}"))[..] else { panic!("once") };
    assert_eq!(seen.field("host"), Some(&*ORIGIN.address().to_string()));
    assert_eq!(seen.field("x-forwarded-for"), Some("192.0.2.1, 127.0.0.1"));
    assert_eq!(seen.field("x-forwarded-proto"), Some("https"));
    assert_eq!((seen.field("x-key"), seen.field("cookie")), (Some("1"), None));
}

/// Goal: an origin reads the same of the client in either dialect. Method: a trusted proxy that speaks one, the other or both,
/// and one behind a proxy that has passed on a client's `Forwarded`.
fn both_families_say_the_same(site: &Site) {
    let older = "X-Forwarded-For: 203.0.113.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: www.test\r\n";
    let newer = "Forwarded: for=203.0.113.1;proto=https;host=www.test\r\n";
    let forged = "Forwarded: for=6.6.6.6;proto=http;host=evil\r\n";
    for fields in [older.to_owned(), newer.to_owned(), format!("{newer}{older}"), format!("{older}{forged}")]
    {
        let query = &target(site, "", "families")["/o/".len()..];
        site.server.agent().ask_host("h.test", "GET", &format!("/base/x{query}"), &fields);
        let [seen] = &ORIGIN.seen(&format!("/inner/x{query}"))[..] else { panic!("once") };
        let told = "for=203.0.113.1;proto=https;host=www.test, for=127.0.0.1";
        assert_eq!(seen.field("forwarded"), Some(told), "{fields}");
        assert_eq!(seen.field("x-forwarded-for"), Some("203.0.113.1, 127.0.0.1"), "{fields}");
        assert_eq!(seen.field("x-forwarded-proto"), Some("https"), "{fields}");
        assert_eq!(seen.field("x-forwarded-host"), Some("www.test"), "{fields}");
    }
}

/// Vite, Next and others under Node listen on one of the addresses of `localhost` only.
#[test]
fn localhost_is_every_loopback_address() {
    for address in ["[::1]:0", "127.0.0.1:0"] {
        // A machine without IPv6 has no such address.
        let Ok(listener) = TcpListener::bind(address) else { continue };
        let origin = Origin::start_on(listener, crate::manners::serve);
        let port = origin.address().port();
        let server = Server::run(
            Folder::new(),
            &format!(
                "[[site]]\nlisten = '127.0.0.1:0'\n[[site.route]]\npath = '/o'\nproxy = 'http://localhost:{port}/'\n"
            ),
        );
        for _ in 0..4 {
            assert_eq!(server.agent().get("/o/told").status, 200, "{address}");
        }
    }
}

/// Goal: a rule for a field holds for every spelling that an application may take for it. Method: spellings of the fields
/// that the route sets and removes, and of one that no rule is about.
fn underscores_are_hyphens(site: &Site) {
    let query = &target(site, "", "spelt")["/o/".len()..];
    let fields =
        "X_Key: evil\r\nx_KEY: evil\r\nX-Key: evil\r\nCookie: evil\r\nX_Own: evil\r\nX-Other: fine\r\n";
    assert_eq!(site.server.agent().ask("GET", &format!("/base/x{query}"), fields).status, 200);
    let [seen] = &ORIGIN.seen(&format!("/inner/x{query}"))[..] else { panic!("once") };
    assert!(!seen.head.contains("evil"), "{}", seen.head);
    assert_eq!((seen.fields("x-key"), seen.field("x-other")), (vec!["1"], Some("fine")));
}

/// The same where fields with an underscore are let in: those of no rule go on, the others are one field with the rule's.
#[test]
fn underscores_that_are_let_in_escape_no_rule() {
    for (architecture, protocol) in
        [("auto", Protocol::Http), ("pipeline", Protocol::H2), ("threads", Protocol::H2c)]
    {
        let server = Server::run(
            Folder::new(),
            &format!(
                "architecture = '{architecture}'\n[limits]\nunderscores_in_headers = true\n[[site]]\n{{listen}}\n\
                 [[site.route]]\npath = '/o'\nproxy = {{ to = 'http://{}/', request_headers = {{ set = {{ X-Key = '1' }}, \
                 remove = ['X-Gone'] }} }}\n",
                ORIGIN.address()
            ),
        )
        .over(protocol);
        let path = format!("/o/let-in?{architecture}");
        let fields = "X_Key: evil\r\nX_Gone: evil\r\nX_Forwarded_For: evil\r\nTransfer_Encoding: evil\r\nX_Own: fine\r\n";
        assert_eq!(server.agent().ask("GET", &path, fields).status, 200);
        let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
        assert!(!seen.head.contains("evil"), "{}", seen.head);
        assert_eq!((seen.fields("x-key"), seen.field("x_own")), (vec!["1"], Some("fine")));
    }
}

fn loops_end(site: &Site) {
    let path = target(site, "loop", "loop");
    let mut agent = site.server.agent();
    agent.get(&path);
    let [seen] = &ORIGIN.seen(&path["/o".len()..])[..] else { panic!("once") };
    let name = seen.field("via").and_then(|via| via.split(' ').nth(1)).expect("a name").to_owned();
    let via = [&*format!("1.1 {name}")].repeat(4).join(", ");
    let path = target(site, "loop", "loop");
    assert_eq!(agent.ask("GET", &path, &format!("Via: {via}\r\n")).status, 508);
    assert!(ORIGIN.seen(&path["/o".len()..]).is_empty());
    assert_eq!(site.line_of(&path)["outcome"], "refused");
}

fn methods(site: &Site) {
    let mut agent = site.server.agent();
    for method in ["OPTIONS", "PUT", "DELETE", "PATCH", "PROPFIND"] {
        let path = target(site, "method", "method");
        assert_eq!(agent.ask(method, &path, "").status, 200, "{method}");
        assert_eq!(ORIGIN.seen(&format!("{method} {}", &path["/o".len()..])).len(), 1, "{method}");
    }
    let path = target(site, "method", "method");
    assert!(matches!(agent.ask("TRACE", &path, "").status, 405 | 501));
    assert!(ORIGIN.seen(&path["/o".len()..]).is_empty());
}
