//! Which pages of other origins may read responses: those that are listed, in every kind of response, and no others.

use crate::common::agent::Agent;
use crate::common::client::Response;
use crate::common::server::Server;
use crate::site::{SECRET, basic, run};

crate::protocols::over_every_protocol!(
    listed_pages_read_every_kind_of_response,
    other_pages_read_nothing,
    preflights_are_answered_for_listed_pages,
    preflights_need_no_password_and_get_nothing_else,
    where_every_page_may_read_no_response_depends_on_the_page,
    sandboxes_are_an_origin_of_their_own,
    origins_answer_for_the_server,
);

/// Every response here depends on the page that asks.
fn kinds(client: &mut Agent, origin: &str) -> Vec<(String, Response)> {
    let tag = client.get("/shared/small.txt").field("etag").expect("a tag").to_owned();
    let asked = [
        ("GET", "/shared/small.txt", "", 200),
        ("GET", "/shared/small.txt", "", 200),
        ("HEAD", "/shared/small.txt", "", 200),
        ("GET", "/shared/large.txt", "", 200),
        ("HEAD", "/shared/large.txt", "", 200),
        ("GET", "/shared/small.txt", &format!("If-None-Match: {tag}\r\n"), 304),
        ("GET", "/shared/small.txt", "If-Match: \"other\"\r\n", 412),
        ("GET", "/shared/small.txt", "Range: bytes=1-2\r\n", 206),
        ("GET", "/shared/small.txt", "Range: bytes=0-0,2-2\r\n", 206),
        ("GET", "/shared/small.txt", "Range: bytes=9-\r\n", 416),
        ("GET", "/shared/folder", "", 301),
        ("GET", "/shared/folder/", "", 200),
        ("GET", "/shared/none", "", 404),
        ("POST", "/shared/small.txt", "", 405),
        ("OPTIONS", "/shared/small.txt", "", 204),
        ("GET", "/shared/run.cgi", "", 200),
        ("POST", "/shared/run.cgi", "", 200),
    ];
    asked
        .iter()
        .map(|(method, path, fields, status)| {
            let response = client.ask(method, path, &format!("{origin}{fields}"));
            assert_eq!(response.status, *status, "{method} {path} {fields}");
            (format!("{method} {path} {fields}"), response)
        })
        .collect()
}

/// Whether a cache keeps the response apart for each page.
fn varies(response: &Response) -> bool {
    let values = response.fields.iter().filter(|(name, _)| name == "vary");
    values.flat_map(|(_, value)| value.split(", ")).any(|name| name == "Origin")
}

fn assert_reads_nothing(response: &Response, what: &str) {
    let told = response.fields.iter().find(|(name, _)| name.starts_with("access-control-"));
    assert_eq!(told, None, "{what}");
    assert!(varies(response), "{what}");
}

fn origin(value: &str) -> String {
    format!("Origin: {value}\r\n")
}

fn listed_pages_read_every_kind_of_response(server: &Server) {
    let mut client = server.agent();
    for page in
        ["https://app.example", "https://a.b.example.com", "http://localhost:3000", "http://localhost"]
    {
        for (what, response) in kinds(&mut client, &origin(page)) {
            assert_eq!(response.field("access-control-allow-origin"), Some(page), "{what}");
            assert_eq!(response.field("access-control-allow-credentials"), Some("true"), "{what}");
            assert_eq!(response.field("access-control-expose-headers"), Some("X-Total"), "{what}");
            assert_eq!(response.field("x-total"), Some("7"), "{what}");
            assert!(varies(&response), "{what}");
        }
    }
    let large = client.ask("GET", "/shared/large.txt", &origin("https://app.example"));
    assert_eq!(large.body, "large ".repeat(100_000).as_bytes());
    let moved = client.ask("GET", "/moved-folder", &origin("https://app.example"));
    assert_eq!(
        (moved.status, moved.field("access-control-allow-origin")),
        (302, Some("https://app.example"))
    );
    let refused = client.ask("GET", "/shared/users/secret.txt", &origin("https://app.example"));
    assert_eq!(
        (refused.status, refused.field("access-control-allow-origin")),
        (401, Some("https://app.example"))
    );
    // A page that reads what its user sees.
    let fields = origin("https://app.example") + &basic("ada", "secret");
    let read = client.ask("GET", "/shared/users/secret.txt", &fields);
    assert_eq!(
        (read.text(), read.field("access-control-allow-origin")),
        (SECRET, Some("https://app.example"))
    );
}

