//! Parts of files (RFC 9110, section 14).

use crate::common::client::Response;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::museum::{ALPHABET, ALPHABET_DATE, PATTERNS, pattern_of};

crate::protocols::over_every_protocol!(
    one_range,
    several_ranges,
    ranges_of_files_of_every_size,
    if_range_asks_for_the_part_or_the_whole,
    an_empty_file_has_no_parts,
);

const SIZE: usize = ALPHABET.len();

/// Which part, if any, a field selects of the alphabet.
fn one_range(server: &Server) {
    let mut client = server.agent();
    let whole = client.get("/alphabet.txt");
    assert_eq!(whole.field("accept-ranges"), Some("bytes"));
    for (range, expected) in [
        ("bytes=0-0", Ok(0..1)),
        ("bytes=0-25", Ok(0..26)),
        ("bytes=5-9", Ok(5..10)),
        ("bytes=5-", Ok(5..26)),
        ("bytes=25-", Ok(25..26)),
        ("bytes=20-99", Ok(20..26)),
        ("bytes=20-99999999999999999999999", Ok(20..26)),
        ("bytes=-1", Ok(25..26)),
        ("bytes=-26", Ok(0..26)),
        ("bytes=-99", Ok(0..26)),
        ("Bytes=1-2", Ok(1..3)),
        ("bytes=1-2,", Ok(1..3)),
        ("bytes= 1-2 ", Ok(1..3)),
        // Overlapping and touching ranges are joined, in any order.
        ("bytes=0-4,5-9", Ok(0..10)),
        ("bytes=5-9,0-4", Ok(0..10)),
        ("bytes=0-10,3-4,5-20", Ok(0..21)),
        ("bytes=0-,-1", Ok(0..26)),
        // Of several, those that exist.
        ("bytes=5-9,30-40", Ok(5..10)),
        // None exists.
        ("bytes=26-", Err(416)),
        ("bytes=26-30", Err(416)),
        ("bytes=99999999999999999999999-", Err(416)),
        ("bytes=-0", Err(416)),
        ("bytes=30-40,50-60", Err(416)),
        // Not a range: the field is ignored.
        ("bytes=", Err(200)),
        ("bytes=-", Err(200)),
        ("bytes=5", Err(200)),
        ("bytes=9-5", Err(200)),
        ("bytes=a-b", Err(200)),
        ("bytes=1-2-3", Err(200)),
        ("bytes=1-2;3-4", Err(200)),
        ("bytes=+1-2", Err(200)),
        ("bytes=0x1-2", Err(200)),
        ("bytes=1 - 2", Err(200)),
        ("bytes 1-2", Err(200)),
        ("lines=1-2", Err(200)),
        ("bytes=0-1,x", Err(200)),
        ("bytes=1-2\r\nRange: bytes=3-4", Err(200)),
    ] {
        let response = client.ask("GET", "/alphabet.txt", &format!("Range: {range}\r\n"));
        match expected {
            Ok(part) => {
                assert_eq!((response.status, response.text()), (206, &ALPHABET[part.clone()]), "{range}");
                let described = format!("bytes {}-{}/{SIZE}", part.start, part.end - 1);
                assert_eq!(response.field("content-range"), Some(&*described), "{range}");
                for name in ["content-type", "etag", "last-modified", "vary", "x-frame-options"] {
                    assert_eq!(response.field(name), whole.field(name), "{name}");
                }
            }
            Err(status) => {
                assert_eq!(response.status, status, "{range}");
                let described = (status == 416).then_some("bytes */26");
                assert_eq!(response.field("content-range"), described, "{range}");
                assert!(status == 416 || response.text() == ALPHABET, "{range}");
            }
        }
    }
}

/// Several parts in one answer, read back as a client does. Too many get the whole.
fn several_ranges(server: &Server) {
    let mut client = server.agent();
    for (range, expected) in [
        ("bytes=0-0,2-2", vec![0..1, 2..3]),
        ("bytes=0-1, 4-5 ,-1", vec![0..2, 4..6, 25..26]),
        ("bytes=-3,0-2", vec![23..26, 0..3]),
        ("bytes=10-12,99-,0-1", vec![10..13, 0..2]),
        ("bytes=0-1,10-11,2-3", vec![0..4, 10..12]),
    ] {
        let response = client.ask("GET", "/alphabet.txt", &format!("Range: {range}\r\n"));
        let parts = parts_of(&response, "text/plain; charset=utf-8", SIZE);
        let expected: Vec<_> =
            expected.into_iter().map(|part| (part.start, ALPHABET[part].as_bytes().to_vec())).collect();
        assert_eq!(parts, expected, "{range}");
    }
    let many = |count: usize| (0..count).map(|n| format!("{}-{0},", 2 * n)).collect::<String>();
    let at_the_limit = client.ask("GET", "/1k.bin", &format!("Range: bytes={}\r\n", many(16)));
    assert_eq!(parts_of(&at_the_limit, "application/octet-stream", 1024).len(), 16);
    let beyond = client.ask("GET", "/1k.bin", &format!("Range: bytes={}\r\n", many(17)));
    assert_eq!((beyond.status, &*beyond.body), (200, pattern_of("1k.bin")));
    // The worst of CVE-2011-3192: 1,300 ranges that overlap.
    let killer: String = (0..1300).map(|n| format!("5-{n},")).collect();
    assert_eq!(client.ask("GET", "/1k.bin", &format!("Range: bytes=0-,{killer}\r\n")).status, 200);
}

