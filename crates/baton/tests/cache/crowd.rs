//! Many clients of one film that is not here, a client that stops, then leaves, and films that push each other out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;

use memchr::memmem;

use crate::common::agent::Body;
use crate::common::folder::Folder;
use crate::common::matrix;
use crate::common::server::{PATIENCE, Server, wait_until};
use crate::films::{FILMS, Film, Manner, bytes_of};

const MIB: u64 = 1 << 20;

/// Goal: the origin sends each byte of a film once, however many clients want it. Method: all ask at once, half of them as
/// players do, for a film that the cache has room for; `BATON_FILM_MIB` makes it longer.
#[test]
fn a_crowd_gets_a_cold_film_of_one_fetch() {
    let mib = std::env::var("BATON_FILM_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    let (length, server) = (mib * MIB + 4711, serve(mib + 64));
    let film = Film::show("crowd", length, Manner::Honest);
    let address = server.address();
    let clients: Vec<_> = (0..matrix::size(100, 500))
        .map(|number| {
            let (path, is_player) = (film.address(), number % 2 == 0);
            let client = thread::Builder::new().stack_size(512 << 10);
            let client = client.spawn(move || {
                let mut stream = TcpStream::connect(address).expect("a connection");
                stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
                let range = if is_player { "Range: bytes=0-\r\n" } else { "" };
                let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{range}\r\n");
                stream.write_all(head.as_bytes()).expect("a request");
                count_body(&mut stream, is_player, length)
            });
            client.expect("a thread")
        })
        .collect();
    for client in clients {
        assert_eq!(client.join().expect("no panic"), length);
    }
    assert_eq!(film.asked(), ["-"]);
    assert_eq!(film.sent(), length, "each byte once");
}

/// Goal: a client that takes nothing more stops the origin within a window and what sockets hold, and one that leaves ends
/// the fetch.
#[test]
fn a_reader_that_stops_stops_the_origin() {
    let server = serve(256);
    let film = Film::show("stopped", 192 * MIB, Manner::Honest);
    let mut client = server.agent();
    client.begin("GET", "localhost", &film.address(), "", Body::None);
    assert_eq!(client.head().status, 200);
    client.at_least(MIB as usize);
    film.wait_until_it_stands_still();
    let last = film.sent();
    assert!((MIB..64 * MIB).contains(&last), "{last} bytes ahead of a client that has stopped");
    assert!(!film.was_left.load(Ordering::Relaxed));
    drop(client);
    wait_until("the fetch to end", || film.was_left.load(Ordering::Relaxed));
    assert!(film.sent() < 128 * MIB, "{} bytes for a client that has left", film.sent());
    // What it has fetched answers others.
    let first = server.agent().ask("GET", &film.address(), "Range: bytes=100-999\r\n");
    assert!(first.status == 206 && first.body == bytes_of(1, 100..1000));
    assert_eq!(film.asked(), ["-"]);
}

/// Goal: a client that takes nothing of what the cache has no room for holds up those of the same response, until it leaves,
/// and no other client. Method: the fetch stands still for it, then another request is made.
#[test]
fn a_reader_that_stops_stops_no_loop() {
    let server = serve(1);
    let length = 32 * MIB;
    let film = Film::show("held-up", length, Manner::Honest);
    film.change(|state| state.fields = "Cache-Control: max-age=600\r\n".into());
    let [mut stopped, mut reader] = [server.agent(), server.agent()];
    stopped.begin("GET", "localhost", &film.address(), "", Body::None);
    assert_eq!(stopped.head().status, 200);
    reader.begin("GET", "localhost", &film.address(), "", Body::None);
    assert_eq!(reader.head().status, 200);
    thread::scope(|scope| {
        let reader = scope.spawn(move || reader.body());
        film.wait_until_it_stands_still();
        assert!(film.sent() < length, "it waits for the slowest");
        let other = Film::show("beside", 1000, Manner::Honest);
        assert!(server.get(&other.address()).body == bytes_of(1, 0..1000));
        drop(stopped);
        let body = reader.join().expect("no panic").unwrap_or_else(|cut| panic!("cut after {}", cut.0.len()));
        assert!(body == bytes_of(1, 0..length));
    });
    assert_eq!(film.asked(), ["-"]);
}

/// Goal: a client that comes when the beginning of a response is gone gets all of it. Method: the cache has room for a small
/// part of what another client reads, and the response cannot be fetched in parts.
#[test]
fn who_comes_late_gets_all() {
    let server = serve(1);
    let length = 32 * MIB;
    let film = Film::show("late", length, Manner::Honest);
    film.change(|state| state.fields = "Cache-Control: max-age=600\r\n".into());
    let [mut first, mut late] = [server.agent(), server.agent()];
    first.begin("GET", "localhost", &film.address(), "", Body::None);
    assert_eq!(first.head().status, 200);
    let begun = first.at_least(16 * MIB as usize);
    late.begin("GET", "localhost", &film.address(), "", Body::None);
    assert_eq!(late.head().status, 200);
    assert!(late.body().unwrap_or_else(|cut| panic!("cut after {}", cut.0.len())) == bytes_of(1, 0..length));
    let rest = first.body().unwrap_or_else(|cut| panic!("cut after {}", cut.0.len()));
    assert!([begun, rest].concat() == bytes_of(1, 0..length));
    assert_eq!(film.asked(), ["-", "-"]);
}

/// Goal: what is evicted of a film is fetched again, and what is here is not. Method: three films in turn, through a cache that
/// lacks room for a part of one.
#[test]
fn what_was_evicted_is_completed() {
    ["s3-fifo", "reach"].into_iter().for_each(complete_what_was_evicted);
}

fn complete_what_was_evicted(policy: &str) {
    const ROOM: u64 = 8 * MIB;
    const LENGTH: u64 = 3 * MIB;
    const ROUNDS: u64 = 4;
    let configuration =
        CONFIGURATION.replace("[shared_cache]", &format!("[shared_cache]\npolicy = \"{policy}\""));
    let server = serve_by(&configuration, ROOM / MIB);
    let films: Vec<_> = (0..3).map(|_| Film::show("evicted", LENGTH, Manner::Honest)).collect();
    let mut agent = server.agent();
    for _ in 0..ROUNDS {
        for film in &films {
            assert!(agent.get(&film.address()).body == bytes_of(1, 0..LENGTH), "{:?}", film.asked());
        }
    }
    let asked: Vec<_> = films.iter().map(|film| film.asked()).collect();
    let seen = films.iter().flat_map(|film| film.seen());
    let parts: Vec<_> = seen.filter(|seen| seen.field("range").is_some()).collect();
    assert!(!parts.is_empty(), "{asked:?}");
    assert!(parts.iter().all(|seen| seen.field("if-range") == Some("\"1\"")), "{asked:?}");
    let sent: u64 = films.iter().map(|film| film.sent()).sum();
    assert!(sent < 3 * ROUNDS * LENGTH, "as if nothing were kept: {asked:?}");
    // The worker reports once a second.
    wait_until("what is held, in the status", || {
        let status: serde_json::Value = server.status();
        let held = find(&status["workers"], "shared_cache")
            .and_then(|cache| cache["bytes"].as_u64())
            .expect("bytes");
        assert!(held <= ROOM, "{status}");
        held > 0
    });
}

/// The first value of this name, wherever it is.
fn find<'a>(value: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(fields) => {
            fields.get(name).or_else(|| fields.values().find_map(|value| find(value, name)))
        }
        serde_json::Value::Array(values) => values.iter().find_map(|value| find(value, name)),
        _ => None,
    }
}