fn other_pages_read_nothing(server: &Server) {
    let mut client = server.agent();
    for (what, response) in kinds(&mut client, "") {
        assert_reads_nothing(&response, &what);
    }
    for page in [
        "https://app.example.evil.com",
        "https://evilapp.example",
        "https://app.example:8443",
        "https://app.example:443",
        "http://app.example",
        "HTTPS://APP.EXAMPLE",
        "https://app.example/",
        "https://app.example https://evil.com",
        "https://app.example,https://evil.com",
        "https://example.com",
        "https://evilexample.com",
        "https://evil.com/.example.com",
        "https://evil.com#.example.com",
        "https://a..example.com",
        "http://localhost.evil.com:3000",
        "http://localhost:3000@evil.com",
        "null",
        "*",
        "",
    ] {
        for (what, response) in kinds(&mut client, &origin(page)) {
            assert_reads_nothing(&response, &format!("{page}: {what}"));
        }
        let fields = origin(page) + "Access-Control-Request-Method: PUT\r\n";
        let preflight = client.ask("OPTIONS", "/shared/run.cgi", &fields);
        assert_eq!(preflight.status, 204, "{page}");
        assert_reads_nothing(&preflight, &format!("{page}: a preflight"));
    }
    let twice = [origin("https://app.example"), origin("https://evil.com")];
    for fields in [twice.concat(), [twice[1].clone(), twice[0].clone()].concat(), twice[0].repeat(2)] {
        for (what, response) in kinds(&mut client, &fields) {
            assert_reads_nothing(&response, &format!("{fields}: {what}"));
        }
    }
}

fn preflight(client: &mut Agent, path: &str, page: &str, fields: &str) -> Response {
    let fields = format!("{}Access-Control-Request-Method: PUT\r\n{fields}", origin(page));
    client.ask("OPTIONS", path, &fields)
}

fn preflights_are_answered_for_listed_pages(server: &Server) {
    let mut client = server.agent();
    let asked = "Access-Control-Request-Headers: authorization,x-key\r\n";
    for path in ["/shared/small.txt", "/shared/run.cgi", "/shared/none"] {
        let answer = preflight(&mut client, path, "https://app.example", asked);
        assert_eq!((answer.status, answer.text()), (204, ""), "{path}");
        let field = |name: &str| answer.field(&format!("access-control-{name}"));
        assert_eq!(field("allow-origin"), Some("https://app.example"));
        assert_eq!(field("allow-credentials"), Some("true"));
        assert_eq!(field("allow-methods"), Some("GET, HEAD, POST, PUT, PATCH, DELETE"));
        assert_eq!(field("allow-headers"), Some("authorization,x-key"));
        assert_eq!(field("max-age"), Some("3600"));
        assert!(varies(&answer));
    }
    for odd in ["a b", "x;y", "x-key,", "x: y"] {
        let asked = format!("Access-Control-Request-Headers: {odd}\r\n");
        let answer = preflight(&mut client, "/shared/run.cgi", "https://app.example", &asked);
        assert_eq!((answer.status, answer.field("access-control-allow-headers")), (204, None), "{odd}");
    }
    // Without a method to ask for, it is a question for the application.
    let answer = client.ask("OPTIONS", "/shared/run.cgi", &origin("https://app.example"));
    assert_eq!((answer.status, answer.text()), (200, "OPTIONS\n"));
    // Where nothing is said of pages, too.
    let answer = preflight(&mut client, "/open/run.cgi", "https://app.example", "");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.field("access-control-allow-origin"), None);
}

