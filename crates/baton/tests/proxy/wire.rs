//! Faults on the wire, between clients and the server and between the server and its origin.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use crate::common::folder::Folder;
use crate::common::matrix;
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::common::watched::Watched;
use crate::fault_proxy::{Direction, Fault, FaultProxy, Plan};
use crate::origin::{Origin, Peer};

/// What a client has got for its request.
#[derive(Debug)]
enum ClientView {
    /// A response of the origin, as its framing says.
    Whole,
    /// A page of the server's, with this status.
    Page(u16),
    /// A part, or nothing.
    Part,
}

/// Goal: whatever happens to bytes, each request that reaches the server ends in one line of the log with its reason, no
/// client gets bytes of another's, and nothing is left. Method: every fault in both directions on both sides, behind
/// different numbers of bytes from a seed, for requests with and without bodies; bodies repeat the request's number.
#[test]
fn every_fault_has_its_line() {
    let origin = Origin::start(repeat);
    let lines = Arc::new(Mutex::new(BTreeMap::new()));
    let far = FaultProxy::start(origin.address(), |number| plan(number, SEED));
    let server = server(far.address().to_string());
    let before = server.sockets();
    let near = FaultProxy::start(server.server().address(), |number| plan(number, SEED + 1));
    let requests = matrix::size(6, 15);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (near, lines) = (near.address(), &lines);
            scope.spawn(move || {
                for round in 0..requests {
                    let number = client * requests + round;
                    let got = ask(number, TcpStream::connect(near).expect("a connection"));
                    lines.lock().expect("no panic").insert(number, got);
                }
            });
        }
    });
    server.wait_until_nothing_is_left(&before);
    wait_until("no direction is open", || near.open() + far.open() == 0);
    assert_eq!(server.metric("baton_temporary_bytes"), 0, "no spool is left");
    let got = std::mem::take(&mut *lines.lock().expect("no panic"));
    check_log(&server, &got);
}

/// The lines of the log beside what clients have got.
fn check_log(server: &Watched, got: &BTreeMap<usize, ClientView>) {
    let mut of_requests: BTreeMap<usize, Vec<serde_json::Value>> = BTreeMap::new();
    for line in server.lines() {
        let request = line["request"].as_str().unwrap_or_default();
        let number = request.split("/n/").nth(1).and_then(|rest| rest.split([' ', '?']).next());
        // A request that was cut or spoilt in its line has no number, and one line nevertheless.
        let Some(number) = number.and_then(|digits| digits.parse().ok()) else { continue };
        of_requests.entry(number).or_default().push(line);
    }
    for (number, got) in got {
        let lines = of_requests.get(number).map_or(&[][..], Vec::as_slice);
        assert!(lines.len() <= 1, "request {number}: {lines:?}");
        let outcome = lines.first().map_or("", |line| line["outcome"].as_str().expect("an outcome"));
        match got {
            ClientView::Whole => {
                // The end of a connection can be what the client alone takes for the end of a response.
                assert!(!outcome.is_empty(), "request {number} was answered, and has no line");
            }
            ClientView::Page(status) => {
                let is_so = lines.is_empty() || lines[0]["status"] == *status;
                assert!(is_so, "request {number}: {status}, {lines:?}");
            }
            ClientView::Part => {}
        }
        if outcome == "origin-failed" {
            let failure = lines[0]["origin"]["failure"].as_str();
            assert!(failure.is_some_and(|word| !word.is_empty()), "why? {:?}", lines[0]);
        }
    }
    let whole = got.values().filter(|got| matches!(got, ClientView::Whole)).count();
    assert!(whole > got.len() / 4 && whole < got.len(), "{whole} of {} are whole", got.len());
    let has = |word: &str| of_requests.values().flatten().any(|line| line["outcome"] == word);
    for word in ["complete", "client-gone", "timed-out", "origin-failed"] {
        assert!(has(word), "no request is {word}");
    }
}

