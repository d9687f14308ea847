//! Rewrites and redirects with parts of the request in them.

use crate::common::server::Server;
use crate::site::SECRET;

crate::everywhere!(
    a_rewritten_request_is_answered_by_another_route,
    a_rewrite_keeps_the_request,
    a_loop_ends,
    redirects_have_parts_of_the_request,
    no_client_chooses_host_or_fields,
    a_rewrite_leads_around_nothing,
);

fn a_rewritten_request_is_answered_by_another_route(server: &Server) {
    let mut client = server.agent();
    for (path, status, text) in [
        ("/page/a", 200, "a.txt\n"),
        ("/page/sub/a?x", 200, "sub/a.txt\n"),
        ("/page/%C3%A9", 200, "é.txt\n"),
        ("/page/none", 404, ""),
        ("/twice/a", 200, "a.txt\n"),
        ("/fixed", 200, "exact"),
    ] {
        let response = client.get(path);
        assert_eq!(response.status, status, "{path}");
        assert!(status == 404 || response.text() == text, "{path}: {}", response.text());
    }
    let ranged = client.ask_host("locations", "GET", "/page/a", "Range: bytes=0-0\r\n");
    assert_eq!((ranged.status, ranged.text()), (206, "a"));
}

/// The origin is told the target; method, body and fields stay as they are.
fn a_rewrite_keeps_the_request(server: &Server) {
    let mut client = server.agent();
    for (path, asked) in [
        ("/api/v1/users/7", "GET /origin/users?v=1&id=7"),
        ("/api/v2/a%26b/c%2Bd?x=%20y", "GET /origin/a&b?v=2&id=c%2Bd"),
        ("/keep/me?x=1&y=%2F", "GET /origin/kept/me?x=1&y=%2F"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.text().lines().next()), (200, Some(asked)), "{path}");
    }
    let response = client.send("POST", "/api/v3/a/b", b"the body");
    assert_eq!(response.text(), "POST /origin/a?v=3&id=b\nthe body");
}

fn a_loop_ends(server: &Server) {
    let mut client = server.agent();
    assert_eq!(client.get("/round/a").status, 500);
    server.wait_until_said("is rewritten in a loop, at last to /round/");
    let long = format!("/double/{}", "a".repeat(3000));
    assert_eq!(client.get(&long).status, 414);
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

fn redirects_have_parts_of_the_request(server: &Server) {
    let mut client = server.agent();
    for (path, status, location) in [
        ("/2024/01/a%20b", 301, "https://blog.example/a%20b?year=2024&month=01"),
        ("/2024/01/a&b=c", 301, "https://blog.example/a&b=c?year=2024&month=01"),
        ("/find/a&b%23c", 302, "/search?q=a%26b%23c"),
        ("/moved/x?y", 302, "/new/x?y"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.field("location")), (status, Some(location)), "{path}");
    }
}

/// Goal: nothing that a client writes becomes a host, or a field of the response.
fn no_client_chooses_host_or_fields(server: &Server) {
    let mut client = server.agent();
    for path in [
        "/go/%2Fevil.example/",
        "/go//evil.example/",
        "/go/%2F%2Fevil.example/",
        "/go/%5Cevil.example/",
        "/go/%5C%5Cevil.example/",
        "/go/%09/evil.example/",
        "/go/http:%2F%2Fevil.example/",
        "/go/@evil.example/",
        "//go//evil.example",
        "/%67o/%2f/evil.example",
    ] {
        let response = client.get(path);
        assert_eq!(response.status, 302, "{path}");
        let location = response.field("location").expect("a location");
        let behind = location.strip_prefix('/').unwrap_or_else(|| panic!("{path}: {location}"));
        assert!(!behind.starts_with(['/', '\\']), "{path}: {location}");
    }
    for path in ["/go/a%0D%0ASet-Cookie:%20x=1", "/find/a%0D%0A%0D%0A%3Cscript%3E", "/go/a%0ASet-Cookie:x"] {
        let response = client.get(path);
        let location = response.field("location").unwrap_or_default();
        assert!(location.bytes().all(|byte| byte.is_ascii_graphic()), "{path}: {location}");
        assert_eq!(response.field("set-cookie"), None, "{path}");
    }
}

/// Goal: the target of a rewrite is a path like any other: denied where its route denies it, and within the root.
fn a_rewrite_leads_around_nothing(server: &Server) {
    let mut client = server.agent();
    for (path, statuses) in [
        ("/raw/private/a.txt", &[403][..]),
        ("/raw/%2e%2e/private/a.txt", &[403]),
        ("/raw/x/../private/a.txt", &[403]),
        ("/raw/conf/db.inc", &[403]),
        ("/raw/conf%2Fdb.inc", &[403]),
        ("/raw/static/run.php", &[404]),
        ("/raw/upload/x.jpg/a.php", &[404]),
        ("/raw/..%2F..%2Fetc/passwd", &[400]),
        ("/raw/%252e%252e/private/a.txt", &[404]),
        ("/raw/.hidden", &[404]),
    ] {
        let response = client.get(path);
        assert!(statuses.contains(&response.status), "{path}: {}", response.status);
        assert!(!response.text().contains(SECRET), "{path}");
    }
}
