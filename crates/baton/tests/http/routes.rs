//! Configured additions: error pages, fields, answers without files.

use crate::common::agent::Body;
use crate::common::server::Server;

crate::protocols::over_every_protocol!(
    errors_have_pages_of_their_own,
    errors_without_one_say_what_is_wrong,
    errors_are_in_the_form_that_the_client_prefers,
    fields_are_added_to_what_is_sent,
    fields_are_added_to_every_other_response,
    routes_redirect_and_respond,
    redirects_and_errors_are_for_every_method,
    a_route_may_have_a_root_of_its_own,
    no_spelling_gets_around_a_route,
);

const SITE: &str = "routes.example";

fn errors_have_pages_of_their_own(server: &Server) {
    let mut client = server.agent();
    for (method, path, fields, status, media_type, text) in [
        ("GET", "/none", "", 404, "text/html; charset=utf-8", "<p>a page of our own</p>"),
        ("GET", "/guarded/", "", 403, "text/html; charset=utf-8", "<p>a guard of our own</p>"),
        ("POST", "/small.txt", "", 405, "text/plain; charset=utf-8", "a text of our own"),
        (
            "GET",
            "/small.txt",
            "Range: bytes=99-\r\n",
            416,
            "text/html; charset=utf-8",
            "<p>a range of our own</p>",
        ),
    ] {
        let response = client.ask_host(SITE, method, path, fields);
        assert_eq!((response.status, response.text()), (status, text), "{path}");
        assert_eq!(response.field("content-type"), Some(media_type), "{path}");
        assert_eq!(response.field("last-modified"), None, "{path}: it is no file");
        assert_eq!(response.field("allow").is_some(), status == 405, "{path}");
        assert_eq!(response.field("content-range").is_some(), status == 416, "{path}");
    }
    assert_eq!(client.ask_host(SITE, "HEAD", "/none", "").field("content-length"), Some("24"));
}

fn errors_without_one_say_what_is_wrong(server: &Server) {
    let mut client = server.agent();
    for (path, fields, status, reason) in [
        ("/none", "", 404, "Not Found"),
        ("/links/out.txt", "", 404, "Not Found"),
        ("/%00", "", 400, "Bad Request"),
        ("/small.txt", "If-Match: \"x\"\r\n", 412, "Precondition Failed"),
        ("/small.txt", "Range: bytes=99-\r\n", 416, "Range Not Satisfiable"),
    ] {
        let response = client.ask("GET", path, fields);
        assert!(response.says(status, reason), "{path}: {}", response.line);
        assert_eq!(response.field("content-type"), Some("text/html; charset=utf-8"), "{path}");
        assert!(response.text().contains(&format!("{status} {reason}")), "{path}");
    }
    // Nothing of a request comes back as markup.
    let response = client.get("/%3Cscript%3Ealert(1)%3C/script%3E");
    assert!(!response.text().contains("script"), "{}", response.text());
}

/// Goal: an error is a page for people, JSON for programs and a line of text for terminals, each of the same length for
/// HEAD; a page of the site's own is for all of them.
fn errors_are_in_the_form_that_the_client_prefers(server: &Server) {
    let mut client = server.agent();
    let detail = "There is nothing at this address. It may have moved, or have a typing error.";
    let json = format!("{{\"status\":404,\"title\":\"Not Found\",\"detail\":\"{detail}\"}}\n");
    for (accept, media_type, text) in [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8", None),
        ("*/*", "text/html; charset=utf-8", None),
        ("application/json, text/plain, */*", "application/json", Some(json.clone())),
        ("application/problem+json", "application/problem+json", Some(json)),
        ("text/plain", "text/plain; charset=utf-8", Some(format!("404 Not Found: {detail}\n"))),
    ] {
        let fields = format!("Accept: {accept}\r\n");
        let response = client.ask("GET", "/none", &fields);
        assert_eq!((response.status, response.field("content-type")), (404, Some(media_type)), "{accept}");
        assert_eq!(response.field("vary"), Some("Accept"), "{accept}");
        let shown = response.text();
        match text {
            Some(text) => assert_eq!(shown, text, "{accept}"),
            None => assert!(shown.contains(&format!("<h1>404 Not Found</h1>\n<p>{detail}</p>")), "{shown}"),
        }
        let head: usize = response.fields.iter().map(|(name, value)| name.len() + value.len() + 4).sum();
        assert!(response.line.len() + 2 + head + 2 + shown.len() <= 1024, "{accept}: {:?}", response.fields);
        let length = shown.len().to_string();
        let head = client.ask("HEAD", "/none", &fields);
        assert_eq!((head.status, head.field("content-length"), head.text()), (404, Some(&*length), ""));
        let own = client.ask_host(SITE, "GET", "/none", &fields);
        assert_eq!((own.text(), own.field("vary")), ("<p>a page of our own</p>", None), "{accept}");
    }
    let redirect = client.ask_host(SITE, "GET", "/old", "Accept: application/json\r\n");
    assert!(redirect.text().starts_with("{\"status\":308,"), "{}", redirect.text());
    // A configured error without a body.
    let legal = client.ask_host(SITE, "GET", "/odd*/~(a%20b)/c", "Accept: text/plain\r\n");
    assert!(legal.text().starts_with("451 Unavailable For Legal Reasons: "), "{}", legal.text());
}

