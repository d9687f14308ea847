//! Origins that speak HTTP/1: kept connections, what they carry, and what may be sent again.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use baton_buf::Aggregate;
use baton_http::origin::{BadResponse, RequestKind};
use baton_upstream::{
    Address, Application, BodyRest, Endpoint, FailureReason, Protocol, Request, Settings, Trail,
};

use crate::common::driver::{Driver, Ending};

/// An origin with a thread for each connection, which is given the connection's number.
pub(crate) fn origin(serve: impl Fn(usize, &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (serve, mut stream) = (Arc::clone(&serve), stream.unwrap());
            thread::spawn(move || serve(number, &mut stream));
        }
    });
    address
}

/// Reads a head; `None`: the connection has ended.
pub(crate) fn head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

pub(crate) fn application(address: SocketAddr, change: impl FnOnce(&mut Settings)) -> Arc<Application> {
    let mut settings = Settings::new("origin", Endpoint::Shared(Address::Inet(address)));
    (settings.protocol, settings.idle_timeout_ms) = (Protocol::Http1, 60_000);
    change(&mut settings);
    Application::new(settings).unwrap()
}

pub(crate) fn request(application: &Arc<Application>, line: &str, idempotent: bool) -> Request {
    Request {
        application: Arc::clone(application),
        text: format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes(),
        asked: RequestKind::Usual,
        peers: None,
        turn: None,
        body: Aggregate::new(),
        rest: None,
        idempotent,
        pass: None,
        takes_pipes: false,
        ends: None,
        client: None,
    }
}

pub(crate) fn get(application: &Arc<Application>) -> Request {
    request(application, "GET /", true)
}

/// Answers everything with the number of the connection.
fn number(number: usize, stream: &mut TcpStream) {
    while head(stream).is_some() {
        let body = number.to_string();
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    }
}

#[test]
fn a_connection_is_used_again_and_the_newest_first() {
    let application = application(origin(number), |settings| settings.idle_max = 1);
    let mut driver = Driver::new();
    assert_eq!(driver.ask(1, get(&application)).body, b"0");
    assert_eq!(driver.ask(2, get(&application)).body, b"0");
    driver.stop_clock(true);
    for id in [3, 5] {
        driver.begin(id, get(&application));
        driver.begin(id + 1, get(&application));
        let both = [driver.finish(id).body.clone(), driver.finish(id + 1).body.clone()];
        assert!(both.contains(&b"0".to_vec()) && both.contains(&b"1".to_vec()), "{both:?}");
    }
    assert_eq!(driver.report("connections_opened"), 2, "what the next round wants is kept that long");
    driver.stop_clock(false);
    driver.run_until(|driver| driver.report("connections") == 1);
    assert_eq!(driver.report("idle"), 1, "no more than the bound are kept");
    let trail = driver.ask(7, get(&application)).trail;
    assert!(
        matches!(trail, Some(Trail { tries: 1, connect_ms: Some(_), head_ms: Some(_), choice: None })),
        "{trail:?}"
    );
}

/// Interim heads, chunks and trailers of one response come in order, however they are cut.
#[test]
fn every_part_of_a_response() {
    let text = "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n";
    for piece_bytes in [1, 5, 1_000] {
        let address = origin(move |_, stream| {
            while head(stream).is_some() {
                stream.set_nodelay(true).unwrap();
                text.as_bytes().chunks(piece_bytes).for_each(|piece| stream.write_all(piece).unwrap());
            }
        });
        let application = application(address, |_| {});
        let mut driver = Driver::new();
        for id in 1..3 {
            let got = driver.ask(id, get(&application));
            assert_eq!((&got.interim[..], &got.body[..]), (&[103][..], &b"abcde"[..]));
            let trailers = got.trailers.as_ref().unwrap();
            assert_eq!(trailers.fields().collect::<Vec<_>>(), [(&b"X-Sum"[..], &b"5"[..])]);
            assert_eq!(got.ending, Some(Ending::Complete));
        }
        assert_eq!(driver.report("connections_opened"), 1);
    }
}

