//! Requests and responses: states of streams, heads, bodies, trailers.

use crate::client::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, Pair, RST_STREAM, Seen,
    WINDOW_UPDATE, WITH_PRIORITY, block, cancel, frame, get, post, request_block, settings,
};
use baton_buf::Slice;
use baton_http::h2::{ErrorCode, Priority, Violation};

fn seen(stream: u32, line: &str, ends: bool) -> Seen {
    Seen::Request { stream, line: line.into(), ends, priority: Priority::default() }
}

#[test]
fn a_request_is_answered() {
    let mut pair = Pair::open();
    assert_eq!(pair.receive(&get(1)), Ok(vec![seen(1, "GET /", true)]));
    assert_eq!(pair.server.open_streams(), 1);
    pair.answer(pair.stream(1), b"hello");
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, sent[0].flags, sent[0].stream), (HEADERS, END_HEADERS, 1));
    assert_eq!(sent[0].payload, block(&[(":status", "200")]));
    assert_eq!((sent[1].kind, sent[1].flags, &sent[1].payload[..]), (DATA, END_STREAM, &b"hello"[..]));
    assert_eq!(sent.len(), 2);
    assert!(pair.server.is_idle());
}

#[test]
fn a_stream_counts_until_it_is_finished_and_framed() {
    let mut pair = Pair::open();
    let [one, three] = pair.begin(&[get(1), get(3)])[..] else { panic!() };
    pair.server.respond(one, Slice::from(block(&[(":status", "204")])), true);
    assert!(pair.transmit()[0].ends());
    assert_eq!(pair.server.open_streams(), 2, "the owner still works for it");
    pair.server.finish(one);
    assert_eq!(pair.server.open_streams(), 1);
    pair.push(three, b"a");
    pair.server.end(three);
    pair.server.finish(three);
    assert_eq!(pair.server.open_streams(), 1, "it has bytes to send");
    assert!(pair.transmit()[0].ends());
    assert_eq!(pair.server.open_streams(), 0);
}

#[test]
fn a_body_comes_in_pieces_and_with_padding() {
    let mut pair = Pair::open();
    assert_eq!(pair.receive(&post(1, &[("content-length", "5")])), Ok(vec![seen(1, "POST /", false)]));
    let data = |data: &[u8], ends| Seen::Data { stream: 1, data: data.to_vec(), ends };
    let first = frame(DATA, PADDED, 1, b"\x02abcxx");
    assert_eq!(pair.receive(&first[..9]), Ok(vec![]), "the length of the padding is missing");
    assert_eq!(pair.receive(&first[9..12]), Ok(vec![data(b"ab", false)]));
    assert_eq!(pair.receive(&first[12..]), Ok(vec![data(b"c", false)]));
    let last = frame(DATA, PADDED | END_STREAM, 1, b"\x01dex");
    assert_eq!(pair.receive(&last), Ok(vec![data(b"de", true)]));
    assert_eq!(pair.fail(&frame(DATA, 0, 1, b"x")), "closed-stream");
}

#[test]
fn the_end_of_a_body_can_come_alone() {
    for ending in [frame(DATA, END_STREAM, 1, b""), frame(DATA, END_STREAM | PADDED, 1, b"\x02xx")] {
        let mut pair = Pair::open();
        pair.begin(&[post(1, &[])]);
        pair.receive(&frame(DATA, 0, 1, b"a")).unwrap();
        assert_eq!(pair.receive(&ending), Ok(vec![Seen::End { stream: 1 }]));
        assert_eq!(pair.receive(&get(3)), Ok(vec![seen(3, "GET /", true)]));
    }
}

#[test]
fn trailers_end_a_body() {
    let mut pair = Pair::open();
    pair.begin(&[post(1, &[("content-length", "1")])]);
    let trailers = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[("x-sum", "1")]));
    pair.receive(&frame(DATA, 0, 1, b"a")).unwrap();
    assert_eq!(pair.receive(&trailers), Ok(vec![Seen::End { stream: 1 }]));

    let broken = |input: &[u8], violation| {
        let mut pair = Pair::open();
        let [stream] = pair.begin(&[post(1, &[("content-length", "1")])])[..] else { panic!() };
        assert_eq!(pair.receive(input).unwrap().pop(), Some(Seen::Broken { stream: 1, violation }));
        let sent = pair.transmit();
        assert_eq!((sent[0].kind, sent[0].number()), (RST_STREAM, ErrorCode::Protocol as u32));
        assert_eq!(pair.server.open_streams(), 1);
        pair.server.finish(stream);
        assert_eq!(pair.server.open_streams(), 0);
    };
    broken(&trailers, Violation::ContentLength);
    broken(&frame(HEADERS, END_HEADERS, 1, &block(&[("x-sum", "1")])), Violation::TrailersMalformed);
    let pseudo = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[(":path", "/")]));
    broken(&[frame(DATA, 0, 1, b"a"), pseudo].concat(), Violation::TrailersMalformed);
}

