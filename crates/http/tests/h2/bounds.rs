//! What one client may cause. Each test goes over one bound, and says what stays below it.

use crate::client::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PING, PRIORITY, PRIORITY_UPDATE, Pair,
    SETTINGS, Seen, cancel, frame, get, post, request_block, settings, window_update,
};
use baton_http::h2::Bound;
use baton_http::h2::bounds::{
    BUDGET_MAX, BUDGET_PER_ANSWER, CONTINUATIONS_MAX, CONTROL_FRAMES_MAX, EARLY_PRIORITIES_MAX,
    SMALL_DATA_MAX, WINDOW_UPDATES_MAX,
};

/// Gives the connection as many inputs as its budget allows, and then one more.
fn spend_budget(mut pair: Pair, mut input: impl FnMut(u32) -> Vec<u8>) -> Bound {
    for count in 0..BUDGET_MAX {
        pair.receive(&input(count)).expect("within the budget");
        pair.transmit();
    }
    pair.exceed(&input(BUDGET_MAX))
}

#[test]
fn idle_frames_and_resets_share_a_budget() {
    let odd = |count: u32| 2 * count + 1;
    let malformed = |count| {
        let head = request_block("GET", "/", &[("Upper", "")]);
        frame(HEADERS, END_HEADERS | END_STREAM, odd(count), &head)
    };
    assert_eq!(spend_budget(Pair::open(), |_| frame(PING, 0, 0, &[0; 8])), Bound::Pings);
    assert_eq!(spend_budget(Pair::open(), |_| frame(PING, ACK, 0, &[0; 8])), Bound::IdleFrames);
    assert_eq!(spend_budget(Pair::open(), |_| settings(&[])), Bound::SettingsFrames);
    assert_eq!(spend_budget(Pair::open(), |_| frame(SETTINGS, ACK, 0, &[])), Bound::SettingsFrames);
    assert_eq!(spend_budget(Pair::open(), |_| frame(PRIORITY, 0, 1, &[0; 5])), Bound::PriorityFrames);
    let update = |_| frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01i");
    assert_eq!(spend_budget(Pair::open(), update), Bound::PriorityFrames);
    assert_eq!(spend_budget(Pair::open(), |_| frame(99, 0, 0, &[])), Bound::IdleFrames);
    assert_eq!(spend_budget(Pair::open(), |_| frame(GOAWAY, 0, 0, &[0; 8])), Bound::IdleFrames);
    assert_eq!(spend_budget(Pair::open(), malformed), Bound::ProvokedResets);
    let mut pair = Pair::open();
    pair.server.go_away(baton_http::h2::ErrorCode::NoError);
    pair.transmit();
    assert_eq!(spend_budget(pair, |count| get(odd(count))), Bound::IgnoredHeads);
    let mut pair = Pair::open();
    pair.begin(&[post(1, &[])]);
    assert_eq!(spend_budget(pair, |_| frame(DATA, 0, 1, &[])), Bound::EmptyFrames);
}

/// CVE-2023-44487: the client begins and resets streams. Each counts while the server works for it.
#[test]
fn rapid_resets_are_refused_and_then_end_the_connection() {
    let mut pair = Pair::open();
    let mut requests = 0;
    let mut reset = |number: u32| {
        let events = pair.receive(&[get(number), cancel(number)].concat())?;
        requests += events.iter().filter(|event| matches!(event, Seen::Request { .. })).count();
        Ok::<_, baton_http::h2::ConnectionError>(())
    };
    let error = (0..1000).find_map(|count| reset(2 * count + 1).err()).expect("the budget is empty");
    assert!(matches!(error.label(), "client-resets" | "refused-streams"));
    assert_eq!(requests, 100, "no more work than streams");
}

#[test]
fn cancelled_requests_end_a_connection_even_if_each_is_finished_at_once() {
    let mut pair = Pair::open();
    let mut reset = |number: u32| {
        let [stream] = pair.begin(&[get(number)])[..] else { panic!() };
        let outcome = pair.receive(&cancel(number));
        pair.server.finish(stream);
        outcome.err()
    };
    let (count, error) = (0..).find_map(|count| Some((count, reset(2 * count + 1)?))).unwrap();
    assert_eq!((count, error.label()), (BUDGET_MAX, "client-resets"));
}

#[test]
fn answers_earn_what_resets_cost() {
    let mut pair = Pair::open();
    for count in 0..BUDGET_MAX * 3 {
        let number = 4 * count + 1;
        let [answered, cancelled] = pair.begin(&[get(number), get(number + 2)])[..] else { panic!() };
        pair.answer(answered, b"a");
        pair.transmit();
        for _ in 1..BUDGET_PER_ANSWER {
            pair.receive(&frame(PING, 0, 0, &[0; 8])).unwrap();
        }
        pair.receive(&cancel(number + 2)).unwrap();
        pair.server.finish(cancelled);
    }
}

/// CVE-2025-8671: the client makes the server reset its streams.
#[test]
fn provoked_resets_end_a_connection() {
    let mut pair = Pair::open();
    let mut provoke = |number: u32| {
        let [stream] = pair.begin(&[post(number, &[("content-length", "1")])])[..] else { panic!() };
        let outcome = pair.receive(&frame(DATA, 0, number, b"ab"));
        pair.server.finish(stream);
        pair.transmit();
        outcome.err()
    };
    let (count, error) = (0..).find_map(|count| Some((count, provoke(2 * count + 1)?))).unwrap();
    assert_eq!((count, error.label()), (BUDGET_MAX, "provoked-resets"));
}

