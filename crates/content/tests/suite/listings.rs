//! Directories, listed.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use baton_content::{Blocking, CacheSettings, Found, Listing, NeedsDisk, Query};

use crate::site::{Site, query};

fn listing_site() -> Site {
    Site::configured(CacheSettings::default(), |config| {
        config.listing = Listing::On;
    })
}

fn list(site: &Site, path: &str, accept_json: bool) -> (String, String) {
    let query = Query { accept_json, ..query(path) };
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

#[test]
fn a_document_has_one_line_per_entry() {
    let site = listing_site();
    site.write("b\"x.txt", b"12345");
    fs::create_dir(site.path("sub")).unwrap();
    let name = std::ffi::OsStr::from_bytes(b"\xff.bin");
    fs::write(site.folder.path().join("root").join(name), b"1").unwrap();
    for entry in ["b\"x.txt", "sub"] {
        let times = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH);
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
    for accept_json in [false, true] {
        let (_, listing) = list(&site, "/", accept_json);
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
    assert!(matches!(site.ask("/", Blocking::Never), Err(NeedsDisk)));
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
