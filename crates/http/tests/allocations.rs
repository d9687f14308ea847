//! Goal: a request for a file costs no heap allocation here, once the buffers that are written to have grown.
//! Method: the steps of such a request under a counting allocator.

use baton_buf::{Aggregate, Buffer, Slice};
use baton_http::h2::hpack::Decoder;
use baton_http::h2::{Connection, Event, HeadText, PREFACE, Packer, Settings, encode_response_head};
use baton_http::origin::{
    ForwardedBody, ForwardedClient, ForwardedRequest, Forwarding, HostRule, PathRule, RequestKind,
    ResponsePart, ResponseReader,
};
use baton_http::{
    AcceptedCodings, BodyFraming, BodyReader, BodyStep, FieldRules, FileState, HeadLimits, HeadScanner,
    Precondition, Ranges, ReplyHead, RequestHead, Stamp, Status, decode_path, select_ranges,
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
        let etag = FileState { size: 3, modified: (1 << 30, 5), changed: (0, 0), inode: 2 }.etag();
        assert_eq!(head.conditions.evaluate(head.method, &etag, Some(0)), Precondition::Proceed);
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

/// A request goes on and is answered, on a connection that persists.
#[test]
fn an_exchange_with_an_origin_allocates_nothing() {
    const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nServer: origin\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
        Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nTransfer-Encoding: chunked\r\n\r\n\
        5\r\nhello\r\n0\r\n\r\n";
    let forwarding = Forwarding {
        host: HostRule::Client,
        authority: "origin".into(),
        path: PathRule::default(),
        pseudonym: "baton".into(),
        rules: FieldRules::default(),
    };
    let limits = HeadLimits::default();
    let mut out = Vec::with_capacity(1024);
    let mut reader = ResponseReader::new(4096);
    let mut spare = Vec::with_capacity(1024);
    let allocations = allocation_counter::measure(|| {
        let head = RequestHead::parse(REQUEST, &limits).unwrap();
        let client =
            ForwardedClient { address: Some([192, 0, 2, 1].into()), is_https: true, is_trusted: false };
        let request = ForwardedRequest {
            head: &head,
            claims: &head,
            client,
            body: ForwardedBody::None,
            awaits_continue: false,
            keeps: true,
            upgrade: None,
            websocket_key: None,
            variables: &(),
        };
        for _ in 0..2 {
            out.clear();
            forwarding.push_head(&mut out, &request).unwrap();
            reader.begin(RequestKind::Usual, std::mem::take(&mut spare));
            let mut rest = RESPONSE;
            loop {
                let (count, part) = reader.read(rest).unwrap();
                rest = &rest[count..];
                match part {
                    ResponsePart::Head(head) => spare = head.into_buffer(),
                    ResponsePart::End { reusable } => break assert!(reusable),
                    _ => {}
                }
            }
        }
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

/// Twenty streams at a time: heads and small bodies leave packed, larger ones as slices.
#[test]
fn streams_of_http2_allocate_nothing() {
    let limits = HeadLimits::default();
    let (mut text, mut packer, mut out) = (HeadText::default(), Packer::new(), Aggregate::new());
    let mut connection = Connection::new(&Settings::default(), 0);
    let body = Buffer::new(vec![b'a'; 20_000]);
    let head = Slice::from(vec![0x88]);
    let mut input = [PREFACE, b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\x01\0\0"].concat();
    let mut next = 1u32;
    let mut allocations = 0;
    for _ in 0..8 {
        for _ in 0..20 {
            input.extend_from_slice(b"\0\0\x06\x01\x05");
            input.extend_from_slice(&next.to_be_bytes());
            input.extend_from_slice(b"\x82\x87\x84\x01\x01h");
            next += 2;
        }
        input.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0\0\x08\0\0");
        let mut bodies: Vec<_> = (0..20)
            .map(|index| {
                let mut aggregate = Aggregate::new();
                aggregate.push(body.slice(0, 1000 * (index + 1)));
                aggregate
            })
            .collect();
        allocations = allocation_counter::measure(|| {
            let mut read = 0;
            loop {
                let (count, event) = connection.receive(&input[read..], &mut text, &limits, 0).unwrap();
                read += count;
                match event {
                    Some(Event::Request { stream, .. }) => {
                        connection.respond(stream, head.clone(), false);
                        connection.push(stream, bodies.pop().unwrap());
                        connection.end(stream);
                        connection.finish(stream);
                    }
                    Some(event) => panic!("{event:?}"),
                    None if count == 0 => break,
                    None => {}
                }
            }
            while connection.wants_to_send() {
                connection.poll_transmit(&mut out, 65_536, &mut packer, &mut |_| (), &mut |_, _| true);
            }
            out.clear();
        })
        .count_total;
        input.clear();
        assert!(connection.is_idle());
    }
    assert_eq!(allocations, 0);
    let released = allocation_counter::measure(|| connection.release_memory()).bytes_current;
    assert!(released < -20 * 100, "the places of twenty streams");
    let size = size_of::<Connection>() as i64;
    assert!(size < 1024, "{size} bytes for a connection that rests");
}
