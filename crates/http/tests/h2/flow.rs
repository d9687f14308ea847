//! Flow control in both directions, and whose DATA goes first.

use crate::client::{
    DATA, END_STREAM, HEADERS, PADDED, PRIORITY_UPDATE, Pair, Seen, WINDOW_UPDATE, frame, get,
    get_with_priority, post, settings, window_update,
};
use baton_http::h2::{BODY_WINDOW, ErrorCode, Priority, Stall, Violation};

/// The order in which streams send DATA.
fn order(pair: &mut Pair) -> Vec<u32> {
    pair.transmit().iter().filter(|sent| sent.kind == DATA).map(|sent| sent.stream).collect()
}

/// The lengths of the DATA frames that leave now.
fn data_lens(pair: &mut Pair) -> Vec<usize> {
    pair.transmit().iter().filter(|sent| sent.kind == DATA).map(|sent| sent.payload.len()).collect()
}

#[test]
fn frames_are_16_kib_and_windows_are_kept() {
    let mut pair = Pair::open_with(&[(4, 40_000), (5, 1 << 20)]);
    let [one, three] = pair.begin(&[get(1), get(3)])[..] else { panic!() };
    pair.answer(one, &[b'a'; 50_000]);
    assert_eq!(data_lens(&mut pair), [16_384, 16_384, 7_232]);
    assert!(pair.server.stall(one) == Some(Stall::Stream) && pair.server.queued(one) == 10_000);
    pair.answer(three, &[b'b'; 30_000]);
    assert_eq!(data_lens(&mut pair), [16_384, 9_151], "what the connection's 65535 bytes leave");
    assert!(pair.server.stall(three) == Some(Stall::Connection) && !pair.server.wants_to_send());
    pair.receive(&window_update(1, 10_000)).unwrap();
    assert!(!pair.server.wants_to_send());
    pair.receive(&window_update(0, 10_001)).unwrap();
    assert_eq!(data_lens(&mut pair), [10_000, 1], "the earlier request first");
    pair.receive(&window_update(0, 10_000)).unwrap();
    assert_eq!(data_lens(&mut pair), [4_464]);
    assert!(pair.server.is_idle());
}

#[test]
fn a_new_initial_window_moves_those_of_open_streams() {
    let mut pair = Pair::open_with(&[(4, 10)]);
    let [one] = pair.begin(&[get(1)])[..] else { panic!() };
    pair.answer(one, &[b'a'; 100]);
    assert_eq!(data_lens(&mut pair), [10]);
    pair.receive(&settings(&[(4, 5)])).unwrap();
    pair.receive(&window_update(1, 5)).unwrap();
    assert_eq!(data_lens(&mut pair), [0_usize; 0], "the window was -5");
    pair.receive(&settings(&[(4, 500), (4, 6)])).unwrap();
    assert_eq!(data_lens(&mut pair), [1]);
    pair.receive(&settings(&[(4, 500)])).unwrap();
    assert_eq!(data_lens(&mut pair), [89]);

    let mut pair = Pair::open();
    let [one] = pair.begin(&[get(1)])[..] else { panic!() };
    pair.answer(one, &[b'a'; 70_000]);
    pair.receive(&settings(&[(4, 0)])).unwrap();
    pair.transmit_once(1);
    assert_eq!(pair.transmit_once(1).len(), 1, "the head");
    assert!(!pair.server.wants_to_send(), "the window is gone before anything was framed");
    pair.begin(&[get(3)]);
    pair.receive(&window_update(3, i32::MAX as u32)).unwrap();
    assert_eq!(pair.fail(&settings(&[(4, 1)])), "initial-window");
}

#[test]
fn a_body_that_is_consumed_gets_a_larger_window() {
    let mut pair = Pair::open();
    let [one, three] = pair.begin(&[post(1, &[]), post(3, &[("content-length", "20000")])])[..] else {
        panic!()
    };
    pair.receive(&frame(DATA, 0, 1, &[0; 10_000])).unwrap();
    assert_eq!(pair.transmit(), [], "nothing was consumed");
    pair.server.consume(one, 10_000);
    let sent = pair.transmit();
    assert_eq!((sent.len(), sent[0].kind, sent[0].stream), (1, WINDOW_UPDATE, 1));
    assert_eq!(65_535 - 10_000 + sent[0].number(), BODY_WINDOW);
    pair.receive(&frame(DATA, 0, 3, &[0; 10_000])).unwrap();
    pair.server.consume(three, 10_000);
    assert_eq!(pair.transmit(), [], "what is left of it fits into its window");
}

#[test]
fn a_window_that_grows_too_large_ends_its_stream() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[get(1)])[..] else { panic!() };
    let violation = Violation::WindowOverflow;
    let overflow = window_update(1, i32::MAX as u32);
    assert_eq!(pair.receive(&overflow), Ok(vec![Seen::Broken { stream: 1, violation }]));
    assert_eq!(pair.transmit()[0].number(), ErrorCode::FlowControl as u32);
    assert_eq!(pair.receive(&overflow), Ok(vec![]), "sent before the reset");
    pair.server.finish(stream);
    assert!(pair.server.is_idle());
}

#[test]
fn a_window_is_not_exceeded() {
    let mut pair = Pair::open();
    pair.begin(&[post(1, &[])]);
    let data = frame(DATA, 0, 1, &[0; 16_384]);
    pair.receive(&[&data[..], &data, &data, &data[..0]].concat()).unwrap();
    assert_eq!(pair.fail(&data), "window-exceeded");
}

