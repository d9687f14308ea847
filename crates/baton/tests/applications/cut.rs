//! Responses that applications do not complete: by every transport, the client gets the available part and can tell
//! that it is incomplete, and the two logs say the same.

use std::fs;
use std::net::TcpListener;

use baton_responder::Responder;

use crate::common::agent::{Agent, Body, CutOff};
use crate::common::folder::{Folder, pattern};
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::{program, scgi};

const TRANSPORTS: [&str; 5] = ["unix", "shm", "passfd", "inet", "scgi"];

/// One application, by every transport.
fn server() -> Server {
    let folder = Folder::new();
    let mut routes = String::new();
    for transport in TRANSPORTS {
        let socket = folder.base().join(format!("{transport}.sock"));
        let to = if transport == "inet" {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address").to_string();
            program::answer_with(&Responder::new(listener.into()), folder.base(), 1);
            address
        } else {
            match transport {
                "scgi" => scgi::start(&socket, folder.base()),
                _ => program::start(&socket, folder.base(), 1),
            }
            format!("unix:{}", socket.display())
        };
        let settings = match transport {
            "scgi" => format!("scgi = {{ to = '{to}' }}"),
            _ => format!("fastcgi = {{ to = '{to}', transport = '{transport}' }}"),
        };
        routes.push_str(&format!("[[site.route]]\npath = '/{transport}'\n{settings}\n"));
    }
    let log = "[log]\naccess = '{base}/access.log'\nformat = 'json'\nflush_ms = 10\n";
    let site = "[[site]]\n{listen}\n";
    Server::run(folder, &format!("processes = 1\n{log}{site}{routes}"))
}

/// Waits for the one line of a request in the access log.
fn logged(server: &Server, request: &str) -> serde_json::Value {
    let file = server.folder().base().join("access.log");
    let lines = || {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let lines: Vec<_> = text.lines().filter(|line| line.contains(request)).map(str::to_owned).collect();
        lines
    };
    wait_until("its line in the log", || !lines().is_empty());
    let [line] = &lines()[..] else { panic!("{request} is logged twice") };
    serde_json::from_str(line).expect("JSON")
}

/// Head, body and end come together, or the end comes when the rest has been sent.
#[test]
fn a_response_shorter_than_its_length_arrives_as_far_as_it_goes() {
    let server = server();
    for (protocol, below, path) in each(&["short", "short-flushed"]) {
        // Its own line in the log.
        let target = format!("/{below}/{path}?{protocol:?}");
        let mut client = server.over(protocol).agent();
        client.begin("GET", "stage", &target, "", Body::None);
        if let Agent::Http1(client) = &mut client {
            // Unread input must not turn the close into a reset, which would destroy data in flight.
            client.send(format!("GET /{below}/short HTTP/1.1\r\nHost: never\r\n\r\n"));
        }
        let head = client.head();
        assert_eq!((head.status, head.field("content-length")), (200, Some("100000")), "{target}");
        assert!(client.body() == Err(CutOff(pattern(10_000, 1).to_vec())), "{target}");
        let line = logged(&server, &format!("GET {target} {}", protocol.version()));
        let expected = (200.into(), 10_000.into(), "application-failed".into());
        assert_eq!((line["status"].clone(), line["body_bytes"].clone(), line["outcome"].clone()), expected);
        let said = format!("GET {target}: its response is shorter than its Content-Length");
        wait_until(&said, || server.said().contains(&said));
    }
}

#[test]
fn a_response_without_a_body_is_not_short() {
    let server = server();
    for (protocol, below, _) in each(&["/"]) {
        let mut client = server.over(protocol).agent();
        for (method, path, status) in
            [("HEAD", "short", 200), ("GET", "unchanged?204", 204), ("GET", "unchanged?304", 304)]
        {
            let path = format!("/{below}/{path}");
            assert_eq!(client.ask(method, &path, "").status, status, "{path}: the connection is kept");
        }
    }
    assert!(!server.said().contains("shorter"), "{}", server.said());
}

/// Whether the output ends within a line or after one.
#[test]
fn a_response_that_ends_inside_its_head_is_a_bad_gateway() {
    let server = server();
    for (protocol, below, path) in each(&["half-head", "half-line"]) {
        let target = format!("/{below}/{path}");
        let mut client = server.over(protocol).agent();
        for _ in 0..2 {
            assert_eq!(client.get(&target).status, 502, "{target}");
        }
        let said =
            format!("GET {target}: its response cannot be sent on: the response ended inside its head");
        wait_until(&said, || server.said().contains(&said));
    }
}

/// The paths below each transport, over each protocol.
fn each<'a>(paths: &'a [&'a str]) -> impl Iterator<Item = (Protocol, &'static str, &'a str)> {
    Protocol::ALL.into_iter().flat_map(move |protocol| {
        TRANSPORTS.into_iter().flat_map(move |below| paths.iter().map(move |path| (protocol, below, *path)))
    })
}
