//! Bodies that an application looks at where the server has them: in a pool, or in a file.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use baton_buf::{Aggregate, Buffer, Piece};
use baton_fcgi::application::{push_freed, push_takes_bodies};
use baton_fcgi::{Broken, RegionSlice};
use baton_pool::{CHUNK_BYTES, Writable};
use baton_upstream::{
    Application, FailureReason, Request, Settings, StreamedBodies, TemporaryFile, TransportChoice,
};
use rustix::io::Errno;

use crate::common::app::{App, Event, Peer, ReceivedRequest};
use crate::common::driver::{Driver, Ending};
use crate::common::{application, get, post, space, streamed};

/// An application that says to its first request that it takes references, and treats all others by a script.
fn taking(script: impl Fn(&mut Peer, ReceivedRequest) -> bool + Send + Sync + 'static) -> App {
    App::with_processes(2, move |peer| {
        let Some(first) = peer.request() else { return };
        let mut records = Vec::new();
        push_takes_bodies(&mut records, first.id);
        peer.write(&records);
        peer.answer_at_once(&first, b"X-A: b\n\n");
        while let Some(asked) = peer.head() {
            if !script(peer, asked) {
                return;
            }
        }
    })
}

/// A driver whose application has said so.
fn told(app: &App, change: impl FnOnce(&mut Settings)) -> (Driver, Arc<Application>) {
    let application = application(app, |settings| {
        settings.transport = TransportChoice::Auto;
        change(settings);
    });
    let mut driver = Driver::new();
    assert!(application.chunk().is_none(), "no process has asked for it");
    driver.ask(1, get(&application));
    assert!(application.chunk().is_some());
    (driver, application)
}

