//! What clients say reaches the application.

use crate::common::agent::Body;
use crate::common::folder::{Folder, pattern};
use crate::common::server::Server;
use crate::program;

crate::protocols::over_every_protocol!(
    variables_as_cgi_names_them,
    bodies_with_and_without_a_length,
    bodies_that_are_too_long,
    paths_are_decoded_once,
);

/// What other protocols' clients do not send.
mod http1 {
    crate::protocols::over_http1!(targets_are_told_as_they_were_sent);

    use super::targets_are_told_as_they_were_sent;
}

fn variables_as_cgi_names_them(server: &Server, below: &str) {
    let mut client = server.agent();
    let port = client.tcp().local_addr().unwrap().port();
    let fields = "X-Two: 1\r\nX-Two: 2\r\nProxy: evil\r\nX_Under: score\r\nCookie: c=1\r\n";
    let answer = client.ask_host("Stage:8080", "GET", &format!("{below}/variables?a=%20&b"), fields);
    let lines: Vec<_> = answer.text().lines().collect();
    let root = server.folder().root();
    for expected in [
        "REQUEST_METHOD=GET".to_owned(),
        "QUERY_STRING=a=%20&b".into(),
        format!("REQUEST_URI={below}/variables?a=%20&b"),
        format!("SCRIPT_NAME={below}"),
        "PATH_INFO=/variables".into(),
        format!("DOCUMENT_ROOT={}", root.display()),
        format!("SERVER_PROTOCOL={}", server.protocol().version()),
        "GATEWAY_INTERFACE=CGI/1.1".into(),
        "SERVER_NAME=Stage".into(),
        "HTTP_HOST=Stage:8080".into(),
        format!("SERVER_PORT={}", server.address().port()),
        "REMOTE_ADDR=127.0.0.1".into(),
        format!("REMOTE_PORT={port}"),
        "HTTP_X_TWO=1, 2".into(),
        "HTTP_COOKIE=c=1".into(),
        "STAGE=test".into(),
        format!("BATON_ZEROCOPY={}/named", server.folder().base().display()),
    ] {
        assert!(lines.contains(&&*expected), "{expected} is not in {lines:#?}");
    }
    assert_eq!(lines.contains(&"HTTPS=on"), server.protocol().is_secure());
    for name in ["HTTP_PROXY=", "HTTP_X_UNDER=", "BATON_OFFER="] {
        assert!(!lines.iter().any(|line| line.starts_with(name)), "{name} in {lines:#?}");
    }
}

/// Goal: a configured parameter replaces those of the server, the path and the client. Method: each kind is
/// configured, and a request has another value.
#[test]
fn configured_parameters_replace_those_of_the_server_and_of_clients() {
    let folder = Folder::new();
    program::start(&folder.base().join("app.sock"), folder.base(), 1);
    let params = "SCRIPT_FILENAME = '/usr/bin/other', HTTP_X_USER = 'ours', HTTP_HOST = 'inside', \
                  CONTENT_TYPE = 'a/b', REMOTE_ADDR = '192.0.2.1', HTTP_NEW = '', OWN = '1'";
    let server = Server::run(folder, &WHOLE_SITE.replace(" }", &format!(", params = {{ {params} }} }}")));
    let mut client = server.connect();
    client.send(
        "GET /variables HTTP/1.1\r\nHost: a\r\nX-User: evil\r\nX-Other: kept\r\nContent-Type: c/d\r\n\r\n",
    );
    let answer = client.answer_to("GET");
    let lines: Vec<_> = answer.text().lines().collect();
    for (name, value) in [
        ("SCRIPT_FILENAME", "/usr/bin/other"),
        ("HTTP_X_USER", "ours"),
        ("HTTP_HOST", "inside"),
        ("CONTENT_TYPE", "a/b"),
        ("REMOTE_ADDR", "192.0.2.1"),
        ("HTTP_NEW", ""),
        ("OWN", "1"),
        ("HTTP_X_OTHER", "kept"),
        ("PATH_INFO", "/variables"),
    ] {
        let told = lines.iter().filter_map(|line| line.split_once('=')).filter(|pair| pair.0 == name);
        assert_eq!(told.map(|pair| pair.1).collect::<Vec<_>>(), [value], "{name} in {lines:#?}");
    }
}

