//! The answer comes through memory that the application shares with the server.

use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use baton_fcgi::offer::Ring;
use baton_upstream::{Application, TransportChoice};

use crate::common::app::{App, Offered, Peer, ReceivedRequest, shared};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get, post, space};

const REGION_BYTES: usize = 64 << 10;

fn sharing(app: &App) -> Arc<Application> {
    application(app, |settings| {
        settings.transport = TransportChoice::Shm;
        settings.region_bytes = REGION_BYTES;
        settings.spool_memory_bytes = 32 << 10;
        settings.connections_max = 1;
    })
}

fn ring_of(asked: &mut ReceivedRequest) -> Ring {
    match std::mem::take(&mut asked.offer) {
        Offered::Shm(ring) => ring,
        other => panic!("no region came: {other:?}"),
    }
}

/// Bytes that differ at every offset and for every seed.
fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 + seed * 13 + at / 251) as u8).collect()
}

/// Answers with as many bytes as the body of the request says, in a pattern of the request's number.
fn answer(peer: &mut Peer, number: usize) -> Option<()> {
    let mut asked = peer.request()?;
    let mut ring = ring_of(&mut asked);
    let len = String::from_utf8(asked.stdin.clone()).unwrap().parse().unwrap_or(0);
    let output = [&b"X-A: b\n\n"[..], &pattern(number, len)].concat();
    (peer.share(&asked, &mut ring, &output) && peer.end(&asked)).then_some(())
}

fn application_of_one() -> App {
    App::start(|peer| {
        let mut number = 0;
        while answer(peer, number).is_some() {
            number += 1;
        }
    })
}

fn asking(application: &Arc<Application>, len: usize) -> baton_upstream::Request {
    post(application, len.to_string().as_bytes())
}

/// Responses arrive unchanged on one connection, from small ones to several times the size of the region.
#[test]
fn responses_of_any_size_arrive_through_the_region() {
    let app = application_of_one();
    let application = sharing(&app);
    let mut driver = Driver::new();
    let sizes = [1, 0, 1000, REGION_BYTES - 8, REGION_BYTES, 5 * REGION_BYTES + 77, 3, 40 * REGION_BYTES, 17];
    for (number, len) in sizes.into_iter().enumerate() {
        let got = driver.ask(number as u64, asking(&application, len));
        assert_eq!(got.ending, Some(Ending::Complete));
        assert!(got.body == pattern(number, len), "{len} bytes");
        assert!(got.shared_bytes + got.file_bytes >= len as u64, "it came through the region");
    }
    assert_eq!(app.accepted(), 1, "one region served them all");
}

/// A waiting request gets the connection when the response before it has been sent, so that no part of that response is
/// copied out of the region.
#[test]
fn a_request_that_waits_spoils_nothing() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            let ring = ring_of(&mut asked);
            peer.share_and_end(&asked, &ring, &[&b"X-A: b\n\n"[..], &pattern(0, REGION_BYTES - 8)].concat());
        }
    });
    let application = sharing(&app);
    let mut driver = Driver::new();
    for id in 0..3 {
        driver.begin(id, get(&application));
    }
    for id in 0..3 {
        let got = driver.finish(id);
        assert_eq!((got.shared_bytes as usize, got.file_bytes), (REGION_BYTES - 8, 0), "request {id}");
        assert!(got.body == pattern(0, REGION_BYTES - 8));
    }
}

/// A head in pieces, with the body right behind it, alternating between region and connection.
#[test]
fn region_and_records_are_mixed() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            let mut ring = ring_of(&mut asked);
            peer.share(&asked, &mut ring, b"X-A: one");
            peer.stdout(&asked, b" two\n");
            peer.share(&asked, &mut ring, b"\nthree ");
            peer.stdout(&asked, b"four ");
            peer.share(&asked, &mut ring, b"five");
            peer.end(&asked);
        }
    });
    let application = sharing(&app);
    let mut driver = Driver::new();
    for id in 0..100 {
        let got = driver.ask(id, get(&application));
        assert_eq!(got.body, b"three four five");
        assert_eq!(got.head.as_ref().unwrap().field("X-A"), Some(&b"one two"[..]));
    }
}