/// Bytes that differ, in chunks of the application's pool.
fn in_chunks(application: &Application, bytes: &[u8]) -> Aggregate {
    let mut body = Aggregate::new();
    for part in bytes.chunks(CHUNK_BYTES) {
        let mut chunk = application.chunk().expect("a free chunk");
        chunk[..part.len()].copy_from_slice(part);
        body.push(Buffer::from(chunk).slice(0, part.len()));
    }
    body
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

fn with_body(application: &Arc<Application>, body: Aggregate) -> Request {
    Request { body, ..post(application, b"") }
}

/// All chunks are free.
fn assert_none_in_use(application: &Application) {
    let all: Vec<_> = std::iter::from_fn(|| application.chunk()).collect();
    assert_eq!(all.len(), 128);
}

/// Reads a body by reference, and what of it came as bytes.
fn read(peer: &mut Peer, mut with: impl FnMut(&mut Peer, &RegionSlice)) -> Option<(Vec<u8>, usize)> {
    let (mut body, mut sent) = (Vec::new(), 0);
    loop {
        match peer.event()? {
            Event::Stdin(part) => {
                sent += part.len();
                body.extend(part);
            }
            Event::Slices(slices) => {
                for slice in slices {
                    body.extend(read_at(peer.pool.as_ref()?, slice.offset.into(), slice.len as usize));
                    with(peer, &slice);
                }
            }
            Event::File(range) => {
                body.extend(read_at(peer.body_file.as_ref()?, range.offset, range.len as usize));
            }
            Event::StdinEnd => return Some((body, sent)),
            other => panic!("{other:?}"),
        }
    }
}

fn read_at(file: &File, offset: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    file.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

/// Goal: a body in chunks crosses the socket as places alone, the kernel refuses to let the application change it, and
/// the chunks are free behind the answer. Method: a body that begins in memory of its own.
#[test]
fn a_body_in_chunks_is_lent_and_cannot_be_changed() {
    let app = taking(|peer, asked| {
        let refused = |peer: &mut Peer, slice: &RegionSlice| {
            let pool = peer.pool.as_ref().unwrap();
            assert!(pool.write_at(b"x", slice.offset.into()).is_err());
            assert_eq!(Writable::map(pool, CHUNK_BYTES).unwrap_err(), Errno::PERM);
        };
        let (body, sent) = read(peer, refused).unwrap();
        peer.answer(&asked, &[format!("X-Sent: {sent}\n\n").as_bytes(), &body].concat())
    });
    let (mut driver, application) = told(&app, |_| {});
    let expected = bytes(200_000);
    for id in 2..5 {
        let mut body = Aggregate::new();
        body.push(Buffer::new(expected[..1000].to_vec()));
        body.append(in_chunks(&application, &expected[1000..]));
        let got = driver.ask(id, with_body(&application, body));
        assert!(got.body == expected && got.ending == Some(Ending::Complete));
        assert_eq!(got.head.as_ref().unwrap().field("X-Sent"), Some(&b"1000"[..]));
        assert_none_in_use(&application);
    }
    assert_eq!(driver.report("connections_opened"), 1);
}

/// Goal: a process that has not said that it takes references gets bytes, whatever another one has said.
#[test]
fn another_process_gets_bytes() {
    let app = App::with_processes(2, |peer| {
        while let Some(asked) = peer.head() {
            let mut records = Vec::new();
            if peer.index == 0 {
                push_takes_bodies(&mut records, asked.id);
                peer.write(&records);
            }
            let Some((body, sent)) = read(peer, |_, _| {}) else { return };
            assert_eq!(sent, body.len(), "on the first request of a connection");
            peer.answer(&asked, &[b"X-A: b\n\n", &body[..]].concat());
        }
    });
    let (mut driver, application) = told(&app, |settings| settings.keep_connections = false);
    let expected = bytes(100_000);
    let body = in_chunks(&application, &expected);
    assert!(driver.ask(2, with_body(&application, body)).body == expected);
    assert_none_in_use(&application);
}

/// Goal: a process that says in the middle of its first body that it takes references gets the rest so.
#[test]
fn a_body_goes_on_by_reference() {
    let (said, hear) = mpsc::channel();
    let app = App::with_processes(2, move |peer| {
        while let Some(asked) = peer.head() {
            let mut records = Vec::new();
            push_takes_bodies(&mut records, asked.id);
            peer.write(&records);
            said.send(()).unwrap();
            let Some((body, sent)) = read(peer, |_, _| {}) else { return };
            peer.answer(&asked, &[format!("X-Sent: {sent}\n\n").as_bytes(), &body].concat());
        }
    });
    let (mut driver, application) = told(&app, |settings| {
        settings.keep_connections = false;
        settings.streamed_bodies = StreamedBodies::default().with_max(1);
    });
    hear.recv().unwrap();
    let expected = bytes(3 * CHUNK_BYTES);
    let beginning = in_chunks(&application, &expected[..CHUNK_BYTES]);
    let rest = streamed(&application, b"", 2 * CHUNK_BYTES as u64);
    driver.begin(2, Request { body: beginning, ..rest });
    driver.run_until(|_| hear.try_recv().is_ok());
    driver.run_for(Duration::from_millis(10));
    for piece in expected[CHUNK_BYTES..].chunks(CHUNK_BYTES) {
        let Some(Piece::Memory(slice)) = in_chunks(&application, piece).take_front(u64::MAX) else {
            panic!("a piece in memory");
        };
        driver.push_piece(2, slice, false);
    }
    let got = driver.finish(2);
    assert!(got.body == expected);
    assert_eq!(got.head.as_ref().unwrap().field("X-Sent"), Some(CHUNK_BYTES.to_string().as_bytes()));
    assert_none_in_use(&application);
}

/// Goal: what a process held comes back when it dies, and when it claims to return more than it has.
#[test]
fn a_process_that_dies_or_lies_holds_nothing() {
    let app = taking(|peer, asked| {
        let Some(Event::Slices(_)) = peer.event() else { panic!("a slice") };
        if asked.params.iter().any(|(name, _)| name.ends_with(b"LIES")) {
            let mut records = Vec::new();
            push_freed(&mut records, asked.id, u32::MAX);
            peer.write(&records);
            peer.wait_for_close();
        }
        false
    });
    for lies in [false, true] {
        let (mut driver, application) = told(&app, |_| {});
        let body = in_chunks(&application, &bytes(300_000));
        let mut request = with_body(&application, body);
        if lies {
            request.add_field("LIES", b"1");
        }
        let why = driver.ask(2, request).why();
        let expected = if lies { FailureReason::Broken(Broken::HandOver) } else { FailureReason::Ended };
        assert_eq!(why, expected);
        assert_none_in_use(&application);
    }
}

/// Goal: a process whose request was given up goes on to see the bytes of its own request. Method: the client leaves, and
/// the chunks of later requests are filled with something else before the process looks again.
#[test]
fn a_process_that_was_given_up_sees_no_other_body() {
    let (filled, wait) = mpsc::channel::<()>();
    let (say, seen) = mpsc::channel();
    let both = Mutex::new((wait, say));
    let app = taking(move |peer, _| {
        let Some(Event::Slices(slices)) = peer.event() else { panic!("a slice") };
        let both = both.lock().unwrap();
        both.1.send(Vec::new()).unwrap();
        both.0.recv().unwrap();
        let pool = peer.pool.as_ref().unwrap();
        both.1.send(read_at(pool, slices[0].offset.into(), slices[0].len as usize)).unwrap();
        false
    });
    let (mut driver, application) = told(&app, |_| {});
    let expected = bytes(CHUNK_BYTES);
    let request = with_body(&application, in_chunks(&application, &expected));
    driver.begin(2, request);
    driver.run_until(|_| seen.try_recv().is_ok());
    driver.abandon(2);
    let mut all: Vec<_> = std::iter::from_fn(|| application.chunk()).collect();
    assert_eq!(all.len(), 128);
    all.iter_mut().for_each(|chunk| chunk.fill(0xff));
    filled.send(()).unwrap();
    assert!(seen.recv().unwrap() == expected);
}

/// Goal: a process that returns nothing holds no more than its bound, and a byte returned brings the next piece.
#[test]
fn a_slow_process_is_lent_a_bounded_part() {
    const LENT_BYTES_MAX: u64 = 512 << 10;
    let app = taking(|peer, asked| {
        let mut seen = 0;
        loop {
            match peer.event() {
                Some(Event::Slices(slices)) => {
                    seen += slices.iter().map(|slice| u64::from(slice.len)).sum::<u64>();
                    if seen >= LENT_BYTES_MAX {
                        let mut records = Vec::new();
                        push_freed(&mut records, asked.id, CHUNK_BYTES as u32);
                        peer.write(&records);
                    }
                }
                Some(Event::StdinEnd) => break,
                other => panic!("{other:?}"),
            }
        }
        peer.answer(&asked, format!("X-A: b\n\n{seen}").as_bytes())
    });
    let (mut driver, application) = told(&app, |settings| {
        settings.streamed_bodies = StreamedBodies::default().with_max(1);
    });
    let pieces = 20;
    let request = streamed(&application, b"", pieces * CHUNK_BYTES as u64);
    driver.begin(2, request);
    for piece in 0..pieces {
        let chunk = application.chunk().expect("a free chunk");
        let free: Vec<_> = std::iter::from_fn(|| application.chunk()).collect();
        let in_use = 128 - free.len() as u64;
        assert!(in_use * CHUNK_BYTES as u64 <= LENT_BYTES_MAX + CHUNK_BYTES as u64, "{piece}: {in_use}");
        driver.push_piece(2, Buffer::from(chunk).into(), false);
    }
    let got = driver.finish(2);
    assert_eq!(got.body, (pieces * CHUNK_BYTES as u64).to_string().as_bytes());
    assert_none_in_use(&application);
}

/// Goal: a body in a file goes as a descriptor by which the application cannot change it, and the file is gone behind the
/// answer; a process that does not take it gets the bytes.
#[test]
fn a_body_in_a_file_is_lent_and_cannot_be_changed() {
    let app = taking(|peer, asked| {
        let Some((body, sent)) = read(peer, |_, _| {}) else { return false };
        let file = peer.body_file.take().expect("the file");
        assert_eq!((file.write_at(b"x", 0).unwrap_err().raw_os_error(), sent), (Some(9), 0));
        assert!(file.set_len(0).is_err());
        drop(file);
        peer.answer(&asked, &[b"X-A: b\n\n", &body[..]].concat())
    });
    let (space, used) = space(1 << 20);
    let (mut driver, application) = told(&app, |settings| settings.temporary.space = space);
    let expected = bytes(300_000);
    let mut file = TemporaryFile::create(&application.settings().temporary, None).unwrap();
    file.append_bytes(&expected).unwrap();
    let mut body = Aggregate::new();
    body.push(file.slice());
    drop(file);
    assert!(driver.ask(2, with_body(&application, body)).body == expected);
    assert_eq!(used.load(std::sync::atomic::Ordering::Relaxed), 0);
}