/// A kept connection ends when the next request comes: an idempotent one is sent again, once, on a new connection.
#[test]
fn what_may_be_sent_again() {
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&seen);
    let address = origin(move |_, stream| {
        if head(stream).is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            counted.fetch_add(usize::from(head(stream).is_some()), SeqCst);
        }
    });
    let application = application(address, |_| {});
    let mut driver = Driver::new();
    driver.ask(1, get(&application));
    let got = driver.ask(2, get(&application));
    assert_eq!((got.ending, got.trail.unwrap().tries), (Some(Ending::Complete), 2));
    assert_eq!(driver.ask(3, request(&application, "POST /", false)).why(), FailureReason::Ended);
    assert_eq!(seen.load(SeqCst), 2, "neither was sent to the same connection twice");
}

/// Retries are a share of the requests: an origin that closes every kept connection is not asked twice as often.
#[test]
fn the_budget_bounds_retries() {
    let address = origin(|_, stream| {
        if head(stream).is_some() {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            head(stream);
        }
    });
    let application = application(address, |_| {});
    let mut driver = Driver::new();
    let failed =
        (0..100).filter(|id| driver.ask(*id, get(&application)).ending != Some(Ending::Complete)).count();
    let retries = driver.report("retries").as_u64().unwrap();
    assert!((20..=40).contains(&retries) && failed > 0, "{retries} retries, {failed} failures");
}

/// Bytes that come on an idle connection are never the next response.
#[test]
fn stray_bytes_end_an_idle_connection() {
    let address = origin(|number, stream| {
        while head(stream).is_some() {
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nX").unwrap();
        }
    });
    let application = application(address, |_| {});
    let mut driver = Driver::new();
    for id in 0..10 {
        let got = driver.ask(id, get(&application));
        assert_eq!(got.body, id.to_string().as_bytes());
        driver.run_until(|driver| driver.report("connections") == 0);
    }
}

/// A body of unknown length goes out in chunks, as it comes.
#[test]
fn a_body_is_streamed_in_chunks() {
    let address = origin(|_, stream| {
        head(stream).unwrap();
        let mut body = Vec::new();
        while !body.ends_with(b"0\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            body.push(byte[0]);
        }
        let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&body).unwrap();
    });
    let application = application(address, |_| {});
    let mut driver = Driver::new();
    let rest = Some(BodyRest::of_origin(None));
    driver.begin(1, Request { rest, ..request(&application, "POST /", false) });
    driver.push(1, b"hello");
    driver.push(1, &[b'x'; 20]);
    driver.push_last(1, b"");
    let xs = "x".repeat(20);
    assert_eq!(driver.finish(1).body, format!("5\r\nhello\r\n14\r\n{xs}\r\n0\r\n\r\n").into_bytes());
}

/// Behind a switch, bytes flow both ways as they are, and each half ends on its own.
#[test]
fn a_tunnel() {
    let address = origin(|_, stream| {
        head(stream).unwrap();
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: any\r\n\r\nhello").unwrap();
        let mut said = [0; 4];
        stream.read_exact(&mut said).unwrap();
        stream.write_all(&said).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"still");
    });
    let application = application(address, |_| {});
    let mut driver = Driver::new();
    driver.begin(1, Request { asked: RequestKind::Upgrade, ..request(&application, "GET /", false) });
    driver.run_until(|driver| driver.got(1).is_switched);
    driver.push(1, b"ping");
    driver.run_until(|driver| driver.got(1).is_half_over);
    let got = driver.got(1);
    assert_eq!((&got.body[..], got.is_over()), (&b"helloping"[..], false));
    driver.push_last(1, b"still");
    assert_eq!(driver.finish(1).ending, Some(Ending::Complete));
}

