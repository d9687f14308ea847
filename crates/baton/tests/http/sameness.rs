//! The same bytes from every architecture.

use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::common::server::Server;

crate::protocols::over_http1!(responses_do_not_depend_on_the_architecture);

/// Sends a long series of requests of all kinds and compares all bytes with those of `sped`, except for the date, and
/// the boundary of parts, which must be unpredictable.
fn responses_do_not_depend_on_the_architecture(server: &Server) {
    static REFERENCE: LazyLock<Vec<(String, Vec<u8>)>> =
        LazyLock::new(|| transcript(crate::museum::server("sped")));
    for ((request, expected), (_, got)) in REFERENCE.iter().zip(transcript(server)) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(2000)]).into_owned();
        assert!(*expected == got, "{request}\nexpected:\n{}\ngot:\n{}", text(expected), text(&got));
    }
}

/// Requests, and all bytes of their answers.
fn transcript(server: &Server) -> Vec<(String, Vec<u8>)> {
    requests()
        .into_iter()
        .map(|request| {
            let mut client = server.connect();
            client.send(&request);
            client.finish_sending();
            let answer = client.rest();
            assert!(answer.starts_with(b"HTTP/1.1 "), "{request}");
            let answer = normalized(answer);
            (request, answer)
        })
        .collect()
}

fn requests() -> Vec<String> {
    let mut requests = Vec::new();
    let hosts = ["localhost", "listed.example", "application.example", "open.example", "routes.example"];
    let paths = [
        "/",
        "/small.txt",
        "/empty.txt",
        "/1k.bin",
        "/16k.bin",
        "/100k.bin",
        "/1m.bin",
        "/none",
        "/folder",
        "/folder/",
        "/bare/",
        "/packed/page.html",
        "/packed/only.js",
        "/style.css",
        "/links/in.txt",
        "/links/out.txt",
        "/.env",
        "/%00",
        "/../x",
        "/gone",
        "/old?x",
        "/exact/who.txt",
        "/guarded/",
        "/listed/?format=json",
    ];
    let fields = [
        "",
        "Range: bytes=1-2\r\n",
        "Range: bytes=0-0,3-4,-1\r\n",
        "Range: bytes=99999999-\r\n",
        "If-None-Match: *\r\n",
        "If-Match: \"x\"\r\n",
        "If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT\r\n",
        "Accept-Encoding: gzip, br;q=0.5\r\n",
        "Connection: close\r\n",
        "Content-Length: 3\r\n",
    ];
    for host in hosts {
        for path in paths {
            let mut pipelined = String::new();
            for field in fields {
                let body = if field.starts_with("Content-Length") { "abc" } else { "" };
                for method in ["GET", "HEAD", "POST"] {
                    if field.starts_with("Connection") {
                        continue;
                    }
                    // Writing to a string cannot fail.
                    let _ =
                        write!(pipelined, "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{field}\r\n{body}");
                }
            }
            requests.push(pipelined);
            requests.push(format!("GET {path} HTTP/1.0\r\nHost: {host}\r\n\r\n"));
            requests.push(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
        }
    }
    for refused in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
        "GET / HTTP/3.0\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        "BREW /tea HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        requests.push(refused.to_owned());
    }
    requests
}

/// Overwrites the values of `Date` and the random part of boundaries.
fn normalized(mut answer: Vec<u8>) -> Vec<u8> {
    for (mark, len) in [(&b"\r\nDate: "[..], 29), (b"=baton", 16), (b"--baton", 16)] {
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&answer[from..], mark) {
            let start = from + at + mark.len();
            answer[start..start + len].fill(b'.');
            from = start + len;
        }
    }
    answer
}
