//! Every known abuse, and the bound that it meets: the connection ends with GOAWAY, the log and the metric name the bound,
//! and other clients are served.

use std::io::Write as _;
use std::net::Shutdown;
use std::time::{Duration, Instant};

use crate::architectures::under_every_architecture;
use crate::common::server::{PATIENCE, wait_until};
use crate::common::watched::Watched;
use crate::peer::{
    ACK, Answer, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS,
    INITIAL_WINDOW, PING, PRIORITY, PRIORITY_UPDATE, Peer, REFUSED_STREAM, RST_STREAM, WINDOW_UPDATE, block,
    frame, request, rst_stream, settings_frame, window_update,
};
use crate::site::{self, SMALL};

under_every_architecture! { by name:
    rapid_reset,
    made_you_reset,
    continuation_flood,
    floods_of_frames_that_change_nothing,
    empty_data,
    small_data,
    hpack_bomb,
    stalled_windows,
    end_behind_empty_windows,
    streams_above_the_bound,
    many_streams_to_one_slow_application,
    a_page_that_is_left,
}

/// Goal: requests that are reset at once (CVE-2023-44487) end the connection, for files and for an application that is
/// at work on them.
fn rapid_reset(architecture: &str) {
    let server = site::start(architecture, 1, "");
    for path in ["/small.txt", "/app/bytes?1000"] {
        let mut stream = 1;
        let flood = || {
            stream += 2;
            [request(stream, "GET", path, END_STREAM), rst_stream(stream)].concat()
        };
        ends_by(&server, "client-resets", |peer| peer.flood(flood));
    }
}

/// Goal: resets that the client provokes (CVE-2025-8671) count as its own. Method: malformed requests, and streams that
/// stay open, because their windows are empty, until an update makes those too large.
fn made_you_reset(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let malformed = |stream: u32| {
        let block = block("GET", "/large.bin", &[("Upper", "case")]);
        frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    };
    let overflow = |stream: u32| {
        let update = window_update(stream, 0x7fff_ffff);
        [&request(stream, "GET", "/large.bin", END_STREAM), &update, &update].map(Vec::as_slice).concat()
    };
    for attack in [&malformed as &(dyn Fn(u32) -> Vec<u8> + Sync), &overflow] {
        let before = ended(&server, "provoked-resets");
        let mut peer = Peer::connect_with(server.server().address(), &[(INITIAL_WINDOW, 1)]);
        let mut stream = 1;
        let flood = || {
            stream += 2;
            attack(stream)
        };
        assert_eq!(peer.flood(flood), ENHANCE_YOUR_CALM);
        is_told(&server, "provoked-resets", before);
    }
}

/// Goal: a header block without an end (2024) ends the connection, by the number of its pieces or by their bytes.
fn continuation_flood(architecture: &str) {
    let server = site::start(architecture, 1, "");
    for (bound, piece) in [("continuations", &b""[..]), ("block-bytes", &[0x84; 16_000])] {
        ends_by(&server, bound, |peer| {
            peer.send(frame(HEADERS, END_STREAM, 1, &block("GET", "/", &[])));
            peer.flood(|| frame(CONTINUATION, 0, 1, piece))
        });
    }
}

