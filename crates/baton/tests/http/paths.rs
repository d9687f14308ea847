//! From the path of a request to a file: decoded once, and never out of the root.

use crate::common::server::Server;
use crate::museum::SECRET;

crate::protocols::over_every_protocol!(
    paths_are_decoded_once,
    paths_that_could_deceive_are_refused,
    no_path_leads_out_of_the_root,
    links_lead_where_the_site_allows,
    a_link_that_hides_something_is_logged,
    names_with_a_dot_are_hidden,
);

fn paths_are_decoded_once(server: &Server) {
    let mut client = server.agent();
    for (path, name) in [
        ("/names/%C3%BC%20%C3%B1.txt", "ü ñ.txt"),
        ("/names/%c3%bc%20%c3%b1.txt", "ü ñ.txt"),
        ("/names/ü%20ñ.txt?ä", "ü ñ.txt"),
        ("/names/100%25.txt", "100%.txt"),
        ("/names/%2541.txt", "%41.txt"),
        ("/names/a+b&c.txt", "a+b&c.txt"),
        ("/names/a%2Bb%26c.txt", "a+b&c.txt"),
        ("/names/q%3F%23%3B.txt", "q?#;.txt"),
        ("/names/a...txt", "a...txt"),
        ("/names/a.b..txt", "a.b..txt"),
        ("/names/~'()*!.txt", "~'()*!.txt"),
        ("/%6e%61mes/%7E%27%28%29%2a%21.txt", "~'()*!.txt"),
        ("//names///100%25.txt", "100%.txt"),
        ("/./names/./100%25.txt", "100%.txt"),
        ("/folder/../names/100%25.txt", "100%.txt"),
        ("/none/../names/100%25.txt", "100%.txt"),
        ("/%2e/folder/%2E%2e/names/100%25.txt", "100%.txt"),
        ("/names/100%25.txt?../../x", "100%.txt"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.text()), (200, name), "{path}");
    }
    for path in
        ["/names/A.txt", "/names/%2B.txt", "/names/a%20b&c.txt", "/names/100%2525.txt", "/NAMES/a+b&c.txt"]
    {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

/// The path is invalid, but the end of the request is known: the connection is kept.
fn paths_that_could_deceive_are_refused(server: &Server) {
    let mut client = server.agent();
    for path in [
        "/small.txt%00",
        "/%00small.txt",
        "/small.txt%00.html",
        "/folder%2findex.html",
        "/folder%2Findex.html",
        "/folder%5cindex.html",
        "/folder\\index.html",
        "/%",
        "/%4",
        "/%zz",
        "/%u0041",
        "/%-1",
        "/small.txt%0a",
        "/%7f",
        "/%1b[31m",
    ] {
        for host in ["localhost", "routes.example", "open.example"] {
            assert_eq!(client.ask_host(host, "GET", path, "").status, 400, "{host} {path}");
        }
    }
    assert_eq!(client.get("/small.txt").text(), "small\n");
}

/// Every spelling of "up", at several depths.
fn no_path_leads_out_of_the_root(server: &Server) {
    let ups = [
        "..",
        "%2e%2e",
        ".%2e",
        "%2E.",
        "..%2f..",
        "..%5c..",
        "..\\..",
        "%252e%252e",
        "..;",
        "...",
        "....",
        "%c0%ae%c0%ae",
        "..%00",
        "%2e%2e%2f",
        "..%c0%af..",
        "..%ef%bc%8f..",
        "%e3%80%82%e3%80%82",
        "..%3b",
    ];
    let mut client = server.agent();
    for up in ups {
        for prefix in ["", "/", "/folder", "/folder/none", "/links/folder", "/.well-known"] {
            for target in ["outside.txt", "outside/index.html", "root-beside/", "root/../outside.txt"] {
                for count in 1..4 {
                    let path = format!("{prefix}/{}{target}", format!("{up}/").repeat(count));
                    for host in ["localhost", "open.example"] {
                        let response = client.ask_host(host, "GET", &path, "");
                        assert!(
                            matches!(response.status, 400 | 403 | 404),
                            "{host} {path}: {}",
                            response.line
                        );
                        assert!(!response.text().contains(SECRET), "{host} {path}");
                    }
                }
            }
        }
    }
    for path in ["/../small.txt", "/folder/../../small.txt", "/%2e%2e/small.txt", "/folder/../..", "/.."] {
        assert_eq!(client.get(path).status, 400, "{path} leads above the root, at least in between");
    }
    let beside = client.ask_host("routes.example", "GET", "/exact/../../outside.txt", "");
    assert_eq!(beside.status, 400);
}

/// Links by their targets under each policy. `None`: the link leads nowhere, so there is nothing.
fn links_lead_where_the_site_allows(server: &Server) {
    let mut client = server.agent();
    for (path, beneath, anywhere) in [
        ("/links/in.txt", Some("small\n"), Some("small\n")),
        ("/links/chain.txt", Some("small\n"), Some("small\n")),
        ("/links/folder/page.html", Some("a page\n"), Some("a page\n")),
        ("/links/broken", None, None),
        ("/links/loop", None, None),
        ("/links/absolute.txt", None, Some("small\n")),
        ("/links/out.txt", None, Some(SECRET)),
        ("/links/chain-out.txt", None, Some(SECRET)),
        ("/links/absolute-out.txt", None, Some(SECRET)),
        ("/links/out/index.html", None, Some(SECRET)),
        ("/links/up/outside.txt", None, Some(SECRET)),
        ("/links/up/root/small.txt", None, Some("small\n")),
    ] {
        for (host, expected) in [("localhost", beneath), ("open.example", anywhere), ("closed.example", None)]
        {
            let response = client.ask_host(host, "GET", path, "");
            match expected {
                Some(text) => assert_eq!((response.status, response.text()), (200, text), "{host} {path}"),
                None => {
                    assert_eq!(response.status, 404, "{host} {path}");
                    assert!(
                        !response.text().contains(SECRET) && !response.text().contains("small"),
                        "{host} {path}"
                    );
                }
            }
        }
    }
}

/// The log names the link, once for each; the client does not learn of it.
fn a_link_that_hides_something_is_logged(server: &Server) {
    assert_eq!(server.get("/links/absolute.txt?a").status, 404);
    assert_eq!(server.get("/links/out/index.html?b").status, 404);
    server.wait_until_said("links/absolute.txt is not found: the link links/absolute.txt -> /");
    server.wait_until_said("the link links/out -> ");
    assert!(server.said().contains("`symlinks` is \"beneath\": \"anywhere\" follows it"));
}

/// At every depth, with one exception (RFC 8615), unless the site wants to show them.
fn names_with_a_dot_are_hidden(server: &Server) {
    let mut client = server.agent();
    for path in [
        "/.env",
        "/.git/config",
        "/%2eenv",
        "/folder/.htpasswd",
        "/folder/../.env",
        "//.env",
        "/folder/.well-known/x",
    ] {
        assert_eq!(client.get(path).status, 404, "{path}");
        assert_eq!(client.ask_host("open.example", "GET", path, "").text(), SECRET, "{path}");
    }
    assert_eq!(client.get("/.git").status, 404, "not even that there is one");
    assert_eq!(client.get("/.well-known/acme-challenge/token").text(), "a token");
}
