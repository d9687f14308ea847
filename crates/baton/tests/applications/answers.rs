//! Applications' responses reach the client byte for byte, by every transport.

use crate::common::folder::pattern;
use crate::common::server::Server;

crate::protocols::over_every_protocol!(
    bodies_of_every_size,
    bodies_of_unknown_length,
    heads_as_the_application_wants_them,
    heads_as_the_route_wants_them,
    no_body_for_head,
);

/// What only HTTP/1 has.
mod http1 {
    crate::protocols::over_http1!(clients_of_http_1_0, pipelined_requests_in_order);

    use super::{clients_of_http_1_0, pipelined_requests_in_order};
}

const SIZES: [usize; 9] = [0, 1, 100, 8_184, 65_536, 131_072, 131_073, 1_000_000, 3_000_000];

/// All on one kept connection.
fn bodies_of_every_size(server: &Server, below: &str) {
    let mut client = server.agent();
    for size in SIZES {
        let answer = client.get(&format!("{below}/bytes?{size}"));
        assert_eq!((answer.status, answer.body.len()), (200, size));
        assert!(answer.body == pattern(size, 1), "{size} bytes, but others");
        assert_eq!(answer.field("content-length"), Some(&*size.to_string()));
        assert_eq!(answer.field("server"), Some("baton"));
        assert_eq!(answer.field("x-route"), Some(&below[1..]));
        assert!(answer.field("date").is_some());
    }
}

fn bodies_of_unknown_length(server: &Server, below: &str) {
    let mut client = server.agent();
    for size in SIZES {
        let answer = client.get(&format!("{below}/stream?{size}"));
        assert!(answer.body == pattern(size, 1), "{} of {size} bytes", answer.body.len());
    }
    assert_eq!(client.get("/alphabet.txt").text(), crate::site::ALPHABET);
}

/// `set` replaces, `add` adds, `remove` removes, and `default` yields to the application's field; in responses that
/// the application writes itself, those with a named file, and those of the server.
fn heads_as_the_route_wants_them(server: &Server, below: &str) {
    let mut client = server.agent();
    for (path, seen, cached) in [
        ("/fields", &["app", "server", "twice"][..], "private"),
        ("/fields-of-a-file", &["app", "server", "twice"], "private"),
        ("/bytes?1", &["server", "twice"], "no-store"),
        ("/sendfile", &["server", "twice"], "no-store"),
        ("/silent", &["server", "twice"], "no-store"),
    ] {
        let answer = client.get(&format!("{below}{path}"));
        let all = |name: &str| {
            let named = answer.fields.iter().filter(|(other, _)| other == name);
            let mut values: Vec<_> = named.map(|(_, value)| value.as_str()).collect();
            values.sort_unstable();
            values
        };
        assert_eq!(all("x-frame-options"), ["DENY"], "{path}");
        assert_eq!(all("x-powered-by"), [""; 0], "{path}");
        assert_eq!(all("x-seen"), seen, "{path}");
        assert_eq!((all("cache-control"), all("content-language")), (vec![cached], vec!["en"]), "{path}");
        assert_eq!(all("x-route"), [&below[1..]], "{path}");
    }
}

fn heads_as_the_application_wants_them(server: &Server, below: &str) {
    let mut client = server.agent();
    let nothing = client.get(&format!("{below}/nothing"));
    assert_eq!((nothing.status, nothing.field("content-length")), (204, None));
    let reset = client.get(&format!("{below}/reset"));
    assert_eq!((reset.status, reset.field("content-length"), reset.text()), (205, Some("0"), ""));
    let missing = client.get(&format!("{below}/missing"));
    assert!(missing.says(404, "Nothing Here") && missing.text() == "no\n", "{missing:?}");
    let absent = client.get(&format!("{below}/status-line"));
    assert!(absent.says(404, "Not at Home") && absent.text() == "no\n", "{absent:?}");
    assert_eq!(absent.field("connection"), None, "the version is the program's, not the client's");
    let elsewhere = client.get(&format!("{below}/elsewhere"));
    assert_eq!((elsewhere.status, elsewhere.field("location")), (302, Some("http://example.org/")));
    let cookies = client.get(&format!("{below}/cookies"));
    let set: Vec<_> =
        cookies.fields.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| &**value).collect();
    assert_eq!((set, cookies.text()), (vec!["a=1", "b=2"], "yes"));
    // What an application says of the connection is not for the client.
    assert_eq!((cookies.field("connection"), cookies.field("x-accel-buffering")), (None, None));
    let untyped = client.get(&format!("{below}/untyped"));
    assert_eq!((untyped.field("content-type"), untyped.field("x-is")), (None, Some("here")));
    let long = client.get(&format!("{below}/long"));
    assert_eq!(long.text(), "abc", "no more than declared");
}

fn clients_of_http_1_0(server: &Server, below: &str) {
    let mut client = server.connect();
    client.send(format!("GET {below}/bytes?1000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    let answer = client.answer_to("GET");
    assert_eq!((answer.field("connection"), &*answer.body), (Some("keep-alive"), pattern(1000, 1)));
    client.send(format!("GET {below}/stream?200000 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    let answer = client.answer_to("GET");
    assert_eq!(answer.field("transfer-encoding"), None);
    assert!(answer.body == pattern(200_000, 1));
    // An application that is quick has ended before its head is sent; then the length is known.
    if answer.field("content-length").is_none() {
        client.expect_end();
    }
}

fn no_body_for_head(server: &Server, below: &str) {
    let mut client = server.agent();
    for path in ["bytes?100000", "stream?100000", "missing"] {
        let answer = client.ask("HEAD", &format!("{below}/{path}"), "");
        let length = (path == "bytes?100000").then_some("100000");
        assert_eq!(answer.field("content-length").filter(|_| path != "missing"), length, "{path}");
    }
    assert_eq!(client.get(&format!("{below}/bytes?5")).body, pattern(5, 1));
}

fn pipelined_requests_in_order(server: &Server, below: &str) {
    let mut client = server.connect();
    let paths = [
        format!("{below}/bytes?70000"),
        "/alphabet.txt".into(),
        format!("{below}/missing"),
        format!("{below}/bytes?3"),
    ];
    let requests: String =
        paths.iter().map(|path| format!("GET {path} HTTP/1.1\r\nHost: stage\r\n\r\n")).collect();
    client.send(requests);
    let answers: Vec<_> = paths.iter().map(|_| client.answer_to("GET")).collect();
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 200, 404, 200]);
    assert!(answers[0].body == pattern(70_000, 1));
    assert_eq!((answers[1].text(), &*answers[3].body), (crate::site::ALPHABET, pattern(3, 1)));
}