/// Goal: frames that only cost are bounded, though the client reads the answers to them (2019).
fn floods_of_frames_that_change_nothing(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let floods: [(&str, Vec<u8>); 8] = [
        ("pings", frame(PING, 0, 0, b"12345678")),
        ("idle-frames", frame(PING, ACK, 0, b"12345678")),
        ("settings-frames", settings_frame(&[(INITIAL_WINDOW, 1000)])),
        ("priority-frames", frame(PRIORITY, 0, 1, &[0, 0, 0, 3, 7])),
        ("priority-frames", frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1")),
        ("window-updates", window_update(0, 1)),
        ("idle-frames", frame(0xbe, 0, 0, b"unknown")),
        ("idle-frames", frame(GOAWAY, 0, 0, &[0; 8])),
    ];
    for (bound, bytes) in floods {
        eprintln!("{bound}: {:x?}", &bytes[..9]);
        ends_by(&server, bound, |peer| peer.flood(|| bytes.clone()));
    }
}

/// Goal: a body of empty frames ends the connection (2019). One of a byte each does not, as long as it is taken.
fn empty_data(architecture: &str) {
    let server = site::start(architecture, 1, "");
    ends_by(&server, "empty-frames", |peer| {
        peer.send(request(1, "POST", "/app/echo", 0));
        peer.flood(|| frame(DATA, 0, 1, b""))
    });
    let mut peer = Peer::connect(server.server().address());
    let stream = peer.open();
    peer.send(request(stream, "POST", "/app/echo", 0));
    for byte in b"a thousand times".iter().cycle().take(1000) {
        peer.send(frame(DATA, 0, stream, &[*byte]));
    }
    peer.send(frame(DATA, END_STREAM, stream, b""));
    assert_eq!(peer.answer(stream).body.len(), 1000);
}

/// Goal: pieces of a body of a byte each end the connection while they wait for their application (RUSTSEC-2026-0258).
/// Method: a body that is passed on to an application which reads none of it, more than all buffers on the way hold; then
/// the pieces.
fn small_data(architecture: &str) {
    let server = site::start(architecture, 1, "");
    ends_by(&server, "small-data", |peer| {
        let long = [("content-length", "1000000")];
        peer.send(frame(HEADERS, END_HEADERS, 1, &block("POST", "/app/thinks", &long)));
        let mut piece = (0..).map(|number: usize| match number {
            0..LONG_PIECES => frame(DATA, 0, 1, &[b'x'; 16_000]),
            _ => frame(DATA, 0, 1, b"x"),
        });
        // What the first window holds, and what the application's interest adds to it.
        peer.send((0..4).flat_map(|_| piece.next()).flatten().collect::<Vec<u8>>());
        while peer.next().is_some_and(|frame| (frame.kind, frame.stream) != (WINDOW_UPDATE, 1)) {}
        peer.flood(move || piece.next().expect("there is always another"))
    });
    std::fs::write(server.folder().base().join("enough"), "").expect("a file");
}

/// Goal: heads that are small on the wire and large when decoded (2016, and CVE-2026-49975) are refused, and cost
/// nothing afterwards. Method: a large field in the table, many references to it; then tiny ones, and crumbs.
fn hpack_bomb(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let large = [&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4000]].concat();
    for added in [&large[..], b"\x40\x01a\x00", b"\x60\x01c"] {
        let mut peer = Peer::connect(server.server().address());
        for round in 0..10 {
            let mut block = block("GET", "/small.txt", &[]);
            block.extend_from_slice(added);
            block.resize(block.len() + 10_000, 0xbe);
            let stream = peer.open();
            peer.send(frame(HEADERS, END_HEADERS | END_STREAM, stream, &block));
            assert_eq!(peer.answer(stream).status, 431, "round {round}");
        }
        let stream = peer.get("/small.txt");
        assert_eq!(peer.answer(stream).body, SMALL.as_bytes(), "the table is still the client's");
    }
}