#[test]
fn the_window_of_the_connection_is_given_back_whatever_becomes_of_streams() {
    let mut pair = Pair::open();
    let data = |stream| frame(DATA, 0, stream, &[0; 16_000]);
    let mut total = 0;
    for index in 0..400 {
        let number = 2 * index + 1;
        let [stream] = pair.begin(&[post(number, &[])])[..] else { panic!() };
        pair.receive(&data(number)).unwrap();
        match index % 4 {
            0 => drop(pair.receive(&crate::client::cancel(number)).unwrap()),
            1 => pair.server.reset(stream, ErrorCode::Internal),
            2 => pair.server.consume(stream, 16_000),
            _ => {}
        }
        if index % 4 == 1 {
            pair.receive(&data(number)).unwrap();
            total += 16_000;
        }
        pair.answer(stream, b"");
        pair.transmit();
        total += 16_000;
    }
    assert!(total > 3 * 2_097_152, "several windows");
    assert!(pair.server.is_idle());
}

/// The owner has finished, and the client neither reads the response nor ends its body.
#[test]
fn what_comes_behind_the_work_for_a_stream_is_given_back() {
    let mut pair = Pair::open_with(&[(4, 0)]);
    for index in 0..150 {
        let number = 2 * index + 1;
        let [stream] = pair.begin(&[post(number, &[])])[..] else { panic!() };
        pair.answer(stream, b"stalled");
        pair.receive(&frame(DATA, 0, number, &[0; 16_000])).unwrap();
        pair.receive(&crate::client::cancel(number)).unwrap();
    }
    assert_eq!(pair.server.open_streams(), 0);
}

#[test]
fn padding_is_given_back() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[post(1, &[])])[..] else { panic!() };
    let padded = frame(DATA, PADDED, 1, &[&[255, b'a'][..], &[0; 255]].concat());
    for _ in 0..3 * 2_097_152 / 257 {
        pair.receive(&padded).unwrap();
        pair.server.consume(stream, 1);
        pair.transmit();
    }
}

#[test]
fn urgent_responses_go_first_and_whole_ones_in_order() {
    let mut pair = Pair::open();
    let requests = [
        get(1),
        get_with_priority(3, "u=0"),
        get_with_priority(5, "u=7"),
        get(7),
        get_with_priority(9, "u=1, i"),
    ];
    for stream in pair.begin(&requests).into_iter().rev() {
        pair.answer(stream, &[b'a'; 20_000][..10_000]);
    }
    assert_eq!(order(&mut pair), [3, 9, 1, 7, 5]);
}

#[test]
fn incremental_responses_take_turns() {
    let mut pair = Pair::open_with(&[(4, 1 << 20)]);
    pair.receive(&window_update(0, 1 << 20)).unwrap();
    let requests: Vec<_> = [1, 3].map(|stream| get_with_priority(stream, "i")).into();
    for stream in pair.begin(&requests) {
        pair.answer(stream, &[b'a'; 40_000]);
    }
    assert_eq!(order(&mut pair), [1, 3, 1, 3, 1, 3]);
}

#[test]
fn a_frame_changes_a_priority_early_and_late() {
    let update = |stream: u8, value: &str| {
        frame(PRIORITY_UPDATE, 0, 0, &[&[0, 0, 0, stream], value.as_bytes()].concat())
    };
    let mut pair = Pair::open();
    let events = pair.receive(&[update(3, "u=1"), get_with_priority(3, "u=5"), get(5)].concat()).unwrap();
    let priority = Priority { urgency: 1, incremental: false };
    assert_eq!(events[0], Seen::Request { stream: 3, line: "GET /".into(), ends: true, priority });
    for number in [3, 5] {
        pair.answer(pair.stream(number), b"a");
    }
    pair.receive(&update(5, "u=0")).unwrap();
    assert_eq!(order(&mut pair), [5, 3]);
}

#[test]
fn room_bounds_a_batch_and_heads_go_first() {
    let mut pair = Pair::open();
    for stream in pair.begin(&[get(1), get(3)]) {
        pair.answer(stream, &[b'a'; 20_000]);
    }
    let kinds = |pair: &mut Pair, room| {
        pair.transmit_once(room).iter().map(|sent| (sent.kind, sent.flags & END_STREAM)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&mut pair, 1), [(HEADERS, 0)]);
    assert_eq!(kinds(&mut pair, 100), [(HEADERS, 0), (DATA, 0)]);
    assert_eq!(kinds(&mut pair, 16_400), [(DATA, END_STREAM), (DATA, 0)]);
    assert_eq!(kinds(&mut pair, 1), [(DATA, END_STREAM)]);
}

#[test]
fn an_end_behind_everything_is_a_frame_of_its_own() {
    let mut pair = Pair::open();
    let [stream] = pair.begin(&[get(1)])[..] else { panic!() };
    pair.server.respond(stream, vec![0x88].into(), false);
    pair.push(stream, b"a");
    assert_eq!(pair.transmit().len(), 2);
    pair.server.end(stream);
    pair.server.finish(stream);
    let sent = pair.transmit();
    assert_eq!((sent[0].kind, sent[0].flags, sent[0].payload.len()), (DATA, END_STREAM, 0));
    assert!(pair.server.is_idle());
}
