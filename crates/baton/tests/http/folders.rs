//! Paths that end with a slash: index files, listings, and the redirect to the slash.

use serde_json::Value;

use crate::common::server::Server;
use crate::museum::SECRET;

crate::protocols::over_every_protocol!(
    a_folder_is_its_index,
    a_missing_slash_is_added,
    no_redirect_leads_elsewhere,
    folders_are_listed_where_that_is_wanted,
    listings_lead_to_the_files,
    an_application_answers_for_missing_files,
);

fn a_folder_is_its_index(server: &Server) {
    let mut client = server.agent();
    assert_eq!(client.get("/").text(), "<title>museum</title>\n");
    assert_eq!(client.get("/?query").text(), "<title>museum</title>\n");
    assert_eq!(client.get("/folder/").text(), "the folder's index\n");
    assert_eq!(client.get("/folder//").text(), "the folder's index\n");
    assert_eq!(client.get("/bare/").status, 404, "no index, and no listing unless enabled");
    assert_eq!(client.get("/none/").status, 404);
    assert_eq!(client.get("/small.txt/").status, 404, "a file is no folder");
    // The first of several names that exists.
    assert_eq!(client.ask_host("open.example", "GET", "/folder/", "").text(), "a page\n");
}

fn a_missing_slash_is_added(server: &Server) {
    let mut client = server.agent();
    for (path, location) in [
        ("/folder", "/folder/"),
        ("/folder?a=b&c", "/folder/?a=b&c"),
        ("/folder?", "/folder/?"),
        ("/listed/sub", "/listed/sub/"),
        ("/bare", "/bare/"),
        ("/%66older", "/%66older/"),
        ("http://localhost/folder?x", "/folder/?x"),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.field("location")), (301, Some(location)), "{path}");
    }
    assert_eq!(client.get("/folder/").status, 200, "where it leads to");
    let below = client.ask_host("routes.example", "GET", "/exact/deeper", "");
    assert_eq!((below.status, below.field("location")), (301, Some("/exact/deeper/")));
}

/// A folder named like a host, requested so that a careless server redirects to `//host/`, which is another site.
fn no_redirect_leads_elsewhere(server: &Server) {
    let mut client = server.agent();
    for (path, status) in [
        ("//evil.example", 301),
        ("///evil.example", 301),
        ("//evil.example?x", 301),
        ("http://localhost//evil.example", 301),
        ("/./evil.example", 301),
        ("/.//evil.example", 301),
        ("//folder/../evil.example", 301),
        ("/%2e/evil.example", 301),
        ("//evil.example/%2e%2e/folder", 301),
        ("//evil.example/%2e%2e", 200),
        ("/%2fevil.example", 400),
        ("/%5cevil.example", 400),
        ("/\\evil.example", 400),
        ("/%09/evil.example", 400),
        ("/%0d%0aLocation:%20evil", 400),
        ("/evil.example%0d%0aX-Evil:%20x", 400),
    ] {
        let response = client.get(path);
        assert_eq!(response.status, status, "{path}");
        if let Some(location) = response.field("location") {
            // Browsers take a backslash for a slash.
            let after_slash = location.strip_prefix('/').expect("a path");
            assert!(!after_slash.starts_with(['/', '\\']), "{path} leads to {location}");
        }
        assert_eq!(response.field("x-evil"), None);
    }
}

/// HTML for people, JSON for programs; nothing in either that would not be served.
fn folders_are_listed_where_that_is_wanted(server: &Server) {
    let mut client = server.agent();
    let page = client.ask_host("listed.example", "GET", "/listed/", "Accept: text/html,*/*;q=0.8\r\n");
    assert_eq!((page.status, page.field("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(page.field("vary"), Some("Accept"));
    let text = page.text();
    assert!(text.contains("&lt;b&gt;&amp;&quot;&#39;.txt") && !text.contains("<b>"), "{text}");
    assert!(
        text.contains("href=\"./%3Cb%3E%26%22%27.txt\"") && text.contains("href=\"./a%3Ab%20%C3%BC.txt\""),
        "{text}"
    );
    assert!(text.contains("href=\"./sub/\"") && text.contains("href=\"../\""), "{text}");
    for hidden in [".dot", "broken", ">out"] {
        assert!(!text.contains(hidden), "{hidden}: {text}");
    }
    for fields in ["Accept: application/json\r\n", "Accept: text/x, application/json;q=0.5\r\n"] {
        let json = client.ask_host("listed.example", "GET", "/listed/", fields);
        assert_eq!(json.field("content-type"), Some("application/json"), "{fields}");
        let listing: Value = serde_json::from_slice(&json.body).expect("JSON");
        assert_eq!(listing["path"], "/listed/");
        let names: Vec<_> =
            listing["entries"].as_array().expect("entries").iter().map(|entry| &entry["name"]).collect();
        assert_eq!(names, ["sub", "<b>&\"'.txt", "a:b ü.txt"], "folders first");
    }
    // With an index file there is nothing to list.
    assert_eq!(
        client.ask_host("listed.example", "GET", "/folder/?format=json", "").text(),
        "the folder's index\n"
    );
    assert_eq!(client.ask_host("listed.example", "GET", "/none/", "").status, 404);
    assert_eq!(
        client.ask_host("listed.example", "GET", "/links/out/", "").status,
        404,
        "a link out of the root"
    );
}

/// Follows every entry of a listing, as a program does.
fn listings_lead_to_the_files(server: &Server) {
    let mut client = server.agent();
    for folder in ["/names/", "/listed/", "/links/"] {
        let path = format!("{folder}?format=json");
        let response = client.ask_host("listed.example", "GET", &path, "");
        let listing: Value = serde_json::from_slice(&response.body).expect("JSON");
        let entries = listing["entries"].as_array().expect("entries");
        assert!(!entries.is_empty());
        for entry in entries {
            let href = entry["href"].as_str().and_then(|href| href.strip_prefix("./")).expect("a reference");
            let file = client.ask_host("listed.example", "GET", &format!("{folder}{href}"), "");
            assert_eq!(file.status, 200, "{folder}{href}");
            assert!(!file.text().contains(SECRET), "{folder}{href}");
            if entry["type"] == "file" {
                assert_eq!(entry["size"], file.body.len(), "{href}");
                assert_eq!(entry["mtime"].as_str(), file.field("last-modified"), "{href}");
            }
        }
    }
}

/// Existing files are served; the application handles all other paths.
fn an_application_answers_for_missing_files(server: &Server) {
    let mut client = server.agent();
    for (path, text) in [
        ("/small.txt", "small\n"),
        ("/", "<title>museum</title>\n"),
        ("/people/42", "a page\n"),
        ("/people/", "a page\n"),
        ("/.env", "a page\n"),
    ] {
        let response = client.ask_host("application.example", "GET", path, "");
        assert_eq!((response.status, response.text()), (200, text), "{path}");
    }
    let page = client.ask_host("application.example", "GET", "/people/42", "");
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(client.ask_host("application.example", "GET", "/%00", "").status, 400);
    assert_eq!(client.ask_host("application.example", "POST", "/people/42", "").status, 405);
}
