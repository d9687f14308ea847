//! Ids of requests and traces: given or made, logged, passed on, answered.

use std::fs;

use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::protocol::Protocol;
use crate::common::server::{Server, wait_until};
use crate::origin::Origin;

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A server with a route to the origin, a folder, and these settings of the site.
fn start(origin: &Origin, architecture: &str, settings: &str) -> Server {
    let folder = Folder::new();
    folder.write("small.txt", "small");
    folder.write("large.bin", vec![b'x'; 300_000]);
    let to = origin.address();
    let configuration = format!(
        "architecture = \"{architecture}\"\n[log]\naccess = \"{{base}}/log\"\nformat = \"json\"\nflush_ms = 10\n\
         [[site]]\n{{listen}}\nroot = \"{{root}}\"\n{settings}\n\
         [[site.route]]\npath = \"/origin\"\nproxy = \"http://{to}\"\n\
         [[site.route]]\npath = \"/cached\"\nproxy = \"http://{to}\"\ncache = {{ default_s = 60 }}\n\
         [[site.route]]\npath = \"/app\"\nscgi = {{ to = \"127.0.0.1:1\" }}\n"
    );
    Server::run(folder, &configuration)
}

fn origin() -> Origin {
    Origin::start(|peer| {
        while peer.request().is_some() {
            peer.answer("X-Request-Id: of-the-origin\r\n", "answer");
        }
    })
}

/// The line of the request for this path.
fn line(server: &Server, path: &str) -> Value {
    let read = || fs::read_to_string(server.folder().base().join("log")).unwrap_or_default();
    let mut found = Value::Null;
    wait_until("the request is logged", || {
        let text = read();
        let line = text.lines().find(|line| line.contains(path));
        line.is_some_and(|line| {
            found = serde_json::from_str(line).expect("JSON");
            true
        })
    });
    found
}

/// Goal: every response has an id of the server, one per request, the same as in the log; a client that is not trusted
/// cannot choose it, however it spells the field. Method: files, ranges, errors and an origin, over each protocol.
#[test]
fn each_request_has_an_id() {
    let origin = origin();
    for architecture in ["auto", "pipeline", "threads"] {
        let server = start(&origin, architecture, "request_id = true");
        let mut seen = Vec::new();
        for protocol in Protocol::ALL {
            let mut agent = server.over(protocol).agent();
            let word = format!("{architecture}-{protocol:?}");
            for (path, fields, status) in [
                ("/small.txt", "", 200),
                ("/large.bin", "", 200),
                ("/large.bin", "Range: bytes=1-2\r\n", 206),
                ("/small.txt", "Range: bytes=90-\r\n", 416),
                ("/none", "", 404),
                ("/app", "", 502),
                ("/origin", "", 200),
                ("/cached", "", 200),
                ("/cached", "", 200),
            ] {
                let own = "X-Request-Id: chosen\r\nx-request-ID: again\r\nX_Request_Id: spelt\r\n";
                let path = format!("{path}?{word}-{}", seen.len());
                let response = agent.ask("GET", &path, &format!("{own}{fields}"));
                assert_eq!(response.status, status, "{path}");
                let id = response.field("x-request-id").expect("an id");
                assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{path}: {id}");
                assert_eq!(line(&server, &path)["request_id"], id, "{path}");
                if path.starts_with("/origin") {
                    let asked = origin.seen(&path).remove(0);
                    assert_eq!(asked.field("x-request-id"), Some(id), "{}", asked.head);
                    assert!(!asked.head.contains("spelt"), "{}", asked.head);
                }
                assert!(!seen.contains(&id.to_owned()), "{id} twice");
                seen.push(id.to_owned());
            }
            assert_eq!(agent.get("/large.bin").body, vec![b'x'; 300_000]);
            assert_eq!(agent.ask("HEAD", "/large.bin", "").field("content-length"), Some("300000"));
        }
    }
}

/// A trusted client gives the id, unless it fits into no log; a body behind the head arrives as it is.
#[test]
fn trusted_clients_give_the_id() {
    let origin = origin();
    let id = "request_id = { header = \"X-Id\", trust = [\"127.0.0.1\"] }";
    let server = start(&origin, "auto", id);
    let fields = "X-Id: given-1\r\nContent-Length: 3\r\n";
    let mut client = server.connect();
    client.send(format!("POST /origin?a HTTP/1.1\r\nHost: localhost\r\n{fields}\r\nabc"));
    let response = client.response();
    assert_eq!(response.field("x-id"), Some("given-1"));
    let asked = origin.seen("/origin?a").remove(0);
    assert_eq!((asked.field("x-id"), &asked.body[..]), (Some("given-1"), &b"abc"[..]));
    assert_eq!(line(&server, "/origin?a")["request_id"], "given-1");

    let response = server.agent().ask("GET", "/small.txt", "X-Id: \"quoted\"\r\n");
    assert_eq!(response.field("x-id").map(str::len), Some(32));
}

/// A trace is passed on, and begun only where that is asked for.
#[test]
fn traces_are_passed_on_and_begun() {
    let origin = origin();
    let quiet = start(&origin, "auto", "");
    let given = format!("traceparent: {PARENT}\r\ntracestate: a=b\r\n");
    quiet.agent().ask("GET", "/origin?quiet", &given);
    let asked = origin.seen("/origin?quiet").remove(0);
    assert_eq!((asked.field("traceparent"), asked.field("tracestate")), (Some(PARENT), Some("a=b")));
    quiet.agent().get("/origin?bare");
    assert_eq!(origin.seen("/origin?bare").remove(0).field("traceparent"), None);

    let server = start(&origin, "auto", "traceparent = true");
    server.agent().ask("GET", "/origin?given", &given);
    assert_eq!(origin.seen("/origin?given").remove(0).field("traceparent"), Some(PARENT));
    assert_eq!(line(&server, "/origin?given")["trace_id"], TRACE);
    server.over(Protocol::H2c).agent().ask(
        "GET",
        "/origin?bad",
        "traceparent: 00-1-2-3\r\ntracestate: a=b\r\n",
    );
    let asked = origin.seen("/origin?bad").remove(0);
    let begun = asked.field("traceparent").expect("a trace");
    assert!(begun.len() == PARENT.len() && begun.starts_with("00-") && begun.ends_with("-01"), "{begun}");
    assert_eq!(asked.field("tracestate"), None);
    assert_eq!(line(&server, "/origin?bad")["trace_id"], &begun[3..35]);
}
