//! Parts of a request in fields of responses, and of requests for origins.

use crate::common::server::Server;

crate::everywhere!(
    fields_tell_of_the_request,
    no_part_of_a_request_begins_a_field,
    a_file_s_own_fields_stay,
    groups_of_the_route_are_variables,
    texts_and_locations_have_variables,
    an_origin_is_told_of_the_client,
    fields_tell_of_the_answer,
    a_trusted_proxy_s_word_counts,
);

/// Files with ready-made heads, errors, and fixed answers: all have the fields, for this request.
fn fields_tell_of_the_request(server: &Server) {
    let scheme = server.protocol().scheme();
    let mut client = server.agent();
    for (path, status) in
        [("/told/a.txt", 200), ("/told/a.txt", 200), ("/told/none", 404), ("/told/a.txt?x=1", 200)]
    {
        let response = client.get(path);
        assert_eq!(response.status, status, "{path}");
        assert_eq!(response.field("x-client"), Some("127.0.0.1"), "{path}");
        assert_eq!(response.field("x-asked"), Some(&*format!("GET {scheme}://localhost{path}")));
        let (plain, query) = path.split_once('?').unwrap_or((path, ""));
        assert_eq!(response.field("x-path"), Some(&*format!("{plain}?{query}")));
        assert_eq!(response.field("x-price"), Some("5$"));
        let id = response.field("x-request-id").expect("an id");
        assert_eq!(response.field("x-id"), Some(&*format!("id {id}")));
        assert_eq!(response.field("x-tls").is_some(), server.protocol().is_secure(), "{path}");
        assert_eq!(response.field("x-none"), None, "what stands for nothing is not sent");
    }
    let unchanged = client.ask("HEAD", "/told/a.txt", "");
    assert_eq!(unchanged.field("x-asked"), Some(&*format!("HEAD {scheme}://localhost/told/a.txt")));
    let part = client.ask("GET", "/told/a.txt", "Range: bytes=0-0\r\n");
    assert_eq!((part.status, part.field("x-client")), (206, Some("127.0.0.1")));
}

fn no_part_of_a_request_begins_a_field(server: &Server) {
    let mut client = server.agent();
    for target in [
        "/told/a%0D%0ASet-Cookie:%20x",
        "/told/a.txt?a%0d%0aSet-Cookie:%20x",
        "/user/a%0D%0ASet-Cookie:%20x/b",
    ] {
        let response = client.get(target);
        assert_eq!(response.field("set-cookie"), None, "{target}");
    }
}

/// A default with a variable gives way to the file's own field, and not to nothing.
fn a_file_s_own_fields_stay(server: &Server) {
    let response = server.agent().get("/told/default/a.txt");
    assert_eq!(response.field("x-default"), Some("of 127.0.0.1"));
    assert_eq!(response.field("cache-control"), Some("no-cache"));
}

fn groups_of_the_route_are_variables(server: &Server) {
    let response = server.agent().get("/user/ann%20b/x/y");
    assert_eq!((response.field("x-name"), response.field("x-second")), (Some("ann%20b"), Some("<x/y>")));
}

fn texts_and_locations_have_variables(server: &Server) {
    let mut client = server.agent();
    let text = client.get("/user/ann%20b/x/y");
    assert_eq!(text.text(), "ann%20b of localhost, 127.0.0.1\nx/y $");
    let scheme = server.protocol().scheme();
    let away = client.get("/away/a?b=c");
    let expected = format!("https://login.example/?from=127.0.0.1&to={scheme}://localhost/away/a?b=c");
    assert_eq!(away.field("location"), Some(&*expected));
}

/// Whatever the client says in that field, the origin gets the address, once.
fn an_origin_is_told_of_the_client(server: &Server) {
    let mut client = server.agent();
    let told = client.ask("GET", "/origin/x?a=b", "X-Real-IP: 6.6.6.6\r\nX_Real_IP: 6.6.6.6\r\n");
    let scheme = server.protocol().scheme();
    let text = told.text();
    for line in ["X-Real-IP: 127.0.0.1\r\n", &format!("X-Scheme: {scheme}\r\n"), "X-Query: <a=b>\r\n"] {
        assert!(text.contains(line), "no {line:?} in {text}");
    }
    assert!(!text.contains("6.6.6.6") && !text.contains("X-Empty"), "{text}");
}

fn fields_tell_of_the_answer(server: &Server) {
    let mut client = server.agent();
    for status in [200, 404, 503] {
        let response = client.get(&format!("/origin/{status}"));
        assert_eq!(response.field("x-upstream-status"), Some(&*status.to_string()));
        assert!(response.field("x-upstream").is_some_and(|name| name.starts_with("http://127.0.0.1:")));
    }
    let mut names: Vec<_> =
        (0..8).map(|_| client.get("/several/x").field("x-upstream").expect("a name").to_owned()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 2, "each of two origins is named: {names:?}");
    let path = format!("/kept/{:?}", server.protocol());
    let first = client.get(&path).field("x-kept").map(str::to_owned);
    assert_ne!(first.as_deref(), Some("hit"));
    assert_eq!(client.get(&path).field("x-kept"), Some("hit"));
    let bypassed = client.ask("GET", &path, "Cookie: a=b; session=1\r\n");
    assert_eq!(bypassed.field("x-kept"), Some("bypass"));
    assert!(bypassed.field("cache-status").is_some_and(|word| word.contains("detail=rule")), "and says why");
}

fn a_trusted_proxy_s_word_counts(server: &Server) {
    let told = server.agent().ask("GET", "/behind/x", "X-Forwarded-For: 192.0.2.9\r\n");
    assert_eq!(told.field("x-client"), Some("192.0.2.9"));
    assert!(told.text().contains("X-Real-IP: 192.0.2.9\r\n"), "{}", told.text());
}
