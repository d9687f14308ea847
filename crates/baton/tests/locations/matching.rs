//! Which route a path belongs to, however it is spelled.

use crate::common::server::Server;
use crate::site::SECRET;

crate::everywhere!(
    each_kind_of_route_answers_its_own,
    no_spelling_gets_around_a_pattern,
    a_script_that_runs_is_a_file,
);

fn each_kind_of_route_answers_its_own(server: &Server) {
    let mut client = server.agent();
    for (path, status, text) in [
        ("/one", 200, "exact"),
        ("/one/", 404, ""),
        ("/one/two", 404, ""),
        ("/status/", 200, "exact with a slash"),
        ("/status", 404, ""),
        ("/", 200, "index.html\n"),
    ] {
        let response = client.get(path);
        assert_eq!(response.status, status, "{path}");
        assert!(status == 404 || response.text() == text, "{path}: {}", response.text());
    }
    for (path, status, route) in [
        ("/img/a.png", 200, Some("glob")),
        ("/img/b/c.png", 200, None),
        ("/a.txt", 200, Some("second glob")),
        ("/%C3%A9.txt", 200, Some("second glob")),
        ("/sub/a.txt", 200, Some("second glob")),
        ("/sub/none", 404, Some("prefix")),
        ("/static/a.txt", 200, None),
        ("/a.css", 200, None),
    ] {
        let response = client.get(path);
        assert_eq!((response.status, response.field("x-route")), (status, route), "{path}");
    }
}

/// Goal: what a pattern or an exact path denies stays denied. Method: every spelling that leads to the same file elsewhere.
fn no_spelling_gets_around_a_pattern(server: &Server) {
    let mut client = server.agent();
    for path in [
        "/conf/db.inc",
        "/conf/DB.INC",
        "/conf/db.iNc",
        "/conf/db%2einc",
        "/conf/db.in%63",
        "//conf//db.inc",
        "/./conf/db.inc",
        "/conf/../conf/db.inc",
        "/conf/x/%2e%2e/db.inc",
        "/x/..//conf/db.inc",
        "/conf%2Fdb.inc",
        "/conf%2f%2fdb.inc",
        "/conf%5Cdb.inc",
        "/conf/db.inc?x=/a.txt",
        "/private/a.txt",
        "/private//a.txt",
        "//private/a.txt",
        "/%70rivate/a.txt",
        "/private%2Fa.txt",
        "/%2Fprivate/a.txt",
        "/private/%2e/a.txt",
        "/static/../private/a.txt",
        "/static/%2e%2e/private/a.txt",
        "/private/a%0A.txt",
        "/private/%FF",
        "/private/a.php",
        "/private/",
    ] {
        for method in ["GET", "HEAD"] {
            let response = client.ask_host("locations", method, path, "");
            assert_eq!(response.status, 403, "{method} {path}");
            assert!(!response.text().contains(SECRET), "{method} {path}");
        }
    }
    for path in
        ["/static/..%2Fprivate/a.txt", "/conf/db.inc%00", "/..%2Fprivate/a.txt", "/%2e%2e/private/a.txt"]
    {
        assert_eq!(client.get(path).status, 400, "{path}");
    }
    // A file system that knows no cases would need `(?i)`; this one has no such files.
    for path in ["/PRIVATE/a.txt", "/conf/db.inc.", "/conf/db.inc%20", "/conf/db.inc/"] {
        let response = client.get(path);
        assert!(response.status == 404 || response.status == 403, "{path}: {}", response.status);
        assert!(!response.text().contains(SECRET), "{path}");
    }
}

/// Goal: a route for all paths that end in `.php` runs scripts, and nothing that a client has uploaded under another name
/// (`/upload/x.jpg/a.php`, CVE-2010-… of many configurations); and no other route shows a script's source.
fn a_script_that_runs_is_a_file(server: &Server) {
    let mut client = server.agent();
    for path in ["/a.php", "/a.php?x=.txt", "/%61.ph%70", "//x/../a.php", "/a.php/more", "/a.php/x/b.php"] {
        assert_eq!(client.get(path).status, 502, "{path} is run");
    }
    for path in [
        "/upload/x.jpg/a.php",
        "/upload/x.jpg/.php",
        "/upload/x.jpg%2Fa.php",
        "/upload/x.jpg%2fa.php/b.php",
        "/upload/x.jpg//a.php",
        "/upload/x.jpg/%2e/a.php",
        "/upload/x.jpg/a.php/b.php",
        "/upload/x.jpg%0A.php",
        "/upload/x.jpg%20/a.php",
        "/index.html/a.php",
        "/none.php",
        "/a.PHP",
        "/a.php%20",
        "/a.php.",
        "/a.php%2500.txt",
        "/static/run.php",
        "/static/run.php/a.txt",
        "/img/../static/run.php",
    ] {
        let response = client.get(path);
        assert!(matches!(response.status, 400 | 404), "{path}: {}", response.status);
        assert!(!response.text().contains(SECRET), "{path}");
    }
}
