//! Frames that end a connection, and those that do not: preface, sizes, states, settings, PING.

use crate::client::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PRIORITY,
    PRIORITY_UPDATE, PUSH_PROMISE, Pair, RST_STREAM, SETTINGS, Seen, WINDOW_UPDATE, WITH_PRIORITY, cancel,
    frame, get, post, request_block, settings, window_update,
};
use baton_http::h2::{ErrorCode, PREFACE, Settings};

#[test]
fn violations_end_the_connection() {
    let head = request_block("GET", "/", &[]);
    let long = vec![0; 16_385];
    let cases: &[(&str, Vec<u8>)] = &[
        ("frame-too-long", frame(DATA, 0, 1, &long)),
        ("frame-too-long", frame(HEADERS, 0, 5, &long)),
        ("frame-length", frame(PING, 0, 0, b"1234567")),
        ("frame-length", frame(RST_STREAM, 0, 1, b"123")),
        ("frame-length", frame(WINDOW_UPDATE, 0, 0, b"12345")),
        ("frame-length", frame(SETTINGS, 0, 0, b"12345")),
        ("frame-length", frame(SETTINGS, ACK, 0, b"123456")),
        ("frame-length", frame(PRIORITY, 0, 1, b"1234")),
        ("frame-length", frame(GOAWAY, 0, 0, b"1234567")),
        ("frame-length", frame(PRIORITY_UPDATE, 0, 0, b"123")),
        ("frame-length", frame(DATA, PADDED, 3, b"")),
        ("frame-length", frame(HEADERS, PADDED, 5, b"")),
        ("frame-length", frame(HEADERS, WITH_PRIORITY, 5, b"1234")),
        ("padding", frame(DATA, PADDED, 3, b"\x05pads")),
        ("padding", frame(HEADERS, PADDED, 5, b"\x05pads")),
        ("frame-stream", frame(DATA, 0, 0, b"")),
        ("frame-stream", frame(HEADERS, END_HEADERS, 0, &head)),
        ("frame-stream", frame(PRIORITY, 0, 0, b"12345")),
        ("frame-stream", cancel(0)),
        ("frame-stream", frame(SETTINGS, 0, 1, b"")),
        ("frame-stream", frame(PING, 0, 1, b"12345678")),
        ("frame-stream", frame(GOAWAY, 0, 1, b"12345678")),
        ("frame-stream", frame(PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1")),
        ("frame-stream", frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1")),
        ("stream-number", get(6)),
        ("stream-number", [get(7), get(5)].concat()),
        ("idle-stream", frame(DATA, 0, 5, b"")),
        ("idle-stream", window_update(5, 1)),
        ("idle-stream", cancel(5)),
        ("closed-stream", frame(DATA, 0, 1, b"")),
        ("closed-stream", get(1)),
        ("block-interrupted", frame(CONTINUATION, END_HEADERS, 1, b"")),
        ("block-interrupted", [frame(HEADERS, 0, 5, &head), frame(CONTINUATION, 0, 7, b"")].concat()),
        ("block-interrupted", [frame(HEADERS, 0, 5, &head), frame(99, 0, 5, b"")].concat()),
        ("push", frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\x02")),
        ("setting-value", settings(&[(2, 2)])),
        ("setting-value", settings(&[(5, 16_383)])),
        ("setting-value", settings(&[(5, 1 << 24)])),
        ("setting-value", settings(&[(9, 2)])),
        ("initial-window", settings(&[(4, 1 << 31)])),
        ("window-increment", window_update(0, 0)),
        ("window-increment", window_update(3, 0)),
        ("window-overflow", window_update(0, i32::MAX as u32)),
        ("block-compression", frame(HEADERS, END_HEADERS | END_STREAM, 5, b"\x80")),
    ];
    for (label, input) in cases {
        let mut pair = Pair::open();
        // Stream 1 is half closed by the client, stream 3 is open.
        pair.begin(&[get(1), post(3, &[])]);
        assert_eq!(pair.fail(input), *label, "{input:02x?}");
        assert_eq!(pair.receive(&get(9)), Ok(vec![]), "nothing is read any more");
    }
}

#[test]
fn a_connection_begins_with_preface_and_settings() {
    let whole = [PREFACE, &settings(&[]), &get(1)].concat();
    for (input, label) in [
        (b"GET / HTTP/1.1\r\n".to_vec(), "preface"),
        ([PREFACE, &get(1)].concat(), "first-frame"),
        ([PREFACE, &frame(SETTINGS, ACK, 0, b"")].concat(), "first-frame"),
    ] {
        assert_eq!(Pair::silent(&Settings::default()).fail(&input), label);
    }
    let mut pair = Pair::silent(&Settings::default());
    let mut events = Vec::new();
    for byte in whole {
        events.append(&mut pair.receive(&[byte]).unwrap());
    }
    assert_eq!(events.len(), 1, "byte by byte");
}

#[test]
fn settings_must_be_acknowledged() {
    let mut pair = Pair::silent(&Settings::default());
    pair.receive(&[PREFACE, &settings(&[])].concat()).unwrap();
    assert_eq!(pair.server.deadline_ms(), Some(10_000));
    assert_eq!(pair.server.handle_time(9_999), Ok(()));
    let error = pair.server.handle_time(10_000).unwrap_err();
    assert_eq!((error.code, error.label()), (ErrorCode::SettingsTimeout, "settings-unacknowledged"));
    assert_eq!(pair.transmit().pop().unwrap().kind, GOAWAY);

    let mut pair = Pair::open();
    assert_eq!((pair.server.deadline_ms(), pair.server.handle_time(u64::MAX)), (None, Ok(())));
}

#[test]
fn a_ping_is_answered() {
    let mut pair = Pair::open();
    pair.receive(&frame(PING, 0, 0, b"12345678")).unwrap();
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, sent[0].flags, &sent[0].payload[..]), (PING, ACK, &b"12345678"[..]));
}

#[test]
fn what_is_unknown_is_ignored() {
    let mut pair = Pair::open();
    let unknown = [frame(99, 255, 7, b"x"), settings(&[(0x99, 1), (3, 0), (6, 1)]), get(1)];
    assert_eq!(pair.receive(&unknown.concat()).unwrap().len(), 1);
}

#[test]
fn a_goaway_of_the_client_is_news() {
    let mut pair = Pair::open();
    let code = ErrorCode::EnhanceYourCalm;
    let goaway = frame(GOAWAY, 0, 0, b"\0\0\0\0\0\0\0\x0bwhy");
    assert_eq!(pair.receive(&goaway), Ok(vec![Seen::GoAway { code }]));
}

#[test]
fn extended_connect_needs_a_setting() {
    let fields = [
        (":method", "CONNECT"),
        (":scheme", "http"),
        (":authority", "h"),
        (":path", "/"),
        (":protocol", "p"),
    ];
    let input = frame(HEADERS, END_HEADERS, 1, &crate::client::block(&fields));
    let mut pair = Pair::open();
    assert!(matches!(pair.receive(&input).unwrap()[..], [Seen::Malformed { stream: 1, .. }]));

    let mut pair = Pair::silent(&Settings { connect_protocol: true, ..Settings::default() });
    let events = pair.receive(&[PREFACE, &settings(&[]), &input].concat()).unwrap();
    assert!(matches!(events[..], [Seen::Request { stream: 1, ends: false, .. }]));
    let setting = [0, 8, 0, 0, 0, 1];
    assert!(pair.transmit()[0].payload.as_chunks::<6>().0.contains(&setting));
}
