//! Conditional requests (RFC 9110, section 13).

use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::server::{Server, wait_until};
use crate::museum::{ALPHABET, ALPHABET_DATE, folder, pattern_of};

crate::protocols::over_every_protocol!(
    conditions_in_their_order_of_precedence,
    a_304_has_the_fields_of_the_file,
    a_change_changes_the_tag,
    a_copy_has_the_tag_of_its_original,
    dates_that_all_files_have_confirm_nothing,
);

const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";

/// Fields as sent, with `TAG` and `DATE` for the validators of the file; the status; and the body.
fn conditions_in_their_order_of_precedence(server: &Server) {
    let mut client = server.agent();
    let whole = client.get("/alphabet.txt");
    assert_eq!(whole.field("last-modified"), Some(ALPHABET_DATE));
    let tag = whole.field("etag").expect("a tag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2, "a strong tag: {tag}");
    for (fields, status) in [
        // Each field alone, true and false.
        ("If-Match: TAG", 200),
        ("If-Match: *", 200),
        ("If-Match: \"x\", TAG", 200),
        ("If-Match: \"x\"", 412),
        ("If-Match: W/TAG", 412),
        ("If-None-Match: TAG", 304),
        ("If-None-Match: W/TAG", 304),
        ("If-None-Match: \"x\",TAG", 304),
        ("If-None-Match: *", 304),
        ("If-None-Match: \"x\"", 200),
        ("If-Modified-Since: DATE", 304),
        ("If-Modified-Since: AFTER", 304),
        ("If-Modified-Since: BEFORE", 200),
        ("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT", 304),
        ("If-Modified-Since: Sun Nov  6 08:49:37 1994", 304),
        ("If-Modified-Since: some day", 200),
        ("If-Unmodified-Since: DATE", 200),
        ("If-Unmodified-Since: AFTER", 200),
        ("If-Unmodified-Since: BEFORE", 412),
        ("If-Unmodified-Since: some day", 200),
        // 13.2.2: tags hide dates, If-Match comes before If-None-Match.
        ("If-Match: TAG\r\nIf-Unmodified-Since: BEFORE", 200),
        ("If-Match: \"x\"\r\nIf-Unmodified-Since: AFTER", 412),
        ("If-None-Match: \"x\"\r\nIf-Modified-Since: AFTER", 200),
        ("If-None-Match: TAG\r\nIf-Modified-Since: BEFORE", 304),
        ("If-None-Match: TAG\r\nIf-Match: \"x\"", 412),
        ("If-None-Match: TAG\r\nIf-Match: TAG", 304),
        ("If-Unmodified-Since: BEFORE\r\nIf-None-Match: TAG", 412),
        ("If-Unmodified-Since: DATE\r\nIf-Modified-Since: DATE", 304),
        // Lists go on in further lines.
        ("If-None-Match: \"x\"\r\nIf-None-Match: TAG", 304),
        ("If-Match: \"x\"\r\nIf-Match: TAG", 200),
        // The range comes after all of them.
        ("Range: bytes=1-2\r\nIf-None-Match: TAG", 304),
        ("Range: bytes=1-2\r\nIf-Match: \"x\"", 412),
        ("Range: bytes=99-\r\nIf-Modified-Since: DATE", 304),
        ("Range: bytes=1-2\r\nIf-Match: TAG", 206),
        ("Range: bytes=1-2\r\nIf-Unmodified-Since: DATE", 206),
        ("Range: bytes=1-2\r\nIf-None-Match: \"x\"", 206),
    ] {
        let fields = fields.replace("TAG", &tag).replace("DATE", ALPHABET_DATE);
        let fields = fields.replace("BEFORE", BEFORE).replace("AFTER", AFTER) + "\r\n";
        for method in ["GET", "HEAD"] {
            let response = client.ask(method, "/alphabet.txt", &fields);
            let status = if method == "HEAD" && status == 206 { 200 } else { status };
            assert_eq!(response.status, status, "{method} {fields:?}");
            match (method, status) {
                ("GET", 200) => assert_eq!(response.text(), ALPHABET, "{fields:?}"),
                ("GET", 206) => assert_eq!(response.text(), "bc", "{fields:?}"),
                _ => {}
            }
        }
    }
    // Conditions apply to existing files.
    assert_eq!(client.ask("GET", "/none", "If-None-Match: *\r\n").status, 404);
    assert_eq!(client.ask("GET", "/none", "If-Match: *\r\n").status, 404);
    assert_eq!(client.ask("POST", "/alphabet.txt", "If-Match: \"x\"\r\n").status, 405);
}

/// RFC 9110, 15.4.5: the fields that a cache needs to update its copy, and no body.
fn a_304_has_the_fields_of_the_file(server: &Server) {
    let mut client = server.agent();
    for path in ["/alphabet.txt", "/1m.bin", "/style.css"] {
        let whole = client.get(path);
        let tag = whole.field("etag").expect("a tag");
        let unmodified = client.ask("GET", path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!(unmodified.status, 304);
        for name in ["etag", "last-modified", "cache-control", "vary", "x-frame-options"] {
            assert_eq!(unmodified.field(name), whole.field(name), "{path} {name}");
        }
        assert!(unmodified.field("date").is_some());
        assert_eq!(unmodified.field("content-length"), None);
    }
    // What followed on the connection was no body.
    assert!(client.get("/16k.bin").body == pattern_of("16k.bin"));
}

/// Replaces a file by one of the same size, then writes into it: each time the old tag matches neither a condition
/// nor a range.
fn a_change_changes_the_tag(server: &Server) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("changing-{}.txt", COUNT.fetch_add(1, Ordering::Relaxed));
    let path = format!("/{name}");
    let mut client = server.agent();
    folder().write(&name, "first!");
    let mut tag = client.get(&path).field("etag").expect("a tag").to_owned();
    for (content, in_place) in [("second", false), ("longer than before", true)] {
        wait_for_a_tick(&name);
        if in_place {
            folder().write(&name, content);
        } else {
            folder().replace(&name, content);
        }
        wait_until("the change is seen", || client.get(&path).text() == content);
        let stale = client.ask("GET", &path, &format!("If-None-Match: {tag}\r\n"));
        assert_eq!((stale.status, stale.text()), (200, content));
        assert_eq!(client.ask("GET", &path, &format!("If-Match: {tag}\r\n")).status, 412);
        let part = client.ask("GET", &path, &format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"));
        assert_eq!((part.status, part.text()), (200, content));
        tag = stale.field("etag").expect("a tag").to_owned();
        assert_eq!(client.ask("GET", &path, &format!("If-None-Match: {tag}\r\n")).status, 304);
    }
}

/// Waits until a file that is written has another date than the last change of this one: the kernel's clock for files ticks each 4
/// or 10 ms.
fn wait_for_a_tick(name: &str) {
    let changed = |name: &str| {
        let state = folder().path(name).metadata().expect("a file");
        (state.ctime(), state.ctime_nsec())
    };
    let (last, probe) = (changed(name), format!("{name}.tick"));
    wait_until("the clock of files goes on", || {
        folder().write(&probe, "");
        changed(&probe) > last
    });
}

/// Goal: what a client has from one node or mount is current at another. Method: two files with other inodes, the second a copy
/// with the first one's date, under both names of which a client asks with the other's tag.
fn a_copy_has_the_tag_of_its_original(server: &Server) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let [original, copy] = ["original", "copy"].map(|name| format!("{name}-{number}.txt"));
    for name in [&original, &copy] {
        folder().write(name, "the same bytes").date(name, 1_700_000_000);
    }
    let mut client = server.agent();
    let tag = client.get(&format!("/{original}")).field("etag").expect("a tag").to_owned();
    let path = format!("/{copy}");
    assert_eq!(client.ask("GET", &path, &format!("If-None-Match: {tag}\r\n")).status, 304);
    let part = client.ask("GET", &path, &format!("Range: bytes=4-7\r\nIf-Range: {tag}\r\n"));
    assert_eq!((part.status, part.text()), (206, "same"));
}

/// Goal: two builds of a reproducible image are two files, though their sizes and dates are equal. Method: one file takes the place
/// of another, and is written over another one; a client asks with the old tag and with dates.
fn dates_that_all_files_have_confirm_nothing(server: &Server) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let mut client = server.agent();
    for (date, in_place) in [(0, false), (1, true), (1, false), (499_162_500, true), (946_684_800, false)] {
        let name = format!("built-{}.txt", COUNT.fetch_add(1, Ordering::Relaxed));
        let path = format!("/{name}");
        folder().write(&name, "first!").date(&name, date);
        let first = client.get(&path);
        let tag = first.field("etag").expect("a tag").to_owned();
        assert_eq!(first.field("last-modified"), None, "{date}");
        assert_eq!(client.ask("GET", &path, &format!("If-None-Match: {tag}\r\n")).status, 304);
        wait_for_a_tick(&name);
        if in_place {
            folder().write(&name, "second").date(&name, date);
        } else {
            let fresh = format!("{name}.fresh");
            folder().write(&fresh, "second").date(&fresh, date);
            std::fs::rename(folder().path(&fresh), folder().path(&name)).expect("renamed");
        }
        wait_until("the change is seen", || client.get(&path).text() == "second");
        for condition in [
            format!("If-None-Match: {tag}"),
            format!("If-Modified-Since: {AFTER}"),
            format!("Range: bytes=0-1\r\nIf-Range: {tag}"),
            "Range: bytes=0-1\r\nIf-Range: Thu, 01 Jan 1970 00:00:01 GMT".to_owned(),
        ] {
            let response = client.ask("GET", &path, &format!("{condition}\r\n"));
            assert_eq!((response.status, response.text()), (200, "second"), "{date} {condition}");
        }
    }
}
