//! Directories, listed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, UNIX_EPOCH};

use baton_content::{Blocking, CacheSettings, Found, Listing, NeedsDisk, Query, View};

use crate::site::{Site, query};

fn listing_site() -> Site {
    Site::configured(CacheSettings::default(), |config| {
        config.listing = Listing::On;
    })
}

fn list(site: &Site, path: &str, prefers_json: bool) -> (String, String) {
    list_as(site, path, View::of_request(None, prefers_json))
}

fn list_as(site: &Site, path: &str, view: View) -> (String, String) {
    let query = Query { view, ..query(path) };
    match site.cache.find(&site.tree, &query, &site.now(), Blocking::Allowed) {
        Ok(Found::Listing(listed)) => {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            (text(&listed.fields), text(&listed.body))
        }
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn a_page_shows_directories_first_and_nothing_hidden() {
    let site = listing_site();
    site.write("docs/b.txt", b"12345");
    site.write("docs/a <&>.txt", &[0; 2048]);
    site.write("docs/zoo/x", b"");
    site.write("docs/.hidden", b"");
    let (fields, page) = list(&site, "/docs/", false);
    assert_eq!(fields, "Content-Type: text/html; charset=utf-8\r\nVary: Accept\r\n");
    let at = |needle: &str| page.find(needle).unwrap_or_else(|| panic!("{needle} in {page}"));
    assert!(at("<h1>/docs/</h1>") < at("href=\"../\""));
    assert!(at("href=\"../\"") < at("<a href=\"./zoo/\">zoo/</a>"));
    let a = at("<a href=\"./a%20%3C%26%3E.txt\">a &lt;&amp;&gt;.txt</a></td><td>2.0 KiB</td>");
    assert!(at("./zoo/") < a && a < at("<a href=\"./b.txt\">b.txt</a></td><td>5 B</td>"));
    assert!(!page.contains("hidden"), "{page}");
    let (_, root) = list(&site, "/", false);
    assert!(!root.contains("../"), "the root has no parent: {root}");
}

/// Goal: a listing is sorted as the query says, folders first, equals by name. Method: names, sizes and times whose
/// orders all differ.
#[test]
fn a_query_says_what_a_listing_is_sorted_by() {
    let site = listing_site();
    for (name, size, seconds) in [("a", 2, 300), ("b", 1, 100), ("c", 3, 200), ("d", 1, 300)] {
        site.write(name, &vec![0; size]);
        let times = fs::FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(seconds));
        fs::File::open(site.path(name)).unwrap().set_times(times).unwrap();
    }
    fs::create_dir(site.path("y")).unwrap();
    fs::create_dir(site.path("z")).unwrap();
    for folder in ["y", "z"] {
        let times = fs::FileTimes::new().set_modified(UNIX_EPOCH);
        fs::File::open(site.path(folder)).unwrap().set_times(times).unwrap();
    }
    for (query, expected) in [
        ("", "yzabcd"),
        ("sort=name&order=desc", "zydcba"),
        ("sort=size", "yzbdac"),
        ("sort=size&order=desc", "yzcabd"),
        ("sort=time&order=asc", "yzbcad"),
        ("sort=time&order=desc", "yzadcb"),
        ("sort=owner", "yzabcd"),
    ] {
        for prefers_json in [false, true] {
            let view = View::of_request(Some(query.as_bytes()), prefers_json);
            let (_, listing) = list_as(&site, "/", view);
            let names: String = listing.split("\"./").skip(1).map(|rest| &rest[..1]).collect();
            assert_eq!(names, expected, "{query}: {listing}");
        }
    }
    let (_, page) = list_as(&site, "/", View::of_request(Some(b"sort=size&order=desc"), false));
    let size = "<th aria-sort=\"descending\"><a href=\"?sort=size&amp;order=asc\">Size \u{2193}</a></th>";
    assert!(page.contains(size), "{page}");
    assert!(page.contains("<th><a href=\"?sort=time&amp;order=asc\">Modified (UTC)</a></th>"), "{page}");
    assert!(
        page.contains("<time datetime=\"1970-01-01T00:05Z\">1970-01-01<span> 00:05</span></time>"),
        "{page}"
    );
}

#[test]
fn a_document_has_one_line_per_entry() {
    let site = listing_site();
    site.write("b\"x.txt", b"12345");
    fs::create_dir(site.path("sub")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"\xff.bin");
    fs::write(site.folder.path().join("root").join(name), b"1").unwrap();
    for entry in ["b\"x.txt", "sub"] {
        let times = fs::FileTimes::new().set_modified(UNIX_EPOCH);
        fs::File::open(site.path(entry)).unwrap().set_times(times).unwrap();
    }
    let (fields, document) = list(&site, "/", true);
    assert!(fields.starts_with("Content-Type: application/json\r\n"), "{fields}");
    let lines: Vec<_> = document.lines().collect();
    assert_eq!(lines[0], r#"{"path":"/","cut":false,"entries":["#);
    assert_eq!(
        lines[1],
        r#"{"name":"sub","type":"directory","mtime":"Thu, 01 Jan 1970 00:00:00 GMT","href":"./sub/"},"#
    );
    assert_eq!(
        lines[2],
        r#"{"name":"b\"x.txt","type":"file","size":5,"mtime":"Thu, 01 Jan 1970 00:00:00 GMT","href":"./b%22x.txt"},"#
    );
    assert!(lines[3].starts_with("{\"name\":\"\u{fffd}.bin\",\"type\":\"file\",\"size\":1,"), "{}", lines[3]);
    assert!(lines[3].ends_with(r#""href":"./%FF.bin"}"#), "{}", lines[3]);
    assert_eq!(lines[4..], ["]}"]);
    // The document's references resolve.
    assert_eq!(site.content("/%FF.bin"), b"1");
}

#[test]
fn only_what_would_be_served_is_listed() {
    let site = listing_site();
    site.write("file.txt", b"123");
    fs::write(site.folder.path().join("outside.txt"), b"secret").unwrap();
    symlink("file.txt", site.path("inside-link")).unwrap();
    symlink("../outside.txt", site.path("outside-link")).unwrap();
    symlink("nowhere", site.path("broken-link")).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, site.path("fifo"), fifo, mode, 0).unwrap();
    let (_, document) = list(&site, "/", true);
    assert!(document.contains("file.txt"), "{document}");
    assert!(document.contains(r#""name":"inside-link","type":"file","size":3"#), "{document}");
    for absent in ["outside-link", "broken-link", "fifo"] {
        assert!(!document.contains(absent), "{absent} in {document}");
    }
}

/// Paths with these bytes are refused in any spelling, so a link to such a name would lead nowhere.
#[test]
fn names_that_no_path_can_express_are_not_listed() {
    let site = listing_site();
    for name in ["a\\b.txt", "tab\there.txt", "line\nbreak.txt", "bell\x07", "del\x7f"] {
        site.write(name, b"");
        fs::create_dir(site.path(&format!("{name}.d"))).unwrap();
    }
    site.write("plain %5C.txt", b"percent");
    for prefers_json in [false, true] {
        let (_, listing) = list(&site, "/", prefers_json);
        assert_eq!(listing.matches("./").count(), 1, "{listing}");
        assert!(listing.contains("./plain%20%255C.txt"), "{listing}");
    }
    assert_eq!(site.content("/plain%20%255C.txt"), b"percent");
}

#[test]
fn an_index_comes_before_a_listing_and_a_path_without_slash_is_sent_there() {
    let site = listing_site();
    site.write("with/index.html", b"index");
    site.write("without/x", b"");
    assert_eq!(site.content("/with/"), b"index");
    assert!(matches!(site.find("/without"), Found::AddSlash));
    assert!(matches!(site.find("/none/"), Found::Missing));
    assert!(matches!(site.find("/without/x/"), Found::Missing));
}

#[test]
fn reading_a_directory_is_for_those_who_may_wait() {
    let site = listing_site();
    site.write("x", b"");
    list(&site, "/", false);
    for blocking in [Blocking::Never, Blocking::Briefly] {
        assert!(matches!(site.ask("/", blocking), Err(NeedsDisk)), "{blocking:?}");
    }
}

#[test]
fn very_large_directories_are_cut() {
    let site = listing_site();
    for number in 0..10_001 {
        fs::write(site.path(&format!("{number:05}")), b"").unwrap();
    }
    let (_, document) = list(&site, "/", true);
    assert!(document.starts_with(r#"{"path":"/","cut":true"#));
    assert_eq!(document.lines().count(), 10_002);
    let (_, page) = list(&site, "/", false);
    assert!(page.contains("There are more than the 10000 entries shown here."));
}

#[test]
fn a_listing_below_a_prefix_says_the_path_that_the_client_knows() {
    let site = Site::configured(CacheSettings::default(), |config| {
        config.listing = Listing::On;
        config.strip_prefix = "files".to_owned();
    });
    site.write("sub/x", b"");
    assert!(list(&site, "/files/sub/", true).1.starts_with(r#"{"path":"/files/sub/""#));
    assert!(list(&site, "/files/", true).1.starts_with(r#"{"path":"/files/""#));
}
