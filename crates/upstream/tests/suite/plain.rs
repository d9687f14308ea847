//! The plain transport: requests and answers of all shapes.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use baton_buf::{Aggregate, FileSlice};
use baton_upstream::{Request, TransportChoice};

use crate::common::app::App;
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get, post, space};

const HELLO: &[u8] = b"Content-Type: text/plain\r\n\r\nhello";

#[test]
fn a_request_is_answered() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            assert!(asked.params.contains(&(b"SCRIPT_NAME".to_vec(), b"/app".to_vec())));
            assert!(asked.stdin.is_empty());
            peer.answer(&asked, b"Status: 404 Gone fishing\nX-Test: yes\n\nnot here");
        }
    });
    let mut driver = Driver::new();
    let got = driver.ask(1, get(&application(&app, |_| {})));
    let head = got.head.as_ref().unwrap();
    assert_eq!((head.status().code(), head.reason()), (404, &b"Gone fishing"[..]));
    assert_eq!(head.field("X-Test"), Some(&b"yes"[..]));
    assert_eq!(got.body, b"not here");
    assert_eq!(got.ending, Some(Ending::Complete));
}

#[test]
fn connections_are_kept_and_used_again() {
    let app = App::answering(HELLO);
    let application = application(&app, |settings| {
        (settings.transport, settings.idle_timeout_ms) = (TransportChoice::Plain, 100)
    });
    let mut driver = Driver::new();
    for id in 0..20 {
        assert_eq!(driver.ask(id, get(&application)).body, b"hello");
    }
    assert_eq!(app.accepted(), 1);
    assert_eq!(driver.report("idle"), 1);
    driver.run_until(|driver| driver.report("connections") == 0);
}

#[test]
fn bodies_of_any_size_arrive() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            let output =
                [b"X-Length: ", asked.stdin.len().to_string().as_bytes(), b"\n\n", &asked.stdin].concat();
            peer.answer(&asked, &output);
        }
    });
    let application = application(&app, |_| {});
    let mut driver = Driver::new();
    for (id, len) in [1, 16_384, 16_385, 65_535, 65_536, 3_000_000].into_iter().enumerate() {
        let body: Vec<u8> = (0..len).map(|at: usize| (at * 31 % 251) as u8).collect();
        let got = driver.ask(id as u64, post(&application, &body));
        assert_eq!(got.ending, Some(Ending::Complete));
        assert!(got.body == body, "{len} bytes came back as {}", got.body.len());
    }
}

/// A body that lies in a file is sent from there, in records.
#[test]
fn bodies_in_files_arrive() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            peer.answer(&asked, &[b"X-A: b\n\n", &asked.stdin[..]].concat());
        }
    });
    let application = application(&app, |_| {});
    let bytes: Vec<u8> = (0..500_000).map(|at: usize| (at % 253) as u8).collect();
    let path = app.folder().join("body");
    std::fs::write(&path, &bytes).unwrap();
    let file = std::sync::Arc::new(std::os::fd::OwnedFd::from(std::fs::File::open(path).unwrap()).into());
    let mut body = Aggregate::new();
    body.push(baton_buf::Buffer::new(b"start".to_vec()));
    body.push(FileSlice::new(file, 100, 400_000));
    let mut driver = Driver::new();
    let got = driver.ask(1, Request { body, ..get(&application) });
    assert!(got.body == [b"start", &bytes[100..400_100]].concat());
}

/// An application may answer before it has read the whole body, or without reading it.
#[test]
fn answers_may_come_before_the_body_was_read() {
    let app = App::start(|peer| {
        // Both the answer and the unread body are larger than the socket's buffer.
        if let Some(asked) = peer.head() {
            peer.answer(&asked, &[&b"X-A: b\n\n"[..], &vec![b'x'; 2_000_000]].concat());
            // If it read on, it could get the whole body, and the connection another request.
            peer.wait_for_close();
        }
    });
    let application = application(&app, |settings| settings.transport = TransportChoice::Plain);
    let mut driver = Driver::new();
    for id in 0..3 {
        let got = driver.ask(id, post(&application, &vec![b'y'; 5_000_000]));
        assert_eq!((got.ending, got.body.len()), (Some(Ending::Complete), 2_000_000));
    }
    // There are more if a connection broke before its answer and the request was repeated.
    assert!(app.accepted() >= 3, "what was not read would be taken for the next request");
}