/// Goal: what flows in a tunnel waits in no file; the origin waits instead. Method: more bytes than the sockets hold.
#[test]
fn a_tunnel_uses_no_file() {
    const BYTES: usize = 30_000_000;
    static HAS_SENT: AtomicUsize = AtomicUsize::new(0);
    let address = origin(|_, stream| {
        head(stream).unwrap();
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: any\r\n\r\n").unwrap();
        stream.write_all(&vec![b'x'; BYTES]).unwrap();
        HAS_SENT.store(1, SeqCst);
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    });
    let application = application(address, |_| {});
    let mut driver = Driver::new();
    driver.begin(1, Request { asked: RequestKind::Upgrade, ..request(&application, "GET /", false) });
    driver.run_until(|driver| driver.got(1).is_switched);
    driver.set_slow(1, true);
    driver.run_for(std::time::Duration::from_millis(300));
    assert_eq!(HAS_SENT.load(SeqCst), 0);
    driver.set_slow(1, false);
    driver.run_until(|driver| driver.got(1).is_half_over);
    assert_eq!((driver.got(1).body.len(), driver.got(1).file_bytes), (BYTES, 0));
    driver.push_last(1, b"");
    driver.finish(1);
}

#[test]
fn times_of_their_own() {
    let address = origin(|_, stream| while head(stream).is_some() {});
    let silent = application(address, |settings| settings.head_timeout_ms = Some(50));
    let mut driver = Driver::new();
    assert_eq!(driver.ask(1, get(&silent)).why(), FailureReason::HeadTimedOut);
    let address = origin(|_, stream| {
        head(stream);
        stream.write_all(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: any\r\n\r\n").unwrap();
        head(stream);
    });
    let idle = application(address, |settings| settings.tunnel_idle_timeout_ms = 50);
    let upgrade = Request { asked: RequestKind::Upgrade, ..request(&idle, "GET /", false) };
    assert_eq!(driver.ask(2, upgrade).why(), FailureReason::TunnelIdle);
}

/// A response that could be read in two ways is refused, and the reason says how.
#[test]
fn a_response_with_two_meanings() {
    let address = origin(|_, stream| {
        head(stream);
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n");
        head(stream);
    });
    let application = application(address, |_| {});
    let why = Driver::new().ask(1, get(&application)).why();
    assert_eq!(why, FailureReason::BadResponse(BadResponse::LengthAndTransferEncoding));
    assert_eq!((why.status(), why.label()), (502, "bad-response"));
}

/// Goal: tunnels take no connection from requests, and have a bound of their own. Method: one connection at a time.
#[test]
fn tunnels_are_counted_apart() {
    let address = origin(|_, stream| {
        while let Some(head) = head(stream) {
            let is_tunnel = head.starts_with("GET /tunnel");
            let answer: &[u8] = match is_tunnel {
                true => b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: any\r\n\r\n",
                false => b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            };
            stream.write_all(answer).unwrap();
            if is_tunnel {
                // Until the other side ends it.
                return assert!(stream.read_to_end(&mut Vec::new()).is_ok());
            }
        }
    });
    let application =
        application(address, |settings| (settings.connections_max, settings.tunnels_max) = (1, 2));
    let upgrade = || Request { asked: RequestKind::Upgrade, ..request(&application, "GET /tunnel", false) };
    let mut driver = Driver::new();
    for id in [1, 2] {
        driver.begin(id, upgrade());
        // It waits for the connection, until that is a tunnel.
        assert_eq!(driver.ask(id + 10, get(&application)).body, b"ok");
        assert!(driver.got(id).is_switched);
    }
    assert_eq!((driver.report("tunnels"), driver.report("connections")), (2.into(), 1.into()));
    assert_eq!(driver.ask(3, upgrade()).why(), FailureReason::TunnelsFull);
    assert_eq!(driver.ask(4, get(&application)).body, b"ok");
    driver.push_last(1, b"");
    driver.run_until(|driver| driver.report("tunnels") == 1);
    driver.begin(5, upgrade());
    driver.run_until(|driver| driver.got(5).is_switched);
    driver.abandon(5);
    assert_eq!(driver.report("tunnels"), 1);
}
