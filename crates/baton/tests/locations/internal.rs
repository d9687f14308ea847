//! Routes that clients cannot ask for, however they spell them, and that other routes lead to.

use std::process::Command;

use crate::common::server::Server;

crate::everywhere!(
    clients_cannot_ask_for_it,
    other_routes_lead_there,
    what_is_missing_goes_on_there_as_it_was_asked_for,
);

fn clients_cannot_ask_for_it(server: &Server) {
    let mut client = server.agent();
    for path in [
        "/within",
        "/within/",
        "/within/a?b",
        "//within/a",
        "/%77ithin/a",
        "/x/../within/a",
        "/within%2Fa",
        "/within/a.php",
        "/a.within",
        "/into/../within",
    ] {
        for method in ["GET", "HEAD"] {
            assert_eq!(client.ask_host("locations", method, path, "").status, 404, "{method} {path}");
        }
        let posted = client.ask_host("locations", "POST", path, "");
        assert!(matches!(posted.status, 404 | 405), "{path}: {}", posted.status);
    }
    for path in ["/__app", "/__app/", "/__app/x", "/%5F_app/x"] {
        let response = client.ask_host("inside.example", "GET", path, "");
        assert_eq!(response.status, 404, "{path}: {}", response.text());
    }
}

fn other_routes_lead_there(server: &Server) {
    let mut client = server.agent();
    for (path, text) in [
        ("/into", "within"),
        ("/into/a.php", "within"),
        ("/into-expression/a.within", "an expression within"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.text()), (200, text), "{path}");
    }
    // A route that rewrites to one is still not it.
    assert_eq!(client.get("/into-expression/none").status, 404);
}

fn what_is_missing_goes_on_there_as_it_was_asked_for(server: &Server) {
    let mut client = server.agent();
    for (path, text) in [
        ("/style.css", "front/style.css\n"),
        ("/a%20b/c?d=e&f", "GET /a%20b/c?d=e&f\n"),
        ("/__application", "GET /__application\n"),
        ("/x.inc", "GET /x.inc\n"),
    ] {
        let response = client.ask_host("inside.example", "GET", path, "");
        assert_eq!((response.status, response.text()), (200, text), "{path}");
    }
    let posted = client.ask_host("inside.example", "POST", "/form", "");
    assert_eq!(posted.text(), "POST /form\n");
}

#[test]
fn explain_says_that_clients_cannot_ask_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("baton.toml");
    let routes = "[[site]]\n[[site.route]]\npath = '/a'\ninternal = true\nrespond = { status = 200, body = 'x' }\n\
                  [[site.route]]\npath = '/b'\nrewrite = { to = '/a$rest' }\n";
    std::fs::write(&file, routes).expect("a configuration");
    let explained = |path: &str| {
        let mut baton = Command::new(env!("CARGO_BIN_EXE_baton"));
        let output = baton.args(["explain", "-c"]).arg(&file).arg(path).output().expect("baton runs");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let (direct, led) = (explained("/a/x"), explained("/b/x"));
    assert!(direct.contains("none: clients cannot ask for /a, which is `internal`"), "{direct}");
    assert!(direct.contains("HTTP/1.1 404"), "{direct}");
    assert!(led.contains("on to /a/x") && led.contains("HTTP/1.1 200"), "{led}");
}
