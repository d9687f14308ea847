//! Which site answers.

use crate::common::server::Server;

crate::protocols::over_every_protocol!(the_host_chooses_the_site);

/// What only HTTP/1 can say.
mod http1 {
    crate::protocols::over_http1!(minor_versions_and_hosts, the_target_stands_above_the_host);

    use super::{minor_versions_and_hosts, the_target_stands_above_the_host};
}

/// By exact name, else by wildcard, else the default; without regard to case, port, or a dot at the end.
fn the_host_chooses_the_site(server: &Server) {
    let mut client = server.agent();
    for (host, answer) in [
        ("exact.wild.example", "exact"),
        ("EXACT.Wild.Example", "exact"),
        ("exact.wild.example:8080", "exact"),
        ("exact.wild.example:", "exact"),
        ("exact.wild.example.", "exact"),
        ("[::1]", "exact"),
        ("[::1]:80", "exact"),
        ("a.wild.example", "wild"),
        ("a.b.wild.example", "wild"),
        ("not-exact.wild.example", "wild"),
    ] {
        assert_eq!(client.ask_host(host, "GET", "/who.txt", "").text(), answer, "{host}");
    }
    for host in ["wild.example", "example", "127.0.0.1", "exact.wild.example.org", "xwild.example"] {
        assert_eq!(client.ask_host(host, "GET", "/who.txt", "").status, 404, "{host}: the default has none");
    }
}

fn minor_versions_and_hosts(server: &Server) {
    let mut client = server.connect();
    // RFC 3986, 3.2.2: an address of a kind to come is an address. No site is known by it.
    assert_eq!(client.ask_host("[v1.a]:80", "GET", "/small.txt", "").text(), "small\n");
    // RFC 9110, 2.5: a higher minor version is answered as 1.1.
    client.send("GET /who.txt HTTP/1.9\r\nHost: a.wild.example\r\n\r\n");
    assert_eq!(client.response().text(), "wild");
    client.send("GET /small.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(client.response().text(), "small\n", "HTTP/1.0 knows no hosts");
    client.send("GET /who.txt HTTP/1.0\r\nHost: a.wild.example\r\n\r\n");
    assert_eq!(client.response().text(), "wild", "but may name one");
    // RFC 9110, 4.2.1: a URI without a host is invalid.
    let mut client = server.connect();
    assert_eq!(client.ask_host("", "GET", "/small.txt", "").status, 400);
    client.expect_end();
}

/// RFC 9112, 3.2.2: the host of an absolute target replaces the field.
fn the_target_stands_above_the_host(server: &Server) {
    let mut client = server.connect();
    for (target, host, answer) in [
        ("http://exact.wild.example/who.txt", "a.wild.example", "exact"),
        ("http://a.wild.example:8080/who.txt?x", "localhost", "wild"),
        ("HTTP://A.Wild.Example/who.txt", "", "wild"),
        ("https://exact.wild.example/who.txt", "exact.wild.example", "exact"),
        ("http://localhost/small.txt", "a.wild.example", "small\n"),
        ("http://localhost", "localhost", "<title>museum</title>\n"),
        ("http://localhost?x=/y", "localhost", "<title>museum</title>\n"),
    ] {
        assert_eq!(client.ask_host(host, "GET", target, "").text(), answer, "{target} {host}");
    }
}