/// Some stay in memory, some go to a file; a chunked one has a length when the application gets it.
fn bodies_with_and_without_a_length(server: &Server, below: &str) {
    let mut client = server.agent();
    let path = format!("{below}/echo");
    for size in [0, 1, 60_000, 65_537, 1_000_000] {
        let body = pattern(size, 3);
        assert!(client.send("POST", &path, body).body == body, "{size} bytes with their length");

        client.begin("PUT", "stage", &path, "", Body::Open);
        body.chunks(7_001).for_each(|chunk| client.send_body(chunk));
        client.finish_body();
        assert!(client.response().body == body, "{size} bytes without a length");
    }
    client.begin("POST", "stage", &path, "Expect: 100-continue\r\n", Body::Length(3));
    client.expect_continue();
    client.send_body(b"abc");
    client.finish_body();
    assert_eq!(client.response().body, b"abc");
}

fn bodies_that_are_too_long(server: &Server, below: &str) {
    let mut client = server.agent();
    let path = format!("{below}/echo");
    client.begin("POST", "stage", &path, "", Body::Length(5_000_000));
    let answer = client.response();
    assert_eq!((answer.status, answer.field("x-route")), (413, Some(&below[1..])));

    let mut client = server.agent();
    client.begin("POST", "stage", &path, "", Body::Open);
    for _ in 0..4 {
        client.send_body(pattern(0x10_0000, 1));
    }
    client.send_body(b"x");
    assert_eq!(client.response().status, 413);
}

/// The application answers an unknown path with that path, as it received it.
fn paths_are_decoded_once(server: &Server, below: &str) {
    let mut client = server.agent();
    for (path, path_info) in [
        ("/page/Main%2FSub", "/page/Main/Sub"),
        ("/@scope%2fname", "/@scope/name"),
        ("/a%5Cb", "/a\\b"),
        ("/a\\b", "/a\\b"),
        ("/a%0d%0ab%7f", "/a\r\nb\x7f"),
        ("/http:%2F%2Fexample.org%2F", "/http://example.org/"),
        ("/a//b/./c/../d", "/a/b/d"),
        ("/a%252Fb", "/a%2Fb"),
        ("%2Fa", "/a"),
    ] {
        let answer = client.get(&format!("{below}{path}"));
        assert_eq!((answer.status, answer.text()), (404, path_info), "{path}");
    }
    for path in ["/a%00", "/a%2F..%2Fb", "/a%2Fb/../c", "/..%5Ca", "/%", "/../.."] {
        assert_eq!(client.get(&format!("{below}{path}")).status, 400, "{path}");
    }
}

/// The input of frameworks' routers: nothing is decoded, and non-ASCII bytes are encoded.
fn targets_are_told_as_they_were_sent(server: &Server, below: &str) {
    let mut client = server.connect();
    for (sent, uri, query) in [
        (&b"/x/..//variables?%2F"[..], "/x/..//variables?%2F", "%2F"),
        (b"/%76ariables?a\\b", "/%76ariables?a\\b", "a\\b"),
        (b"/variables?\xc3\xa4=\xe4", "/variables?%C3%A4=%E4", "%C3%A4=%E4"),
    ] {
        client.send([b"GET ", below.as_bytes(), sent, b" HTTP/1.2\r\nHost: stage\r\n\r\n"].concat());
        let answer = client.answer_to("GET");
        let lines: Vec<_> = answer.text().lines().collect();
        for expected in [
            format!("REQUEST_URI={below}{uri}"),
            format!("QUERY_STRING={query}"),
            format!("SCRIPT_NAME={below}"),
            "PATH_INFO=/variables".into(),
            "SERVER_PROTOCOL=HTTP/1.1".into(),
        ] {
            assert!(lines.contains(&&*expected), "{expected} is not in {lines:#?}");
        }
    }
}

/// Goal: an application of a whole site gets only the paths that it would get on a part of one. It may refuse paths
/// that no file could have.
#[test]
fn paths_that_cannot_be_names_are_refused() {
    let folder = Folder::new();
    program::start(&folder.base().join("app.sock"), folder.base(), 1);
    let server = Server::run(folder, WHOLE_SITE);
    for path in ["/../variables", "/%00", "/a%2F..%2Fb", "/variables/../..", "/strict/a%2Fb", "/strict%2Fb"] {
        let mut client = server.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!(client.answer_to("GET").status, 400, "{path}");
    }
    let mut client = server.connect();
    client.send("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_to("OPTIONS").status, 204);
    for path in ["/nothing/../variables", "/%76ariables", "/strict/variables"] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert!(client.answer_to("GET").text().contains("\nPATH_INFO=/variables\n"));
    }
    client.send("GET /a%2Fb HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.answer_to("GET").text(), "/a/b");
}

const WHOLE_SITE: &str = r#"
processes = 1
[[site]]
listen = ["127.0.0.1:0"]
[[site.route]]
path = "/"
fastcgi = { to = "unix:{base}/app.sock" }
[[site.route]]
path = "/strict"
fastcgi = { to = "unix:{base}/app.sock", encoded_slashes = false }
"#;