fn preflights_need_no_password_and_get_nothing_else(server: &Server) {
    let mut client = server.agent();
    for path in ["/shared/users/secret.txt", "/shared/rewritten", "/shared/rewritten/x"] {
        for page in ["https://app.example", "https://evil.com"] {
            let answer = preflight(&mut client, path, page, "");
            assert_eq!((answer.status, answer.text()), (204, ""), "{path} {page}");
        }
        // A preflight is no way to what it asks about.
        for method in ["GET", "POST", "HEAD", "PUT"] {
            let fields = origin("https://app.example") + "Access-Control-Request-Method: PUT\r\n";
            let answer = client.ask(method, path, &fields);
            assert!([401, 405].contains(&answer.status), "{method} {path}: {}", answer.line);
            assert!(!answer.text().contains(SECRET));
        }
    }
    // Only passwords are what a preflight cannot have.
    let denied = preflight(&mut client, "/shared/denied/secret.txt", "https://app.example", "");
    assert_eq!(denied.status, 403);
}

fn where_every_page_may_read_no_response_depends_on_the_page(server: &Server) {
    let mut client = server.agent();
    for fields in ["", &origin("https://any.example"), &origin("null"), &origin("\"")] {
        for path in ["/everyone/small.txt", "/everyone/large.txt", "/everyone/run.cgi", "/everyone/none"] {
            let response = client.ask("GET", path, fields);
            assert_eq!(response.field("access-control-allow-origin"), Some("*"), "{path}");
            assert_eq!(response.field("access-control-allow-credentials"), None, "{path}");
            assert_eq!(response.field("access-control-expose-headers"), Some("X-Total"), "{path}");
            assert!(!varies(&response), "{path}");
        }
    }
    let answer = preflight(&mut client, "/everyone/run.cgi", "https://any.example", "");
    let field = |name: &str| answer.field(&format!("access-control-{name}"));
    assert_eq!((answer.status, field("allow-origin"), field("allow-methods")), (204, Some("*"), Some("GET")));
    assert_eq!((field("allow-headers"), field("max-age")), (Some("X-Key, X-Other"), Some("600")));
}

fn sandboxes_are_an_origin_of_their_own(server: &Server) {
    let mut client = server.agent();
    let told = |response: Response| response.field("access-control-allow-origin").map(str::to_owned);
    assert_eq!(told(client.ask("GET", "/sandbox/small.txt", &origin("null"))).as_deref(), Some("null"));
    assert_eq!(told(client.ask("GET", "/sandbox/small.txt", &origin("https://app.example"))), None);
}

fn origins_answer_for_the_server(server: &Server) {
    let mut client = server.agent();
    for path in ["/relayed/small.txt", "/relayed/none", "/kept/small.txt", "/kept/small.txt", "/kept/none"] {
        let listed = client.ask("GET", path, &origin("https://app.example"));
        assert_eq!(listed.field("access-control-allow-origin"), Some("https://app.example"), "{path}");
        assert!(varies(&listed), "{path}");
        // The origin behind says `*`.
        for fields in ["", &origin("https://evil.com")] {
            assert_reads_nothing(&client.ask("GET", path, fields), path);
        }
    }
}

/// A preflight takes a token as any other request does.
#[test]
fn preflights_are_limited_by_rate() {
    let server = run(
        "[[site]]\nlisten = '127.0.0.1:0'\nroot = '{root}'\ncors = '*'\nrate_limit = { requests = 1, per = '1h', burst = 2 }\n",
    );
    let mut client = server.agent();
    let answers =
        [(); 3].map(|()| preflight(&mut client, "/open/secret.txt", "https://a.example", "").status);
    assert_eq!(answers, [204, 204, 429]);
}

/// Nothing is known of the site but its fields, and so no page is answered otherwise.
#[test]
fn a_route_may_be_closed_below_a_site() {
    let server = run(
        "[[site]]\nlisten = '127.0.0.1:0'\nroot = '{root}'\ncors = '*'\n[[site.route]]\npath = '/denied'\ncors = 'off'\n",
    );
    let mut client = server.agent();
    let told = |response: Response| response.field("access-control-allow-origin").map(str::to_owned);
    assert_eq!(told(client.get("/open/secret.txt")).as_deref(), Some("*"));
    assert_eq!(told(client.get("/denied/secret.txt")), None);
    let answer = preflight(&mut client, "/denied/secret.txt", "https://a.example", "");
    assert_eq!((answer.status, answer.field("allow")), (204, Some("GET, HEAD, OPTIONS")));
}
