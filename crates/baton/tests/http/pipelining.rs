//! Requests that do not wait for answers: answered all, in order, each exactly.

use crate::common::server::Server;
use crate::museum::{ALPHABET, pattern_of};

crate::protocols::over_http1!(
    twenty_requests_with_one_write,
    more_requests_than_are_answered_with_one_send,
    requests_behind_the_last_are_not_answered,
    clients_do_not_get_each_other_s_answers,
);

/// Sizes and statuses of all kinds, methods and bodies mixed.
fn twenty_requests_with_one_write(server: &Server) {
    let etag = server.get("/alphabet.txt").field("etag").expect("a tag").to_owned();
    let (k1, k16, k100, m1) =
        (pattern_of("1k.bin"), pattern_of("16k.bin"), pattern_of("100k.bin"), pattern_of("1m.bin"));
    let matching = format!("If-None-Match: {etag}\r\n");
    let exchanges: [(&str, &str, &str, u16, &[u8]); 20] = [
        ("GET", "/small.txt", "", 200, b"small\n"),
        ("GET", "/1m.bin", "", 200, m1),
        ("HEAD", "/1m.bin", "", 200, b""),
        ("GET", "/alphabet.txt", &matching, 304, b""),
        ("GET", "/16k.bin", "", 200, k16),
        ("GET", "/alphabet.txt", "Range: bytes=23-\r\n", 206, b"xyz"),
        ("GET", "/empty.txt", "", 200, b""),
        ("GET", "/100k.bin", "", 200, k100),
        ("OPTIONS", "/small.txt", "", 204, b""),
        ("GET", "/1m.bin", "Range: bytes=500000-600000\r\n", 206, &m1[500_000..=600_000]),
        ("GET", "/1k.bin", "", 200, k1),
        ("GET", "/1k.bin", "", 200, k1),
        ("HEAD", "/small.txt", "", 200, b""),
        ("GET", "/alphabet.txt", "Content-Length: 3\r\n", 200, ALPHABET.as_bytes()),
        ("GET", "/folder/", "", 200, b"the folder's index\n"),
        ("GET", "/1m.bin", "Range: bytes=-1\r\n", 206, &m1[m1.len() - 1..]),
        ("GET", "/names/%C3%BC%20%C3%B1.txt", "", 200, "ü ñ.txt".as_bytes()),
        ("GET", "/1m.bin", "If-Match: *\r\n", 200, m1),
        ("GET", "/alphabet.txt", "If-Match: \"other\"\r\nRange: bytes=0-0\r\n", 412, b"*"),
        ("GET", "/small.txt", "Connection: close\r\n", 200, b"small\n"),
    ];
    let mut requests = String::new();
    for (method, path, fields, ..) in exchanges {
        let body = if fields.contains("Length: 3") { "GET" } else { "" };
        requests.push_str(&format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n{body}"));
    }
    let mut client = server.connect();
    client.send(requests);
    for (method, path, fields, status, body) in exchanges {
        let response = client.response_to(method);
        assert_eq!(response.status, status, "{method} {path} {fields}");
        // A page of the server's own words: any.
        assert!(
            response.body == body || body == b"*",
            "{method} {path} {fields}: {} bytes",
            response.body.len()
        );
    }
    client.expect_end();
}

/// Many more than `limits.pipelined_max`, some of them large, so that sending and receiving alternate.
fn more_requests_than_are_answered_with_one_send(server: &Server) {
    let paths: Vec<_> = (0..300).map(|index| if index % 50 == 7 { "/100k.bin" } else { "/1k.bin" }).collect();
    let request = |path: &&str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut client = server.connect();
    client.send(paths.iter().map(request).collect::<String>());
    for (index, path) in paths.iter().enumerate() {
        assert!(client.response().body == pattern_of(&path[1..]), "answer {index}, {path}");
    }
    assert_eq!(client.get("/small.txt").text(), "small\n");
}

/// The second of three says that it is the last.
fn requests_behind_the_last_are_not_answered(server: &Server) {
    let mut client = server.connect();
    client.send(
        "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n\
         GET /1m.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n\
         GET /alphabet.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    assert_eq!(client.response().text(), "small\n");
    assert!(client.response().body == pattern_of("1m.bin"));
    client.expect_end();
}

/// Several connections in turns, each with its own files.
fn clients_do_not_get_each_other_s_answers(server: &Server) {
    let names = ["1k.bin", "16k.bin", "100k.bin", "1m.bin", "1k.bin", "16k.bin", "100k.bin", "1m.bin"];
    let mut clients: Vec<_> = names.iter().map(|name| (name, server.connect())).collect();
    for _ in 0..5 {
        for (name, client) in &mut clients {
            client.send(format!("GET /{name} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        }
        for (name, client) in clients.iter_mut().rev() {
            assert!(client.response().body == pattern_of(name), "{name}");
        }
    }
}
