//! Heads and bodies, also when the second changes.

use baton_buf::Piece;
use baton_content::{BodySource, CacheSettings, HeadForm};
use baton_http::Stamp;
use baton_http::h2::encode_response_head;

use crate::site::{Site, bytes_of, reply};

const FORMS: [(HeadForm, Option<&str>); 3] = [
    (HeadForm::KeepAlive, None),
    (HeadForm::Close, Some("close")),
    (HeadForm::KeepAliveHttp10, Some("keep-alive")),
];

fn date_in(head: &str) -> &str {
    head.split("\r\n").find_map(|line| line.strip_prefix("Date: ")).unwrap()
}

/// Every path gives the same bytes: from memory or the file, with and without cached heads.
#[test]
fn each_reply_is_complete() {
    for memory_file_bytes_max in [0, 1 << 20] {
        for heads in [false, true] {
            for content in [&b"hello, world\n"[..], b"", &[b'x'; 5_000]] {
                let site =
                    Site::with(CacheSettings { memory_file_bytes_max, heads, ..CacheSettings::default() });
                site.write("hello.txt", content);
                let stored = site.file("/hello.txt");
                let in_memory = memory_file_bytes_max > 0;
                assert_eq!(stored.has_both_ways(), in_memory && content.len() >= 4096);
                let ways = [BodySource::Memory, BodySource::File];
                for (form, connection) in FORMS.into_iter().cycle().take(9) {
                    let [memory, file] = ways.map(|way| stored.whole(form, &site.now(), way));
                    let goes_from_file = matches!(file.rest, Some(Piece::File(_)));
                    assert_eq!(goes_from_file, stored.has_both_ways() || !in_memory && !content.is_empty());
                    assert_eq!(reply(&memory), reply(&file));
                    let (head, body) = reply(&memory);
                    assert_eq!(body, content);
                    let connection =
                        connection.map(|value| format!("Connection: {value}\r\n")).unwrap_or_default();
                    let expected = format!(
                        "HTTP/1.1 200 OK\r\nServer: baton\r\nDate: {date}\r\n{connection}Content-Length: {len}\r\n\
                         Content-Type: text/plain; charset=utf-8\r\nLast-Modified: {modified}\r\nETag: {etag}\r\n\
                         Accept-Ranges: bytes\r\n\r\n",
                        date = std::str::from_utf8(&site.now().date).unwrap(),
                        len = content.len(),
                        modified =
                            std::str::from_utf8(&Stamp::at(stored.modified_unix_seconds().unwrap()).date)
                                .unwrap(),
                        etag = std::str::from_utf8(stored.etag().as_ref()).unwrap(),
                    );
                    assert_eq!(head, expected);
                    site.wait(1);
                }
            }
        }
    }
}

/// A block of HTTP/2 has the same fields; a second later only its date differs, and where it stands does not.
#[test]
fn a_head_is_kept_as_a_block_of_http2() {
    let site = Site::new();
    site.write("hello.txt", b"hello, world\n");
    let stored = site.file("/hello.txt");
    let block_of = || {
        let whole = stored.whole(HeadForm::Http2, &site.now(), BodySource::Memory);
        whole.first[..whole.head_len].to_vec()
    };
    let lines_of = || {
        let whole = stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory);
        let mut block = Vec::new();
        let date_at = encode_response_head(&whole.first[..whole.head_len], &mut block);
        (block, date_at)
    };
    let first = block_of();
    assert_eq!((first.clone(), true), (lines_of().0, lines_of().1.is_some()));
    site.wait(1);
    let second = block_of();
    assert_eq!(second, lines_of().0);
    assert_ne!(first, second);
}

#[test]
fn a_small_file_and_its_head_are_one_buffer() {
    let site = Site::new();
    site.write("hello.txt", b"hello, world\n");
    let stored = site.file("/hello.txt");
    assert!(stored.in_memory());
    let whole = stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory);
    assert!(whole.rest.is_none());
    assert_eq!(whole.first[whole.head_len..], *b"hello, world\n");
}

#[test]
fn a_large_file_stays_on_disk() {
    let site = Site::with(CacheSettings { memory_file_bytes_max: 1000, ..CacheSettings::default() });
    let content: Vec<u8> = (0..5000_u32).map(|number| number as u8).collect();
    site.write("large.bin", &content);
    site.write("limit.bin", &content[..1000]);
    assert!(site.file("/limit.bin").in_memory());
    let stored = site.file("/large.bin");
    assert!(!stored.in_memory());
    let whole = stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory);
    assert_eq!(whole.first.len(), whole.head_len);
    let Some(Piece::File(slice)) = &whole.rest else { panic!("{whole:?}") };
    assert_eq!((slice.offset(), slice.len()), (0, 5000));
}

#[test]
fn ranges_are_ranges_of_the_file() {
    for memory_file_bytes_max in [0, 1 << 20] {
        for heads in [false, true] {
            let site = Site::with(CacheSettings { memory_file_bytes_max, heads, ..CacheSettings::default() });
            site.write("alphabet", b"abcdefghijklmnopqrstuvwxyz");
            let stored = site.file("/alphabet");
            assert_eq!(bytes_of(&stored.body(0, 26)), b"abcdefghijklmnopqrstuvwxyz");
            assert_eq!(bytes_of(&stored.body(3, 4)), b"defg");
            assert_eq!(bytes_of(&stored.body(25, 1)), b"z");
            assert!(stored.body(26, 0).is_empty());
        }
    }
}

#[test]
#[should_panic(expected = "2 bytes from 9 on of a file of 10")]
fn a_range_beyond_the_file_is_a_mistake_of_the_caller() {
    let site = Site::new();
    site.write("ten", b"0123456789");
    let _ = site.file("/ten").body(9, 2);
}

/// IO-Lite's exception: unshared bytes may change in place. A response of the previous second in flight must keep its
/// date.
#[test]
fn the_date_changes_in_place_only_if_unshared() {
    let site = Site::new();
    site.write("a.txt", b"body");
    let stored = site.file("/a.txt");
    let address =
        |site: &Site| stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory).first.as_ptr();

    let before = address(&site);
    site.wait(1);
    assert_eq!(address(&site), before, "copied although unshared");

    let held = stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory);
    let held_range = stored.body(0, 2);
    let old_date = date_in(&reply(&held).0).to_owned();
    site.wait(1);
    let (head, body) = reply(&stored.whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory));
    assert_eq!((date_in(&head), &body[..]), (std::str::from_utf8(&site.now().date).unwrap(), &b"body"[..]));
    assert_eq!(date_in(&reply(&held).0), old_date);
    assert_eq!(bytes_of(&held_range), b"bo");
}

#[test]
fn the_server_is_not_named_if_it_is_not_to_be() {
    let site = Site::configured(CacheSettings::default(), |config| config.server_header = false);
    site.write("a.txt", b"body");
    let (head, _) = reply(&site.file("/a.txt").whole(HeadForm::KeepAlive, &site.now(), BodySource::Memory));
    assert!(!head.contains("Server:"), "{head}");
}