fn serve(memory_mib: u64) -> Server {
    serve_by(CONFIGURATION, memory_mib)
}

fn serve_by(configuration: &str, memory_mib: u64) -> Server {
    let configuration = configuration
        .replace("{memory}", &memory_mib.to_string())
        .replace("{films}", &FILMS.address().to_string());
    Server::run(Folder::new(), &configuration)
}

/// Reads a response with a film. Returns how many bytes came, which are compared.
fn count_body(stream: &mut TcpStream, is_part: bool, length: u64) -> u64 {
    let mut buffer = vec![0; 128 << 10];
    let mut head = Vec::new();
    let body = loop {
        let count = stream.read(&mut buffer).expect("a head");
        assert!(count > 0, "no head");
        head.extend_from_slice(&buffer[..count]);
        if let Some(end) = memmem::find(&head, b"\r\n\r\n") {
            break head.split_off(end + 4);
        }
    };
    let status: &[u8] = if is_part { b"HTTP/1.1 206" } else { b"HTTP/1.1 200" };
    assert!(head.starts_with(status), "{}", String::from_utf8_lossy(&head));
    let mut at = check(&body, 0);
    while at < length {
        match stream.read(&mut buffer).unwrap_or_else(|error| panic!("{error} after {at} bytes")) {
            0 => break,
            count => at += check(&buffer[..count], at),
        }
    }
    at
}

fn check(bytes: &[u8], at: u64) -> u64 {
    let count = bytes.len() as u64;
    assert!(bytes == bytes_of(1, at..at + count), "other bytes behind {at}");
    count
}

const CONFIGURATION: &str = r#"
processes = 1
[shared_cache]
memory_bytes_max = "{memory} MiB"
[[site]]
{listen}
[[site.route]]
path = "/film"
proxy = "http://{films}/"
cache = true
"#;