/// Goal: stalled clients hold no application, and get their whole answers although the region is reused. Method: the answers
/// of twenty such clients are many times as large as the region. A fast client follows each. Then the twenty take their
/// answers.
#[test]
fn slow_clients_hold_neither_application_nor_region() {
    let app = application_of_one();
    let application = sharing(&app);
    let mut driver = Driver::new();
    let len = |number: usize| if number.is_multiple_of(3) { 3 * REGION_BYTES } else { 20_000 };
    for number in (0..40).step_by(2) {
        driver.set_slow(number as u64, true);
        driver.begin(number as u64, asking(&application, len(number)));
        let got = driver.ask(number as u64 + 1, asking(&application, len(number + 1)));
        assert!(
            got.body == pattern(number + 1, len(number + 1)),
            "{number}: {:?} {}",
            got.ending,
            got.body.len()
        );
    }
    assert_eq!(app.accepted(), 1);
    let mut spooled = 0;
    for number in (0..40).step_by(2) {
        driver.set_slow(number as u64, false);
        let got = driver.finish(number as u64);
        assert_eq!(got.ending, Some(Ending::Complete));
        assert!(got.body == pattern(number, len(number)), "{number}: {} bytes", got.body.len());
        spooled += got.file_bytes;
    }
    assert!(spooled > 0, "memory is bounded: some of it was in files");
}

/// The loans of a client that has left are free for the next one.
#[test]
fn who_goes_away_gives_the_region_back() {
    let app = App::with_processes(2, |peer| {
        let mut number = 0;
        while answer(peer, number).is_some() {
            number += 1;
        }
    });
    let application = sharing(&app);
    let mut driver = Driver::new();
    for id in 0..10 {
        driver.set_slow(id, true);
        driver.begin(id, asking(&application, 60_000));
        driver.run_until(|driver| driver.report("busy") == 0);
        driver.abandon(id);
    }
    assert_eq!(app.accepted(), 1, "their answers were complete, so that the connection is kept");
    assert!(driver.ask(99, asking(&application, 60_000)).body == pattern(10, 60_000));
}

/// Goal: what an application changes in its region behind the announcement reaches only its own client, and the
/// head that was checked is the head that is used.
#[test]
fn a_head_is_looked_at_once() {
    let app = App::start(|peer| {
        while let Some(mut asked) = peer.request() {
            let mut ring = ring_of(&mut asked);
            let at = u64::from(ring.at);
            peer.share(&asked, &mut ring, b"X-A: good\n\nbody");
            peer.region().write_all_at(b"X-B: bad!", at).unwrap();
            peer.end(&asked);
        }
    });
    let application = sharing(&app);
    let mut driver = Driver::new();
    for id in 0..50 {
        let got = driver.ask(id, get(&application));
        let head = got.head.as_ref().unwrap();
        assert_eq!(head.fields().count(), 1);
        assert!(head.fields().all(|field| [(&b"X-A"[..], &b"good"[..]), (b"X-B", b"bad!")].contains(&field)));
    }
}

/// The descriptor of the region goes with the first offer of a connection only. Once the client has taken its answer, the
/// next request reuses the region from its beginning.
#[test]
fn the_region_travels_once() {
    let seen = shared::<Vec<(u32, u32)>>();
    let told = Arc::clone(&seen);
    let app = App::start(move |peer| {
        while let Some(mut asked) = peer.request() {
            let ring = ring_of(&mut asked);
            told.lock().unwrap().push((ring.at, ring.free));
            peer.share_and_end(&asked, &ring, b"X-A: b\n\n12345678");
        }
    });
    let application = sharing(&app);
    let mut driver = Driver::new();
    for id in 0..3 {
        driver.ask(id, get(&application));
    }
    let all = REGION_BYTES as u32;
    assert_eq!(*seen.lock().unwrap(), [(0, all); 3]);
}

/// Without room in files for the bytes that slow clients leave in the region, the application waits, and nothing is lost.
#[test]
fn without_room_in_files_the_application_waits() {
    const LEN: usize = 400_000;
    let app = application_of_one();
    let (space, used) = space(500_000);
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::Shm;
        settings.region_bytes = 128 << 10;
        settings.spool_memory_bytes = 32 << 10;
        settings.connections_max = 1;
        settings.queue_timeout_ms = 60_000;
        settings.temporary.space = space;
    });
    let mut driver = Driver::new();
    for id in 0..4 {
        driver.set_slow(id, true);
        driver.begin(id, asking(&application, LEN));
    }
    driver.run_for(std::time::Duration::from_millis(300));
    assert_eq!(driver.report("busy"), 1);
    for id in 0..4 {
        assert!(used.load(Relaxed) <= 500_000);
        driver.set_slow(id, false);
        let got = driver.finish(id);
        assert_eq!(got.ending, Some(Ending::Complete));
        assert!(got.body == pattern(id as usize, LEN));
    }
    drop(driver);
    assert_eq!(used.load(Relaxed), 0);
}