/// Goal: a stalled client does not hold an application. Method: one process answers 40 of them.
#[test]
fn slow_clients_hold_no_application() {
    const LEN: usize = 300_000;
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            let body: Vec<u8> = (0..LEN).map(|at| (at % 241) as u8).collect();
            peer.answer(&asked, &[b"X-A: b\n\n", &body[..]].concat());
        }
    });
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.connections_max = 1;
        settings.spool_memory_bytes = 64 << 10;
    });
    let mut driver = Driver::new();
    for id in 0..40 {
        driver.set_slow(id, true);
        driver.begin(id, get(&application));
    }
    driver.run_until(|driver| driver.report("busy") == 0);
    for id in 0..40 {
        driver.set_slow(id, false);
        let got = driver.finish(id);
        assert_eq!((got.ending, got.body.len()), (Some(Ending::Complete), LEN));
        assert!(got.body.iter().enumerate().all(|(at, byte)| *byte == (at % 241) as u8));
        assert!(got.file_bytes > 100_000, "memory is bounded");
    }
}

/// Beyond the bound of the file the application waits for its client without a timeout, and goes on with it.
#[test]
fn files_are_bounded_too() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            peer.answer(&asked, &[&b"X-A: b\n\n"[..], &vec![b'x'; 3_000_000]].concat());
        }
    });
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.timeout_ms = 500;
        settings.spool_memory_bytes = 64 << 10;
        settings.spool_file_bytes_max = 200 << 10;
    });
    let mut driver = Driver::new();
    driver.set_slow(1, true);
    driver.begin(1, get(&application));
    driver.run_for(std::time::Duration::from_millis(1_200));
    assert_eq!(driver.report("busy"), 1, "it waits, and does not time out");
    driver.set_slow(1, false);
    let got = driver.finish(1);
    assert_eq!((got.ending, got.body.len()), (Some(Ending::Complete), 3_000_000));
}

/// Goal: many stalled clients do not fill the disk, and lose nothing. Method: their responses are six times as long as what
/// all files may take.
#[test]
fn all_files_together_are_bounded() {
    const LEN: usize = 300_000;
    const BYTES_MAX: u64 = 1 << 20;
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            peer.answer(&asked, &[&b"X-A: b\n\n"[..], &vec![b'x'; LEN]].concat());
        }
    });
    let (space, used) = space(BYTES_MAX);
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.connections_max = 1;
        settings.timeout_ms = 500;
        settings.queue_timeout_ms = 60_000;
        settings.spool_memory_bytes = 64 << 10;
        settings.temporary.space = space;
    });
    let mut driver = Driver::new();
    for id in 0..20 {
        driver.set_slow(id, true);
        driver.begin(id, get(&application));
    }
    let is_full =
        |driver: &mut Driver| driver.report("busy") == 1 && used.load(Relaxed) + LEN as u64 > BYTES_MAX;
    driver.run_until(is_full);
    driver.run_for(std::time::Duration::from_millis(1_200));
    assert!(is_full(&mut driver), "the application waits for its clients, and does not time out");
    // A busy machine may need longer for what follows than the application's time.
    driver.stop_clock(true);
    for id in 0..20 {
        driver.set_slow(id, false);
        let got = driver.finish(id);
        assert_eq!((got.ending, got.body.len()), (Some(Ending::Complete), LEN));
        assert!(used.load(Relaxed) <= BYTES_MAX);
    }
    drop(driver);
    assert_eq!(used.load(Relaxed), 0);
}

/// A response that cannot be written to a file does not fail.
#[test]
fn without_a_folder_the_application_waits() {
    let app = App::start(|peer| {
        while let Some(asked) = peer.request() {
            peer.answer(&asked, &[&b"X-A: b\n\n"[..], &vec![b'x'; 300_000]].concat());
        }
    });
    let application = application(&app, |settings| {
        settings.transport = TransportChoice::Plain;
        settings.spool_memory_bytes = 64 << 10;
        settings.temporary.folder = Path::new("/nonexistent").into();
    });
    let mut driver = Driver::new();
    driver.set_slow(1, true);
    driver.begin(1, get(&application));
    driver.run_for(std::time::Duration::from_millis(100));
    driver.set_slow(1, false);
    let got = driver.finish(1);
    assert_eq!((got.ending, got.body.len()), (Some(Ending::Complete), 300_000));
}