/// Parts of files that come from memory and from disk, one and several.
fn ranges_of_files_of_every_size(server: &Server) {
    let mut client = server.agent();
    for (name, size) in PATTERNS {
        let content = pattern_of(name);
        let (third, path) = (size / 3, format!("/{name}"));
        let one = client.ask("GET", &path, &format!("Range: bytes={third}-{}\r\n", 2 * third));
        assert_eq!(one.status, 206, "{name}");
        assert!(one.body == content[third..=2 * third], "{name}");
        let several =
            client.ask("GET", &path, &format!("Range: bytes=-{third},0-9,{third}-{}\r\n", third + 99));
        let expected = [
            (size - third, content[size - third..].to_vec()),
            (0, content[..10].to_vec()),
            (third, content[third..third + 100].to_vec()),
        ];
        assert!(parts_of(&several, "application/octet-stream", size) == expected, "{name}");
        assert!(client.get(&path).body == content, "{name}");
    }
}

/// RFC 9110, 13.1.5: only exactly the same representation may be completed.
fn if_range_asks_for_the_part_or_the_whole(server: &Server) {
    let mut client = server.agent();
    let tag = client.get("/alphabet.txt").field("etag").expect("a tag").to_owned();
    for (condition, status) in [
        (tag.clone(), 206),
        (ALPHABET_DATE.to_owned(), 206),
        (format!("W/{tag}"), 200),
        ("\"x\"".to_owned(), 200),
        (format!("{tag}, {tag}"), 200),
        ("*".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:38 GMT".to_owned(), 200),
        ("Sun, 06 Nov 1994 08:49:36 GMT".to_owned(), 200),
        ("some day".to_owned(), 200),
        (String::new(), 200),
    ] {
        let fields = format!("Range: bytes=1-2\r\nIf-Range: {condition}\r\n");
        let response = client.ask("GET", "/alphabet.txt", &fields);
        assert_eq!(response.status, status, "{condition}");
        assert_eq!(response.text(), if status == 206 { "bc" } else { ALPHABET }, "{condition}");
    }
    // It saves the client from 416 too, and means nothing without a range.
    assert_eq!(client.ask("GET", "/alphabet.txt", "Range: bytes=99-\r\nIf-Range: \"x\"\r\n").status, 200);
    assert_eq!(client.ask("GET", "/alphabet.txt", "If-Range: \"x\"\r\n").status, 200);
}

/// RFC 9110, 8.8.2.2: while a file may change again within the second of its date, only its tag identifies its state.
/// Method: a second that does not end during the test, by a file of the year 2100.
#[test]
fn the_date_of_a_file_that_has_just_changed_selects_no_part() {
    let folder = Folder::new();
    folder.write("fresh.txt", ALPHABET).date("fresh.txt", 4_102_444_800);
    let server = Server::serve(folder, &[]);
    let mut client = server.agent();
    let whole = client.get("/fresh.txt");
    for (validator, expected) in [("last-modified", (200, ALPHABET)), ("etag", (206, "bc"))] {
        let value = whole.field(validator).expect(validator);
        let part = client.ask("GET", "/fresh.txt", &format!("Range: bytes=1-2\r\nIf-Range: {value}\r\n"));
        assert_eq!((part.status, part.text()), (expected.0, expected.1), "{validator}: {value}");
    }
}

fn an_empty_file_has_no_parts(server: &Server) {
    let mut client = server.agent();
    let response = client.ask("GET", "/empty.txt", "Range: bytes=0-\r\n");
    assert_eq!((response.status, response.field("content-range")), (416, Some("bytes */0")));
    assert_eq!(client.ask("GET", "/empty.txt", "Range: bytes=-1\r\n").status, 200);
    assert_eq!(client.get("/empty.txt").field("content-length"), Some("0"));
}

/// Takes a `multipart/byteranges` apart, by the book: offset and bytes of each part.
fn parts_of(response: &Response, media_type: &str, size: usize) -> Vec<(usize, Vec<u8>)> {
    assert_eq!(response.status, 206);
    assert_eq!(response.field("content-range"), None, "that each part has");
    let content_type = response.field("content-type").expect("a type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("a boundary");
    let delimiter = format!("\r\n--{boundary}");
    let mut rest = &response.body[..];
    let mut parts = Vec::new();
    loop {
        rest = rest.strip_prefix(delimiter.as_bytes()).expect("a delimiter");
        if rest == b"--\r\n" {
            return parts;
        }
        let end = memchr::memmem::find(rest, b"\r\n\r\n").expect("a head");
        let head = std::str::from_utf8(&rest[..end]).expect("text");
        let range = head
            .strip_prefix(&format!("\r\nContent-Type: {media_type}\r\nContent-Range: bytes "))
            .and_then(|head| head.strip_suffix(&format!("/{size}")))
            .unwrap_or_else(|| panic!("{head:?}"));
        let (first, last) = range.split_once('-').expect("a range");
        let (first, last): (usize, usize) = (first.parse().expect("first"), last.parse().expect("last"));
        let (bytes, tail) = rest[end + 4..].split_at(last + 1 - first);
        parts.push((first, bytes.to_vec()));
        rest = tail;
    }
}
