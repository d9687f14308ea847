//! Independent clients of files and applications: curl, nghttp, h2load, Python's h2.

use std::process::{Command, Output};

use crate::architectures::under_every_architecture;
use crate::common::folder::pattern;
use crate::common::watched::Watched;
use crate::peer::Peer;
use crate::site::{self, SMALL, large};

under_every_architecture! { by name: curl, nghttp, h2load, python_h2, streams_of_one_connection }

/// Goal: files, ranges, conditions, HEAD, errors and uploads as curl sees them.
fn curl(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let get = |path: &str, arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--http2-prior-knowledge", "--max-time", "25"]);
        command.args(arguments).arg(url(&server, path));
        ran(&mut command)
    };
    assert_eq!(get("/small.txt", &[]), SMALL.as_bytes());
    assert!(get("/large.bin", &[]) == large());
    assert_eq!(get("/small.txt", &["--range", "1-2"]), b"ma");
    let head = String::from_utf8(get("/small.txt", &["--head"])).unwrap();
    assert!(head.starts_with("HTTP/2 200") && head.contains("content-length: 5\r\n"), "{head}");
    assert!(!head.to_ascii_lowercase().contains("connection:"), "{head}");
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).expect("an etag").trim();
    let code = ["--output", "/dev/null", "--write-out", "%{http_code} %{http_version}"];
    let condition = format!("If-None-Match: {etag}");
    assert_eq!(get("/small.txt", &[&code[..], &["--header", &condition]].concat()), b"304 2");
    assert_eq!(get("/none", &code), b"404 2");
    assert_eq!(get("/app/nothing", &code), b"204 2");
    assert_eq!(get("/app/echo", &["--data-binary", "a body"]), b"a body");
    let variables = String::from_utf8(get("/app/variables", &["--cookie", "a=1; b=2"])).unwrap();
    for line in ["SERVER_PROTOCOL=HTTP/2.0\n", "HTTP_COOKIE=a=1; b=2\n", "REQUEST_METHOD=GET\n"] {
        assert!(variables.contains(line), "{variables}");
    }
    assert!(variables.contains(&format!("HTTP_HOST={}\n", server.server().address())), "{variables}");
    assert_eq!(server.line_of("/small.txt")["request"], "GET /small.txt HTTP/2.0");
}

/// Goal: nghttp, the reference, gets whole files over one connection.
fn nghttp(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let mut command = Command::new("nghttp");
    command.args(["--timeout=25", &url(&server, "/large.bin")]);
    assert!(ran(&mut command) == large());
    let mut command = Command::new("nghttp");
    command.args(["--timeout=25", "--multiply=50", "--null-out", "--stat"]);
    let text = String::from_utf8(ran(command.arg(url(&server, "/small.txt")))).unwrap();
    assert_eq!(text.matches(" 200 ").count(), 50, "{text}");
}

/// Goal: many connections with many streams each, all answered. Method: h2load's own count.
fn h2load(architecture: &str) {
    let server = site::start(architecture, 4, "");
    for (path, requests, streams) in
        [("/small.txt", "4000", "100"), ("/large.bin", "64", "8"), ("/app/nothing", "400", "20")]
    {
        let mut command = Command::new("h2load");
        command.args(["--requests", requests, "--clients", "4", "--max-concurrent-streams", streams]);
        let text = String::from_utf8(ran(command.arg(url(&server, path)))).unwrap();
        let all = format!("{requests} succeeded, 0 failed, 0 errored, 0 timeout");
        assert!(
            text.contains(&all) && text.contains(&format!("status codes: {requests} 2xx")),
            "{path}: {text}"
        );
    }
}

/// Goal: Python's h2, which checks what it receives strictly, gets files and sends bodies, interleaved.
fn python_h2(architecture: &str) {
    let server = site::start(architecture, 2, "");
    let client = |length: &str, paths: &[&str]| {
        let mut command = Command::new("/usr/bin/python3");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http2/client.py");
        command.args(["-B", script, &server.server().address().port().to_string(), length]).args(paths);
        let text = String::from_utf8(ran(&mut command)).unwrap();
        let numbers = |line: &str| line.rsplit_once(' ').map(|(start, _)| start.to_owned());
        text.lines().filter_map(numbers).collect::<Vec<_>>()
    };
    let large_bytes = format!("200 {}", large().len());
    let got = client("0", &["/large.bin", "/small.txt", "/none", "/large.bin", "/app/bytes?300000"]);
    assert_eq!((&got[0], &got[1][..], &got[3]), (&large_bytes, "200 5", &large_bytes));
    assert!(got[2].starts_with("404 "));
    assert_eq!(got[4], "200 300000");
    assert_eq!(client("200000", &["/app/echo", "/app/echo"]), ["200 200000", "200 200000"]);
}

/// Goal: responses of one connection do not wait for each other, nor mix. Method: a large file, small ones, an
/// application that streams, errors, all requested at once.
fn streams_of_one_connection(architecture: &str) {
    let server = site::start(architecture, 2, "");
    let mut peer = Peer::connect(server.server().address());
    let mut streams = vec![peer.get("/large.bin"), peer.get("/app/stream?70000"), peer.get("/none")];
    streams.extend((0..20).map(|_| peer.get("/small.txt")));
    let answers = peer.answers(&streams);
    assert!((answers[0].status, &*answers[0].body) == (200, large()));
    assert!((answers[1].status, &*answers[1].body) == (200, pattern(70_000, 1)));
    assert_eq!(answers[2].status, 404);
    for answer in &answers[3..] {
        assert_eq!((answer.status, &answer.body[..], answer.reset), (200, SMALL.as_bytes(), None));
        assert_eq!(answer.field("content-length"), Some("5"));
    }
}

fn url(server: &Watched, path: &str) -> String {
    format!("http://{}{path}", server.server().address())
}

/// What the command prints, which must succeed.
fn ran(command: &mut Command) -> Vec<u8> {
    let Output { status, stdout, stderr } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error} (scripts/setup-tests installs it)"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
    assert!(status.success(), "{command:?}: {status}\n{}\n{}", text(&stderr), text(&stdout));
    stdout
}