/// Goal: a site's security fields are on each response of the server, errors and redirections included.
fn fields_are_added_to_every_other_response(server: &Server) {
    let mut client = server.agent();
    for (method, path, fields, status) in [
        ("GET", "/folder", "", 301),
        ("GET", "/%00", "", 400),
        ("GET", "/none", "", 404),
        ("HEAD", "/none", "", 404),
        ("GET", "/links/out.txt", "", 404),
        ("POST", "/small.txt", "", 405),
        ("GET", "/small.txt", "If-Match: \"x\"\r\n", 412),
        ("GET", "/small.txt", "Range: bytes=99-\r\n", 416),
        ("OPTIONS", "/small.txt", "", 204),
        ("OPTIONS", "*", "", 204),
        ("BREW", "/small.txt", "", 501),
    ] {
        let response = client.ask(method, path, fields);
        assert_eq!(response.status, status, "{method} {path}");
        assert_eq!(response.field("x-frame-options"), Some("DENY"), "{method} {path}");
        let links = response.fields.iter().filter(|(name, _)| name == "link").count();
        assert_eq!(links, 2, "{method} {path}");
    }
    for (host, path, status, field) in [
        (SITE, "/old", 308, ("x-site", "routes")),
        (SITE, "/none", 404, ("x-site", "routes")),
        (SITE, "/guarded", 403, ("x-site", "routes")),
        (SITE, "/here", 302, ("x-route", "here")),
        (SITE, "/exact/none", 404, ("x-route", "exact")),
        ("listed.example", "/listed/", 200, ("x-listed", "yes")),
    ] {
        let response = client.ask_host(host, "GET", path, "");
        let added: Vec<_> = response.fields.iter().filter(|(name, _)| name == field.0).collect();
        assert_eq!(response.status, status, "{path}");
        assert_eq!(added.len(), 1, "{path}: {:?}", response.fields);
        assert_eq!(added[0].1, field.1, "{path}");
    }
    // The server's own responses have one `Location`, with any configured fields.
    let response = client.ask_host(SITE, "GET", "/here", "");
    let locations = response.fields.iter().filter(|(name, _)| name == "location").count();
    assert_eq!((response.field("location"), locations), (Some("/small.txt"), 1));
}

/// Fields of the site and of the first rule that matches, on every answer about a file; and those of the server.
fn fields_are_added_to_what_is_sent(server: &Server) {
    let mut client = server.agent();
    for (path, fields, status, cached) in [
        ("/style.css", "", 200, Some("max-age=86400")),
        ("/style.css", "If-None-Match: *\r\n", 304, Some("max-age=86400")),
        ("/style.css", "Range: bytes=0-0\r\n", 206, Some("max-age=86400")),
        ("/style.css", "Range: bytes=0-0,2-2\r\n", 206, Some("max-age=86400")),
        ("/names/a...txt", "", 200, Some("no-store")),
        ("/small.txt", "", 200, None),
        ("/1m.bin", "", 200, None),
    ] {
        let response = client.ask("GET", path, fields);
        assert_eq!((response.status, response.field("cache-control")), (status, cached), "{path} {fields}");
        assert_eq!(response.field("x-frame-options"), Some("DENY"), "{path} {fields}");
        let links: Vec<_> =
            response.fields.iter().filter(|(name, _)| name == "link").map(|(_, value)| &**value).collect();
        assert_eq!(links, ["</a>; rel=preload", "</b>; rel=preload"], "{path} {fields}");
        assert_eq!(response.field("server"), Some("baton"));
        assert!(
            response.field("date").is_some_and(|date| date.len() == 29 && date.ends_with(" GMT")),
            "{path} {fields}"
        );
    }
}

fn routes_redirect_and_respond(server: &Server) {
    let mut client = server.agent();
    for (path, status, location) in [
        ("/old", 308, "https://new.example/moved/old"),
        ("/old/a%20b?c=d", 308, "https://new.example/moved/old/a%20b?c=d"),
        ("/old//a", 308, "https://new.example/moved/old//a"),
        ("/moved", 301, "https://new.example/docs"),
        ("/moved/a%2Fb/ä?c=d", 301, "https://new.example/docs/a%2Fb/%C3%A4?c=d"),
        ("/x/..//%6Doved//a", 301, "https://new.example/docs/a"),
        ("/here", 302, "/small.txt"),
        ("/here/and?there", 302, "/small.txt"),
    ] {
        let response = client.ask_host(SITE, "GET", path, "");
        assert_eq!((response.status, response.field("location")), (status, Some(location)), "{path}");
    }
    for path in ["/gone", "/gone/", "/gone/with/all?of=it"] {
        let response = client.ask_host(SITE, "GET", path, "");
        assert_eq!((response.status, response.text()), (410, "Gone for good.\n"), "{path}");
        assert_eq!(response.field("content-type"), Some("text/plain; charset=utf-8"), "{path}");
        assert_eq!(response.field("x-route"), Some("gone"), "{path}");
    }
    // The path of a route is decoded like those of requests.
    for (path, status) in [
        ("/odd*/~(a%20b)/c", 451),
        ("/odd%2a/%7E(a%20b)", 451),
        ("/oddity/~(a%20b)", 404),
        ("/odd%252A/~(a%20b)", 404),
    ] {
        assert_eq!(client.ask_host(SITE, "GET", path, "").status, status, "{path}");
    }
    // A prefix ends where a segment ends.
    for path in ["/older", "/gone.txt", "/hereafter"] {
        assert_eq!(client.ask_host(SITE, "GET", path, "").status, 404, "{path}");
    }
}

