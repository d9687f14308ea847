//! What is found at a path: each answer, and what a file's reply looks like.

use crate::site::{Site, bytes_of};
use baton_buf::Piece;
use baton_content::{Blocking, CacheSettings, Found, Persistence};

#[test]
fn a_small_file_is_one_buffer_of_head_and_body() {
    let site = Site::new();
    site.write("hello.txt", b"hello, world\n");
    let stored = site.file("/hello.txt");
    assert!(stored.in_memory());
    let whole = stored.whole(Persistence::KeepAlive, &site.now());
    assert!(whole.rest.is_none());
    let (head, body) = whole.first.split_at(whole.head_len);
    assert_eq!(body, b"hello, world\n");
    let head = std::str::from_utf8(head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nServer: baton\r\nDate: "), "{head}");
    assert!(head.contains("\r\nContent-Length: 13\r\nContent-Type: text/plain; charset=utf-8\r\n"), "{head}");
    assert!(head.ends_with("\r\nAccept-Ranges: bytes\r\n\r\n"), "{head}");
    assert!(!head.contains("Connection:"), "{head}");
}

#[test]
fn a_large_file_is_a_head_and_a_range_of_the_file() {
    let site = Site::with(CacheSettings { memory_file_bytes_max: 1000, ..CacheSettings::default() });
    let content: Vec<u8> = (0..5000_u32).map(|number| number as u8).collect();
    site.write("large.bin", &content);
    let stored = site.file("/large.bin");
    assert!(!stored.in_memory());
    let whole = stored.whole(Persistence::Close, &site.now());
    assert_eq!(whole.first.len(), whole.head_len);
    assert!(String::from_utf8_lossy(&whole.first).contains("\r\nConnection: close\r\n"));
    let Some(Piece::File(slice)) = &whole.rest else { panic!("{whole:?}") };
    assert_eq!((slice.offset(), slice.len()), (0, 5000));
    assert_eq!(bytes_of(&stored.body(100, 50)), content[100..150]);
}

#[test]
fn what_is_not_there_is_missing() {
    let site = Site::new();
    assert!(matches!(site.find("/nothing"), Found::Missing));
    assert!(matches!(site.ask("/nothing", Blocking::Never), Ok(Found::Missing)));
}
