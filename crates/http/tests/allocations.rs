//! Goal: a request for a file costs no heap allocation here, once the buffers that are written to have grown.
//! Method: the steps of such a request under a counting allocator.

use baton_http::h2::hpack::Decoder;
use baton_http::h2::{HeadText, encode_response_head};
use baton_http::{
    AcceptedCodings, BodyFraming, BodyReader, BodyStep, ETag, HeadLimits, HeadScanner, Precondition, Ranges,
    ReplyHead, RequestHead, Stamp, Status, decode_path, select_ranges,
};

const REQUEST: &[u8] =
    b"GET /a%20b/c.html?d HTTP/1.1\r\nHost: example.org:8080\r\nUser-Agent: Mozilla/5.0\r\n\
    Accept-Encoding: gzip, deflate, br, zstd\r\nConnection: keep-alive\r\nRange: bytes=0-9\r\n\
    If-None-Match: \"a\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n";

#[test]
fn a_request_allocates_nothing() {
    let limits = HeadLimits::default();
    let mut path = Vec::with_capacity(64);
    let mut reply = Vec::with_capacity(512);
    let allocations = allocation_counter::measure(|| {
        let end = HeadScanner::new().find_end(REQUEST).unwrap();
        let head = RequestHead::parse(&REQUEST[..end], &limits).unwrap();
        assert!(head.keep_alive);
        assert!(AcceptedCodings::parse(head.accept_encoding).in_order().count() == 4);
        decode_path(head.path, &mut path).unwrap();
        let etag = ETag::of_file(1, 2, 3, (4, 5));
        assert_eq!(head.conditions.evaluate(head.method, &etag, 0), Precondition::Proceed);
        let Ranges::Parts(parts) = select_ranges(head.range.unwrap(), 1000, 8) else {
            panic!("one range");
        };
        let mut writer = ReplyHead::begin(&mut reply, Status::PARTIAL_CONTENT);
        writer.date(&Stamp::at(784_111_777));
        writer.number("Content-Length", parts[0].len()).content_range(parts[0], 1000);
        writer.field("ETag", etag).end();
    });
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn discarding_a_body_allocates_nothing() {
    let allocations = allocation_counter::measure(|| {
        let mut reader = BodyReader::new(BodyFraming::Chunked);
        let mut rest = b"5;a=b\r\nhello\r\n0\r\nA: b\r\n\r\n".as_slice();
        while let BodyStep::Data { consumed, .. } = reader.read(rest).unwrap() {
            rest = &rest[consumed..];
        }
        assert!(reader.is_finished());
    });
    assert_eq!(allocations.count_total, 0);
}

#[test]
fn a_request_of_http2_allocates_nothing() {
    // Indexed fields, and two literals that are added to the table, one of them compressed: it keeps losing others.
    let block = b"\x82\x87\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff\x7a\x0bMozilla/5.0";
    let lines =
        b"HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 7\r\nX-Custom: a\r\n\r\n";
    let (mut text, mut decoder, limits) = (HeadText::default(), Decoder::new(), HeadLimits::default());
    let mut out = Vec::with_capacity(256);
    let mut request = || {
        let request = text.decode(&mut decoder, block, true, &limits).unwrap();
        assert_eq!(
            (request.head.host, request.head.user_agent),
            (Some("www.example.com"), Some(&b"Mozilla/5.0"[..]))
        );
        out.clear();
        assert!(encode_response_head(lines, &mut out).is_some());
    };
    (0..500).for_each(|_| request());
    let allocations = allocation_counter::measure(|| (0..500).for_each(|_| request()));
    assert_eq!(allocations.count_total, 0);
}
