//! By the hand-over protocol programs give the same answers as by FastCGI.

use crate::program::{Library, Program};
use crate::rig::{Client, HTTP_1_1, Region, Server, split, text, unchunk};

const REGION_BYTES: u32 = 1 << 20;

/// Queries whose answers do not depend on the transport.
const QUERIES: &[(&str, usize)] = &[
    ("e", 0),
    ("b", 20_000),
    ("v", 20_000),
    ("f", 0),
    ("l0", 0),
    ("l100", 0),
    ("l20000", 0),
    ("l400000", 0),
    ("u65528", 0),
    ("u400000", 0),
    ("i0", 0),
    ("i3000000", 0),
    ("c100000", 0),
    ("s100", 0),
    ("x50000", 0),
    ("p200000", 0),
    ("", 0),
    // A separate process answers, and the connection ends with it.
    ("d100000", 0),
];

/// The body of a CGI response.
fn body_of(output: &[u8]) -> &[u8] {
    let end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("a CGI head") + 4;
    &output[end..]
}

/// Asks for an answer on a client's socket: the body that the client gets, and the error log.
fn passed(server: &mut Server, query: &str, body: usize) -> (Vec<u8>, Vec<u8>) {
    let client = Client::new();
    let mut near = client.near.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut received = Vec::new();
        std::io::Read::read_to_end(&mut near, &mut received).unwrap();
        received
    });
    server.pass(&client, HTTP_1_1, 60_000, &[("QUERY_STRING", query)], &text(body));
    let reply = server.reply();
    drop(client.far);
    let (head, body) = split(&reading.join().unwrap());
    assert!(reply.answered.is_some_and(|answered| answered.complete), "{query}: {reply:?}");
    assert!(reply.end.is_some() && reply.stdout.is_empty());
    (if head.contains("chunked") { unchunk(&body) } else { body }, reply.stderr)
}

#[test]
fn answers_are_the_same_by_every_way() {
    for (program, queries) in
        [("streams", QUERIES), ("stdio", &[("", 0), ("abc", 10), ("large", 50_000), ("large", 0)])]
    {
        let plain = Program::of(program, &[], Library::Ours);
        let passing = Program::of(program, &[], Library::Ours);
        let sharing = Program::of(program, &[], Library::Ours);
        let mut plain = plain.connect_for_good();
        let mut passing = passing.connect_for_good();
        let mut sharing = sharing.connect_for_good();
        sharing.server.region = Some(Region::new(REGION_BYTES));
        for &(query, body) in queries {
            let variables = [("QUERY_STRING", query)];
            plain.server.ask(&variables, &text(body));
            let expected = plain.server.reply();
            let (got, errors) = passed(&mut passing.server, query, body);
            assert!(got == body_of(&expected.stdout), "{program} {query} on the client's socket");
            assert_eq!(errors, expected.stderr, "{program} {query}");
            sharing.server.share(REGION_BYTES, &variables, &text(body));
            let reply = sharing.server.reply();
            assert!(reply.stdout == expected.stdout, "{program} {query} through the region");
            assert_eq!((reply.stderr, reply.end), (expected.stderr, expected.end), "{program} {query}");
            assert_eq!(reply.stdout_record_bytes, 0, "{program} {query}: nothing in records");
        }
    }
}

/// Eight threads accept from one socket, and each answers on the sockets of its own clients.
#[test]
fn threads_answer_side_by_side() {
    let program = Program::of("streams", &["8"], Library::Ours);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let program = &program;
            scope.spawn(move || {
                let mut server = program.connect();
                server.region = Some(Region::new(REGION_BYTES));
                for turn in 0..12 {
                    let bytes = 1000 * thread + 7919 * turn;
                    let query = format!("u{bytes}");
                    let expected: Vec<u8> =
                        (0..bytes).map(|at| b"abcdefghijklmnopqrstuvwxyz\n"[(at + at / 1000) % 27]).collect();
                    assert!(passed(&mut server, &query, 0).0 == expected, "{query}");
                    server.share(REGION_BYTES, &[("QUERY_STRING", &query)], b"");
                    assert!(body_of(&server.reply().stdout) == expected, "{query}");
                    server.ask(&[("QUERY_STRING", &query)], b"");
                    assert!(body_of(&server.reply().stdout) == expected, "{query}");
                }
            });
        }
    });
}

/// A program continues with its next request after a slow or lost client.
#[test]
fn slow_and_lost_clients_do_not_hold_the_program() {
    let program = Program::of("streams", &[], Library::Ours);
    let mut server = program.connect();
    let slow = Client::narrow();
    server.pass(&slow, HTTP_1_1, 20, &[("QUERY_STRING", "u2000000")], b"");
    let reply = server.reply();
    assert!(reply.rest.is_some() && reply.end == Some(0));
    let response = [slow.received(), reply.wire].concat();
    assert_eq!(unchunk(&split(&response).1).len(), 2_000_000);

    let Client { near, far } = Client::narrow();
    drop(near);
    let gone = Client { near: far.try_clone().unwrap(), far };
    server.pass(&gone, HTTP_1_1, 60_000, &[("QUERY_STRING", "c2000000")], b"");
    let reply = server.reply();
    assert!(reply.answered.is_some_and(|answered| !answered.complete) && reply.end == Some(0));
    assert_eq!(passed(&mut server, "l10", 0).0.len(), 10);
}

/// Output that the original sends once its buffer of 8 KB is full is held back only while it comes quickly. The
/// program continues when its output was seen.
#[test]
fn slow_output_is_not_held_back() {
    const BYTES: usize = 9000;
    let program = Program::of("streams", &[], Library::Ours);
    let mut server = program.connect();
    let client = Client::new();
    server.pass_without_body(&client, HTTP_1_1, &[("QUERY_STRING", &format!("o{BYTES}"))]);
    let mut near = client.near.try_clone().unwrap();
    let mut received = Vec::new();
    for _ in 0..3 {
        // The original holds some kilobytes back, too.
        let wanted = received.len() + 4000;
        while received.len() < wanted {
            let mut piece = [0; 4096];
            let read =
                std::io::Read::read(&mut near, &mut piece).expect("output, before the program continues");
            received.extend_from_slice(&piece[..read]);
        }
        server.send_body(b"+");
    }
    server.end_body();
    assert!(server.reply().answered.is_some_and(|answered| answered.complete));
    drop(client.far);
    std::io::Read::read_to_end(&mut near, &mut received).unwrap();
    let (_, body) = split(&received);
    assert_eq!(unchunk(&body).len(), 3 * BYTES);
}