#[test]
fn streams_beyond_the_limit_cost() {
    let mut pair = Pair::open();
    pair.begin(&(0..100).map(|index| get(2 * index + 1)).collect::<Vec<_>>());
    assert_eq!(spend_budget(pair, |count| get(201 + 2 * count)), Bound::RefusedStreams);
}

/// The CONTINUATION flood of 2024: a block without an end.
#[test]
fn a_block_has_few_frames_and_bytes() {
    let mut pair = Pair::open();
    pair.receive(&frame(HEADERS, END_STREAM, 1, &[])).unwrap();
    for _ in 0..CONTINUATIONS_MAX {
        pair.receive(&frame(CONTINUATION, 0, 1, &[])).unwrap();
    }
    assert_eq!(pair.exceed(&frame(CONTINUATION, 0, 1, &[])), Bound::Continuations);

    let mut pair = Pair::open();
    let part = [0; 16_384];
    pair.receive(&frame(HEADERS, END_STREAM, 1, &part)).unwrap();
    for _ in 0..3 {
        pair.receive(&frame(CONTINUATION, 0, 1, &part)).unwrap();
    }
    assert_eq!(pair.exceed(&frame(CONTINUATION, 0, 1, &[0])), Bound::BlockBytes);
}

/// The bombs of 2016 and 2026: references of one byte that become long fields, and thousands of pieces of a cookie.
#[test]
fn a_small_block_cannot_become_a_large_head() {
    let value = "v".repeat(100);
    let mut bomb = request_block("GET", "/", &[]);
    bomb.extend_from_slice(&[0x40, 1, b'a', 100]);
    bomb.extend_from_slice(value.as_bytes());
    bomb.extend_from_slice(&[0x80 | 62; 10_000]);
    let mut crumbs = request_block("GET", "/", &[]);
    crumbs.extend_from_slice(&[0x40, 6]);
    crumbs.extend_from_slice(b"cookie\x00");
    crumbs.extend_from_slice(&[0x80 | 62; 10_000]);
    for block in [bomb, crumbs] {
        let mut pair = Pair::open();
        let events = pair.receive(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block)).unwrap();
        assert!(matches!(events[..], [Seen::Refused { label: "fields-too-many", .. }]), "{events:?}");
        assert_eq!(pair.receive(&get(3)).unwrap().len(), 1, "the table is still the client's");
    }
}

#[test]
fn window_updates_are_explained_by_requests_and_data() {
    let mut pair = Pair::open();
    for _ in 0..WINDOW_UPDATES_MAX {
        pair.receive(&window_update(0, 1)).unwrap();
    }
    pair.begin(&[get(1)]);
    for _ in 0..4 {
        pair.receive(&window_update(1, 1)).unwrap();
    }
    pair.answer(pair.stream(1), b"a");
    pair.transmit();
    for _ in 0..4 {
        pair.receive(&window_update(1, 1)).unwrap();
    }
    assert_eq!(pair.exceed(&window_update(1, 1)), Bound::WindowUpdates);
}

/// RUSTSEC-2026-0258: each piece costs memory beyond its byte.
#[test]
fn small_data_cost_until_they_are_consumed() {
    let byte = |number| frame(DATA, 0, number, &[0]);
    let mut pair = Pair::open();
    pair.begin(&[post(1, &[]), post(3, &[])]);
    let per_stream = SMALL_DATA_MAX / 255 / 2;
    for _ in 0..per_stream {
        pair.receive(&[byte(1), byte(3)].concat()).unwrap();
    }
    assert_eq!(pair.exceed(&byte(1)), Bound::SmallData);

    // A reset and consuming give back what they cost.
    let mut pair = Pair::open();
    let [stream, gone] = pair.begin(&[post(1, &[]), post(3, &[])])[..] else { panic!() };
    for _ in 0..per_stream {
        pair.receive(&byte(3)).unwrap();
    }
    pair.server.reset(gone, baton_http::h2::ErrorCode::Cancel);
    for _ in 0..per_stream * 2 {
        pair.receive(&byte(1)).unwrap();
    }
    pair.server.consume(stream, per_stream * 2);
    for _ in 0..per_stream * 4 {
        pair.receive(&[byte(1), byte(1)].concat()).unwrap();
        pair.server.consume(stream, 2);
    }
}

#[test]
fn a_client_reads_the_control_frames_that_it_asks_for() {
    let mut pair = Pair::open();
    let ping = frame(PING, 0, 0, &[0; 8]);
    let mut send = |count: u32| {
        pair.now_ms += 1000;
        (pair.receive(&ping).err(), count)
    };
    let (error, count) = (1..).map(&mut send).find_map(|(error, count)| Some((error?, count))).unwrap();
    assert_eq!(error.label(), "unsent-control");
    assert_eq!(count, CONTROL_FRAMES_MAX + 2, "the one before was one too many");
}

#[test]
fn few_priorities_of_streams_to_come_are_kept() {
    let mut pair = Pair::open();
    let count = u32::try_from(EARLY_PRIORITIES_MAX).unwrap() + 1;
    for index in 0..count {
        let payload = [&(2 * index + 1).to_be_bytes()[..], b"u=0"].concat();
        pair.receive(&frame(PRIORITY_UPDATE, 0, 0, &payload)).unwrap();
    }
    let urgencies: Vec<_> = (0..count)
        .flat_map(|index| pair.receive(&get(2 * index + 1)).unwrap())
        .map(|event| match event {
            Seen::Request { priority, .. } => priority.urgency,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(urgencies[0], 3, "the oldest was dropped");
    assert!(urgencies[1..].iter().all(|urgency| *urgency == 0));
}