/// Sends a request and reads what comes, up to the end.
fn ask(number: usize, mut stream: TcpStream) -> ClientView {
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let own = format!("<{number:05}>");
    let body = if number.is_multiple_of(3) { own.repeat(BODY_REPEATS) } else { String::new() };
    let head = match body.is_empty() {
        true => format!("GET /n/{number} HTTP/1.1\r\nHost: wire\r\nConnection: close\r\n\r\n"),
        false => format!(
            "PUT /n/{number} HTTP/1.1\r\nHost: wire\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ),
    };
    let mut sender = stream.try_clone().expect("a descriptor");
    let sending = std::thread::spawn(move || drop(sender.write_all((head + &body).as_bytes())));
    let mut bytes = Vec::new();
    let is_whole = stream.read_to_end(&mut bytes).is_ok();
    let _ = stream.shutdown(std::net::Shutdown::Both);
    sending.join().expect("no panic");
    check_bytes(&own, &bytes);
    let text = String::from_utf8_lossy(&bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return ClientView::Part };
    let status = head.split(' ').nth(1).and_then(|digits| digits.parse().ok());
    match status {
        Some(200) if is_whole && body.ends_with("\n0\r\n\r\n") => ClientView::Whole,
        Some(200) => {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
            if length == Some(body.len()) { ClientView::Whole } else { ClientView::Part }
        }
        Some(status @ 400..) => ClientView::Page(status),
        _ => ClientView::Part,
    }
}

/// Checks that bytes have no number but this.
fn check_bytes(own: &str, bytes: &[u8]) {
    // Most have it many times, and nothing else.
    if memchr::memchr_iter(b'<', bytes).count() == memchr::memmem::find_iter(bytes, own).count() {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    for part in text.split('<').skip(1) {
        let digits = part.get(..5).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        assert!(digits.is_none_or(|digits| *digits == own[1..6]), "{own} has got <{digits:?}");
    }
}

/// Answers with the number of the request, many times, and takes no body that has another.
fn repeat(peer: &mut Peer) {
    while let Some(mut seen) = peer.head() {
        let number: Option<usize> = seen.path().rsplit('/').next().and_then(|digits| digits.parse().ok());
        // Garbage in front of the head was refused by the server.
        let Some(number) = number else { return };
        let own = format!("<{number:05}>");
        if !peer.body(&mut seen) {
            return;
        }
        check_bytes(&own, &seen.body);
        let content = own.repeat(BODY_REPEATS);
        if number.is_multiple_of(2) {
            peer.answer("", content);
            continue;
        }
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in content.as_bytes().chunks(5_000) {
            peer.send([format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat());
        }
        peer.send("0\r\n\r\n");
    }
}

/// What befalls the connection with this number: each fault in each direction, behind few and many bytes.
fn plan(number: usize, seed: usize) -> Plan {
    let mixed = (number + 1).wrapping_mul(seed).wrapping_mul(0x9E37_79B9) >> 7;
    // Most connections are sound, so that victims of others would show.
    let fault =
        if mixed.is_multiple_of(3) { Fault::Nothing } else { Fault::ALL[mixed / 3 % Fault::ALL.len()] };
    let direction = if (mixed / 100).is_multiple_of(2) { Direction::Up } else { Direction::Down };
    let after_bytes = [0, 10, 70, 200, 5_000, 40_000][mixed / 200 % 6];
    Plan { fault, direction, after_bytes }
}

fn server(to: String) -> Watched {
    let folder = Folder::new();
    let log = folder.base().join("access.log");
    let proxy = "head_ms = 3000, gap_ms = 3000, idle_ms = 1000, response_memory_bytes = '16 KiB'";
    let configuration = format!(
        "processes = 1\n[admin]\nlisten = '127.0.0.1:0'\n[timeouts]\nhead_ms = 3000\nbody_ms = 3000\nsend_ms = 3000\n\
         [log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 20\n[[site]]\nlisten = '127.0.0.1:0'\n\
         [[site.route]]\npath = '/'\nproxy = {{ to = 'http://{to}', {proxy} }}\n"
    );
    Watched::of(Server::run(folder, &configuration), log)
}

const CLIENTS: usize = 40;

/// Bytes of a body: 7 times as many, more than sockets and the server's memory hold together.
const BODY_REPEATS: usize = 30_000;

const SEED: usize = 20_261_123;