#[test]
fn a_body_is_as_long_as_content_length_says() {
    for input in
        [frame(DATA, 0, 1, b"abcd"), frame(DATA, END_STREAM, 1, b"ab"), frame(DATA, END_STREAM, 1, b"")]
    {
        let mut pair = Pair::open();
        pair.begin(&[post(1, &[("content-length", "3")])]);
        let violation = Violation::ContentLength;
        assert_eq!(pair.receive(&input), Ok(vec![Seen::Broken { stream: 1, violation }]));
        assert_eq!(pair.receive(&frame(DATA, END_STREAM, 1, b"late")), Ok(vec![]), "sent before the reset");
        assert_eq!(pair.receive(&get(3)), Ok(vec![seen(3, "GET /", true)]));
    }
    let mut pair = Pair::open();
    let missing = request_block("POST", "/", &[("content-length", "1")]);
    let input = frame(HEADERS, END_HEADERS | END_STREAM, 1, &missing);
    assert_eq!(pair.receive(&input), Ok(vec![Seen::Malformed { stream: 1, label: "length-without-body" }]));
}

#[test]
fn malformed_and_refused_heads() {
    let mut pair = Pair::open();
    let malformed =
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &request_block("GET", "/", &[("Upper", "1")]));
    assert_eq!(
        pair.receive(&malformed),
        Ok(vec![Seen::Malformed { stream: 1, label: "field-name-malformed" }])
    );
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, sent[0].number()), (RST_STREAM, ErrorCode::Protocol as u32));
    assert_eq!(pair.server.open_streams(), 0);

    let fields = vec![("a", "b"); 101];
    let large = frame(HEADERS, END_HEADERS | END_STREAM, 3, &request_block("GET", "/", &fields));
    let label = "fields-too-many";
    assert_eq!(pair.receive(&large), Ok(vec![Seen::Refused { stream: 3, label, ends: true }]));
    pair.answer(pair.stream(3), b"too many");
    assert!(pair.transmit()[1].ends());
    assert!(pair.server.is_idle());
}

#[test]
fn a_head_comes_in_several_frames() {
    let mut pair = Pair::open();
    let whole = request_block("GET", "/long", &[]);
    let first = [&[1, 0, 0, 0, 3, 255][..], &whole[..5], b"x"].concat();
    let input = [
        frame(HEADERS, END_STREAM | PADDED | WITH_PRIORITY, 1, &first),
        frame(CONTINUATION, 0, 1, &whole[5..20]),
        frame(CONTINUATION, 0, 1, b""),
        frame(CONTINUATION, END_HEADERS, 1, &whole[20..]),
    ];
    assert_eq!(pair.receive(&input.concat()), Ok(vec![seen(1, "GET /long", true)]));
    let interrupted = [frame(HEADERS, 0, 3, &whole), get(5)].concat();
    assert_eq!(pair.fail(&interrupted), "block-interrupted");
}

#[test]
fn a_long_head_leaves_in_several_frames() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[get(1)])[..] else { panic!() };
    let long = vec![b'x'; 16_384 * 2 + 1];
    pair.server.respond(stream, Slice::from(long.clone()), true);
    pair.server.finish(stream);
    let sent = pair.transmit();
    let frames: Vec<_> = sent.iter().map(|sent| (sent.kind, sent.flags, sent.payload.len())).collect();
    assert_eq!(
        frames,
        [(HEADERS, END_STREAM, 16_384), (CONTINUATION, 0, 16_384), (CONTINUATION, END_HEADERS, 1)]
    );
    assert_eq!(sent.into_iter().flat_map(|sent| sent.payload).collect::<Vec<_>>(), long);
}

#[test]
fn a_smaller_table_of_the_client_is_acknowledged_once() {
    let mut pair = Pair::open_with(&[(1, 0)]);
    let streams = pair.begin(&[get(1), get(3)]);
    let head = block(&[(":status", "204")]);
    for stream in streams {
        pair.server.respond(stream, Slice::from(head.clone()), true);
    }
    let sent = pair.transmit();
    assert_eq!(sent[0].payload, [&b"\x20"[..], &head].concat());
    assert_eq!(sent[1].payload, head);
    pair.receive(&settings(&[(1, 4096), (1, 100)])).unwrap();
    let [stream] = pair.begin(&[get(5)])[..] else { panic!() };
    pair.server.respond(stream, Slice::from(head.clone()), true);
    assert_eq!(pair.transmit()[1].payload, head, "the table is as small as it can be");
}

#[test]
fn a_client_can_reset() {
    let mut pair = Pair::open();
    let [one, three] = pair.begin(&[get(1), post(3, &[])])[..] else { panic!() };
    pair.answer(one, b"dropped");
    assert_eq!(pair.receive(&cancel(1)), Ok(vec![Seen::Reset { stream: 1, code: ErrorCode::Cancel }]));
    assert_eq!(pair.server.open_streams(), 1, "it was finished before");
    assert_eq!(pair.receive(&cancel(3)), Ok(vec![Seen::Reset { stream: 3, code: ErrorCode::Cancel }]));
    assert_eq!(pair.server.open_streams(), 1, "it is still worked for");
    pair.answer(three, b"dropped, too");
    assert_eq!(pair.transmit(), []);
    assert!(pair.server.is_idle());
    assert_eq!(pair.receive(&[cancel(1), window_update_of(3)].concat()), Ok(vec![]), "late, but no error");
    assert_eq!(pair.fail(&frame(DATA, 0, 3, b"x")), "closed-stream");
}

