//! Source code of scripts, which is not sent where no application runs it.

use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::museum::SECRET;

crate::protocols::over_every_protocol!(
    no_spelling_of_a_script_shows_its_source,
    scripts_that_are_not_sent_are_not_listed,
    the_setting_sends_them,
);

const SITE: &str = "scripts.example";

/// Goal: where one route of a site runs `.php` and `.cgi`, no other shows their source; nor does a site without an
/// application show PHP. Method: every spelling and kind of request that would get a file.
fn no_spelling_of_a_script_shows_its_source(server: &Server) {
    let mut client = server.agent();
    let asked = [
        "/sub/b.php",
        "/sub/B.PHP",
        "/sub/b.php.",
        "/sub/b.php.gz",
        "/sub/b.phtml",
        "/sub/b.phtml.br",
        "/sub/c.cgi",
        "/sub/c.cgi~",
        "/sub/.b.php.swp",
        "/sub/%62%2ephp",
        "/sub/b.ph%70?x=.txt",
        "//sub/.//b.php",
        "/raw/../sub/b.php",
        "/sub/b.php/",
        "/sub/b.php/text.txt",
        "/sub/link.php",
        "/sub/other.php",
        "/sub/folder/b.php",
        "/own/b.php",
        "/own/none",
        "/B.PHP",
        "/b.phtml",
        "/b.php.gz",
    ];
    let fields = [
        "",
        "Range: bytes=0-3\r\n",
        "If-None-Match: *\r\n",
        "If-Modified-Since: Fri, 01 Jan 2100 00:00:00 GMT\r\n",
        "Accept-Encoding: gzip, br\r\n",
    ];
    for path in asked {
        for fields in fields {
            for method in ["GET", "HEAD"] {
                let response = client.ask_host(SITE, method, path, fields);
                assert_eq!(response.status, 404, "{method} {path} {fields}");
                assert!(!response.text().contains(SECRET), "{method} {path} {fields}");
            }
        }
    }
    for path in ["/b.php", "/B.PHP", "/sub/b.phtml", "/b.php.gz", "/sub/other.php", "/raw/index.php"] {
        assert_eq!(client.ask_host("no-scripts.example", "GET", path, "").status, 404, "{path}");
    }
    assert_eq!(
        client.ask_host("no-scripts.example", "GET", "/c.cgi", "").text(),
        SECRET,
        "a file like others"
    );
    for path in ["/b.php", "/b.php/more", "/c.cgi", "/", "/with-index/"] {
        assert_eq!(client.ask_host(SITE, "GET", path, "").status, 502, "{path} is run");
    }
    for (path, text) in [
        ("/sub/text.txt", "text"),
        ("/sub/with-index/", "index"),
        ("/sub/folder.php/text.txt", "in a folder"),
        ("/own/text.txt", "text"),
    ] {
        let response = client.ask_host(SITE, "GET", path, "");
        assert_eq!((response.status, response.text()), (200, text), "{path}");
    }
}

fn scripts_that_are_not_sent_are_not_listed(server: &Server) {
    let mut client = server.agent();
    let mut listed = |path: &str| {
        let response = client.ask_host(SITE, "GET", path, "Accept: application/json\r\n");
        assert_eq!(response.status, 200, "{path}");
        let listing: Value = serde_json::from_slice(&response.body).expect("JSON");
        let entries = listing["entries"].as_array().expect("entries");
        entries.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed("/sub/"), ["folder", "folder.php", "with-index", "text.txt"]);
    assert_eq!(listed("/raw/").len(), 10);
}

fn the_setting_sends_them(server: &Server) {
    let mut client = server.agent();
    for path in ["/raw/b.php", "/raw/B.PHP", "/raw/b.phtml", "/raw/c.cgi", "/raw/b.php.gz"] {
        let response = client.ask_host(SITE, "GET", path, "");
        assert_eq!((response.status, response.text()), (200, SECRET), "{path}");
    }
}

/// Goal: the operator of a folder with PHP learns at the start that it is not sent, and how to change that.
#[test]
fn a_folder_with_scripts_is_served_with_a_note() {
    for (flags, status, is_noted) in [(&[][..], 404, true), (&["--script-sources"][..], 200, false)] {
        let folder = Folder::new();
        folder.write("sub/b.php", SECRET).write("text.txt", "text");
        let server = Server::serve(folder, flags);
        assert_eq!(server.get("/sub/b.php").status, status, "{flags:?}");
        assert_eq!(server.get("/text.txt").status, 200, "{flags:?}");
        let file = server.folder().path("sub/b.php");
        let note = format!("such as {}: --php runs .php files, --script-sources sends", file.display());
        assert_eq!(server.said().contains(&note), is_noted, "{}", server.said());
    }
}