/// Goal: a client that takes nothing is given up, whatever else it sends. Method: an empty window, and one that is
/// opened by a byte at a time, with PINGs that must renew nothing.
fn stalled_windows(architecture: &str) {
    for drip in [false, true] {
        let timeouts = "\n[timeouts]\nsend_ms = 700\nsend_rate_min_bytes_per_s = 100000";
        let server = site::start(architecture, 1, timeouts);
        let mut peer = Peer::connect_with(server.server().address(), &[(INITIAL_WINDOW, 0)]);
        let stream = peer.get("/large.bin");
        let writer = peer.stream().try_clone().expect("a descriptor");
        let others = server.server();
        std::thread::scope(|scope| {
            let drips = scope.spawn(|| {
                let deadline = Instant::now() + PATIENCE;
                while server.ended("timed-out") == 0 {
                    assert!(Instant::now() < deadline, "it is never given up (drips: {drip})");
                    assert_eq!(others.get("/small.txt").text(), SMALL, "others are served");
                    let mut bytes = frame(PING, ACK, 0, &[0; 8]);
                    if drip {
                        bytes.extend_from_slice(&window_update(stream, 1));
                    }
                    // It may be closed by now.
                    let _ = (&writer).write_all(&bytes);
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            while peer.next().is_some_and(|frame| frame.kind != RST_STREAM && frame.kind != GOAWAY) {}
            drips.join().expect("it is given up");
        });
        assert_eq!(server.line_of("/large.bin")["outcome"], "timed-out");
    }
}

/// Goal: a client that has ended its side can open its windows no more, so its connection ends, too.
fn end_behind_empty_windows(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let mut peer = Peer::connect_with(server.server().address(), &[(INITIAL_WINDOW, 0)]);
    peer.get("/large.bin");
    peer.stream().shutdown(Shutdown::Write).expect("half closed");
    while peer.next().is_some() {}
    assert_eq!(server.line_of("/large.bin")["outcome"], "client-gone");
}

/// Goal: streams above the announced bound are refused one by one, so that a client can repeat them, and a client that
/// goes on is not endured.
fn streams_above_the_bound(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let mut peer = Peer::connect_with(server.server().address(), &[(INITIAL_WINDOW, 0)]);
    let streams: Vec<u32> = (0..STREAMS_MAX).map(|_| peer.get("/small.txt")).collect();
    let refused = peer.get("/small.txt");
    loop {
        let frame = peer.next().expect("the connection goes on");
        if frame.kind == RST_STREAM {
            assert_eq!((frame.stream, &frame.payload[..]), (refused, &REFUSED_STREAM.to_be_bytes()[..]));
            break;
        }
    }
    let mut stream = refused;
    let before = ended(&server, "refused-streams");
    let code = peer.flood(|| {
        stream += 2;
        request(stream, "GET", "/small.txt", END_STREAM)
    });
    assert_eq!((code, streams.len()), (ENHANCE_YOUR_CALM, STREAMS_MAX));
    is_told(&server, "refused-streams", before);
}

/// Goal: as many streams as are allowed wait for one slow application, while files are served on the same connection
/// and on others; then all are answered.
fn many_streams_to_one_slow_application(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let mut peer = Peer::connect(server.server().address());
    let streams: Vec<u32> = (1..STREAMS_MAX).map(|_| peer.get("/app/thinks")).collect();
    let base = server.folder().base();
    wait_until("the application thinks", || base.join("thinks").exists());
    let file = peer.get("/small.txt");
    assert_eq!(peer.answer(file).body, SMALL.as_bytes());
    assert_eq!(server.get("/small.txt").text(), SMALL);
    std::fs::write(base.join("enough"), "").expect("a file");
    for Answer { status, body, .. } in peer.answers(&streams) {
        assert_eq!((status, &body[..]), (200, &b"thought"[..]));
    }
}

/// Goal: a browser that leaves a page resets what is open, and the connection goes on.
fn a_page_that_is_left(architecture: &str) {
    let server = site::start(architecture, 1, "");
    let mut peer = Peer::connect_with(server.server().address(), &[(INITIAL_WINDOW, 0)]);
    let streams: Vec<u32> = (0..STREAMS_MAX).map(|_| peer.get("/large.bin")).collect();
    let resets: Vec<u8> = streams.iter().flat_map(|stream| rst_stream(*stream)).collect();
    peer.send(resets);
    peer.send(settings_frame(&[(INITIAL_WINDOW, 65_535)]));
    let stream = peer.get("/small.txt");
    assert_eq!(peer.answer(stream).body, SMALL.as_bytes());
    wait_until("each is logged", || server.lines().len() > STREAMS_MAX);
}

/// A connection on which `abuse` makes the server send GOAWAY, and what is told of it.
fn ends_by(server: &Watched, bound: &str, abuse: impl FnOnce(&mut Peer) -> u32) {
    let before = ended(server, bound);
    let mut peer = Peer::connect(server.server().address());
    assert_eq!(abuse(&mut peer), ENHANCE_YOUR_CALM, "{bound}");
    is_told(server, bound, before);
    assert_eq!(server.get("/small.txt").text(), SMALL, "others are served");
}

/// Connections that ended because of a bound.
fn ended(server: &Watched, bound: &str) -> u64 {
    server.metric(&format!("baton_http2_errors_total{{reason=\"{bound}\"}}"))
}

fn is_told(server: &Watched, bound: &str, before: u64) {
    wait_until(&format!("the metric names {bound}"), || ended(server, bound) == before + 1);
    let input = format!("HTTP/2.0 {bound}");
    wait_until(&format!("the log names {bound}"), || {
        server.lines().iter().any(|line| line["request"] == input.as_str())
    });
}

/// Less than the window of a wanted body, and than the longest one.
const LONG_PIECES: usize = 50;

/// SETTINGS_MAX_CONCURRENT_STREAMS.
const STREAMS_MAX: usize = 100;