/// RFC 9110, 15.4: what was to be done is to be done elsewhere. What is denied or gone is so for all methods.
fn redirects_and_errors_are_for_every_method(server: &Server) {
    let mut client = server.agent();
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"] {
        for (path, status) in [
            ("/old", 308),
            ("/moved", 301),
            ("/here", 302),
            ("/taken", 307),
            ("/seen", 303),
            ("/gone", 410),
            ("/guarded", 403),
        ] {
            let response = client.ask_host(SITE, method, path, "");
            assert_eq!(response.status, status, "{method} {path}");
            assert_eq!(response.field("location").is_some(), status < 400, "{method} {path}");
        }
        let answer = client.ask_host(SITE, method, "/plain", "").status;
        let expected = match method {
            "GET" | "HEAD" => 200,
            "OPTIONS" => 204,
            "PROPFIND" => 501,
            _ => 405,
        };
        assert_eq!(answer, expected, "{method} of an answer that is no error");
    }
    let posted = client.ask_host(SITE, "POST", "/old/a?b", "");
    assert_eq!(posted.field("location"), Some("https://new.example/moved/old/a?b"));
    client.begin("POST", SITE, "/taken", "", Body::Length(4));
    client.send_body(b"body");
    client.finish_body();
    assert_eq!(client.response().status, 307);
    assert_eq!(client.ask_host(SITE, "POST", "/taken", "").status, 307, "the connection goes on");
    // `methods` may name what a redirect answers.
    assert_eq!(client.ask_host(SITE, "POST", "/only", "").status, 308);
    assert_eq!(client.ask_host(SITE, "GET", "/only", "").status, 405);
}

/// The longest path wins; its prefix is removed for a root of its own; fields are inherited or replaced.
fn a_route_may_have_a_root_of_its_own(server: &Server) {
    let mut client = server.agent();
    for (path, text, route, site) in [
        ("/small.txt", "small\n", None, Some("routes")),
        ("/exact/who.txt", "exact", Some("exact"), None),
        ("/exact/deeper/who.txt", "wild", None, Some("routes")),
        ("/exactly.txt", "not below /exact\n", None, Some("routes")),
    ] {
        let response = client.ask_host(SITE, "GET", path, "");
        assert_eq!((response.status, response.text()), (200, text), "{path}");
        assert_eq!((response.field("x-route"), response.field("x-site")), (route, site), "{path}");
    }
    assert_eq!(client.ask_host(SITE, "GET", "/exact/small.txt", "").status, 404, "that is in the other root");
    let listing = client.ask_host(SITE, "GET", "/exact/deeper/?format=json", "");
    assert!(
        listing.text().contains("\"/exact/deeper/\"") && listing.text().contains("who.txt"),
        "{}",
        listing.text()
    );
    let packed = client.ask_host(SITE, "GET", "/packed/page.html", "Accept-Encoding: br\r\n");
    assert_eq!((packed.text(), packed.field("cache-control")), ("packed by brotli", Some("max-age=1")));
}

/// A route that forbids a folder, requested by every spelling of the same file.
fn no_spelling_gets_around_a_route(server: &Server) {
    let mut client = server.agent();
    for path in [
        "/guarded/secret.txt",
        "/%67uarded/secret.txt",
        "/g%75ard%65d/secret.txt",
        "//guarded/secret.txt",
        "/./guarded/secret.txt",
        "/%2e/guarded/secret.txt",
        "/folder/../guarded/secret.txt",
        "/folder/%2e%2E/guarded/secret.txt",
        "/gone/../guarded/secret.txt",
        "/guarded//secret.txt",
        "/guarded/./secret.txt",
        "/guarded",
        "/guarded%2Fsecret.txt",
        "/%2Fguarded%2fsecret.txt",
        "http://routes.example/guarded/secret.txt",
    ] {
        assert_eq!(client.ask_host(SITE, "GET", path, "").status, 403, "{path}");
    }
    for path in ["/x%2F..%2Fguarded/secret.txt", "/x/..%2Fguarded/secret.txt", "/guarded\\secret.txt"] {
        assert_eq!(client.ask_host(SITE, "GET", path, "").status, 400, "{path}");
    }
    assert_eq!(client.ask_host(SITE, "GET", "/guarded/../small.txt", "").text(), "small\n");
}
