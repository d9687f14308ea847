//! Responses that applications do not complete: by every transport, the client gets the available part and can tell
//! that it is incomplete, and the two logs say the same.

use std::fs;
use std::net::TcpListener;

use baton_responder::Responder;

use crate::common::folder::{Folder, pattern};
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
    let site = "[[site]]\nlisten = ['127.0.0.1:0']\n";
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
    for below in TRANSPORTS {
        for path in ["short", "short-flushed"] {
            let target = format!("/{below}/{path}");
            let mut client = server.connect();
            // Unread input must not turn the close into a reset, which would destroy data in flight.
            client.send(format!(
                "GET {target} HTTP/1.1\r\nHost: stage\r\n\r\nGET /{below}/short HTTP/1.1\r\nHost: never\r\n\r\n"
            ));
            let head = client.head();
            assert_eq!((head.status, head.field("content-length")), (200, Some("100000")), "{target}");
            assert!(client.rest() == pattern(10_000, 1), "{target}");
            let line = logged(&server, &format!("GET {target} HTTP/1.1"));
            let expected = (200.into(), 10_000.into(), "application-failed".into());
            assert_eq!(
                (line["status"].clone(), line["body_bytes"].clone(), line["outcome"].clone()),
                expected
            );
            let said = format!("GET {target}: its response is shorter than its Content-Length");
            wait_until(&said, || server.said().contains(&said));
        }
    }
}

#[test]
fn a_response_without_a_body_is_not_short() {
    let server = server();
    for below in TRANSPORTS {
        let mut client = server.connect();
        for (method, path, status) in
            [("HEAD", "short", 200), ("GET", "unchanged?204", 204), ("GET", "unchanged?304", 304)]
        {
            client.send(format!("{method} /{below}/{path} HTTP/1.1\r\nHost: stage\r\n\r\n"));
            assert_eq!(client.answer_to(method).status, status, "{below}/{path}: the connection is kept");
        }
    }
    assert!(!server.said().contains("shorter"), "{}", server.said());
}

/// Whether the output ends within a line or after one.
#[test]
fn a_response_that_ends_inside_its_head_is_a_bad_gateway() {
    let server = server();
    for below in TRANSPORTS {
        for path in ["half-head", "half-line"] {
            let target = format!("/{below}/{path}");
            let mut client = server.connect();
            for _ in 0..2 {
                client.send(format!("GET {target} HTTP/1.1\r\nHost: stage\r\n\r\n"));
                assert_eq!(client.answer_to("GET").status, 502, "{target}");
            }
            let said =
                format!("GET {target}: its response cannot be sent on: the response ended inside its head");
            wait_until(&said, || server.said().contains(&said));
        }
    }
}