fn window_update_of(stream: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1])
}

#[test]
fn the_server_can_reset() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[post(1, &[])])[..] else { panic!() };
    pair.push(stream, b"dropped");
    pair.server.reset(stream, ErrorCode::Internal);
    pair.server.reset(stream, ErrorCode::Internal);
    pair.server.finish(stream);
    let sent = pair.transmit();
    assert_eq!((sent.len(), sent[0].kind, sent[0].number()), (1, RST_STREAM, ErrorCode::Internal as u32));
    let late = [
        frame(DATA, 0, 1, b"late"),
        window_update_of(1),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&[("a", "b")])),
        cancel(1),
    ];
    assert_eq!(pair.receive(&late.concat()), Ok(vec![]));
    assert!(pair.server.is_idle());
}

#[test]
fn a_client_whose_answer_is_complete_may_stop_its_body() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[post(1, &[])])[..] else { panic!() };
    pair.receive(&frame(DATA, 0, 1, b"unread")).unwrap();
    pair.answer(stream, b"no");
    let sent = pair.transmit();
    assert!(sent[1].ends());
    assert_eq!((sent[2].kind, sent[2].number()), (RST_STREAM, ErrorCode::NoError as u32));
    assert_eq!(pair.receive(&frame(DATA, END_STREAM, 1, b"late")), Ok(vec![]));
    assert!(pair.server.is_idle());
}

/// curl 7.88 reports a reset as an error, even one without an error.
#[test]
fn the_rest_of_a_short_body_is_read_past() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[post(1, &[("content-length", "65535")])])[..] else { panic!() };
    pair.answer(stream, b"no");
    let sent = pair.transmit();
    assert!(sent.len() == 2 && sent[1].ends());
    let rest = [frame(DATA, 0, 1, &[0; 16_384]), frame(DATA, END_STREAM, 1, b"x"), get(3)].concat();
    assert_eq!(pair.receive(&rest), Ok(vec![seen(3, "GET /", true)]));
}

#[test]
fn too_many_streams_are_refused() {
    let mut pair = Pair::open();
    let requests: Vec<_> = (0..100).map(|index| get(2 * index + 1)).collect();
    let streams = pair.begin(&requests);
    assert_eq!(streams.len(), 100);
    assert_eq!(pair.receive(&get(201)), Ok(vec![]));
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, sent[0].stream), (RST_STREAM, 201));
    assert_eq!(sent[0].number(), ErrorCode::RefusedStream as u32);
    pair.receive(&cancel(1)).unwrap();
    assert_eq!(pair.receive(&get(203)), Ok(vec![]), "a reset does not end the work");
    pair.server.finish(streams[0]);
    assert_eq!(pair.receive(&get(205)), Ok(vec![seen(205, "GET /", true)]));
}

#[test]
fn a_drain_takes_what_was_on_its_way() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[get(1)])[..] else { panic!() };
    pair.server.begin_drain(5);
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, &sent[0].payload[..4]), (GOAWAY, &[0x7f, 255, 255, 255][..]));
    let [late] = pair.begin(&[get(3)])[..] else { panic!() };
    assert_eq!(pair.server.deadline_ms(), Some(1005));
    let mut pong = frame(sent[1].kind, 1, 0, &sent[1].payload);
    pong.extend_from_slice(&get(5));
    assert_eq!(pair.receive(&pong), Ok(vec![]), "requests behind the answer are ignored");
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, &sent[0].payload[..]), (GOAWAY, &[0, 0, 0, 3, 0, 0, 0, 0][..]));
    assert_eq!((sent.len(), pair.server.deadline_ms()), (1, None));
    assert_eq!(pair.receive(&[frame(DATA, 0, 5, b"a"), window_update_of(5), cancel(5)].concat()), Ok(vec![]));
    pair.answer(stream, b"a");
    pair.answer(late, b"b");
    assert!(!pair.server.is_over());
    pair.transmit();
    assert!(pair.server.is_over());
}

#[test]
fn a_drain_does_not_wait_for_ever() {
    let mut pair = Pair::open();
    pair.server.begin_drain(0);
    pair.transmit();
    assert_eq!(pair.server.handle_time(999), Ok(()));
    assert!(!pair.server.wants_to_send());
    assert_eq!(pair.server.handle_time(1000), Ok(()));
    assert_eq!(pair.transmit()[0].kind, GOAWAY);
    assert!(pair.server.is_over());
}

/// A drain whose client broke the protocol in the meantime was due again at once, and nothing was done: the loop of its
/// owner spun until the client had read why.
#[test]
fn a_drain_ends_with_an_error_of_its_client() {
    let mut pair = Pair::open();
    pair.server.begin_drain(0);
    assert_eq!(pair.fail(&frame(DATA, 0, 0, b"x")), "frame-stream");
    assert_eq!(pair.server.deadline_ms(), None);
}
