//! Limits of size and time for requests.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, prlimit};

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::museum::server_with;

crate::protocols::over_http1!(
    a_target_has_a_length,
    a_head_has_a_size,
    a_body_has_a_size,
    a_connection_has_a_number_of_requests,
    a_request_has_a_time,
    an_idle_connection_has_a_time,
    without_descriptors_there_is_a_word_and_a_way_back,
);

/// Small enough to be reached in a few bytes.
const SMALL: &str = "[limits]\ntarget_bytes_max = 100\nhead_bytes_max = 1000\nfields_max = 10\nbody_bytes_max = 1000\n\
                     requests_per_connection_max = 3\npipelined_max = 2";

/// Short enough to wait for, and long enough for a client to send its bytes between two of its turns.
const SHORT: &str = "[timeouts]\nhead_ms = 1500\nbody_ms = 1500\nidle_ms = 1500";

/// The museum of the same architecture with other limits.
fn strict(server: &Server, sections: &'static str) -> Server {
    server_with(&crate::museum::architecture_of(server), sections).over(server.protocol())
}

/// Sends a request; the answer has this status and is the last.
fn is_the_last(server: &Server, request: &str, status: u16) {
    let mut client = server.connect();
    client.send(request);
    let response = client.response();
    assert_eq!((response.status, response.field("connection")), (status, Some("close")), "{request:.200}");
    client.expect_end();
}

fn a_target_has_a_length(server: &Server) {
    let server = &strict(server, SMALL);
    let target = |len: usize| format!("/small.txt?{}", "x".repeat(len - "/small.txt?".len()));
    assert_eq!(server.get(&target(100)).text(), "small\n");
    is_the_last(server, &format!("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", target(101)), 414);
    // Before its end has come, if there is no end in sight.
    is_the_last(server, &format!("GET {}", target(2000)), 414);
}

fn a_head_has_a_size(server: &Server) {
    let server = &strict(server, SMALL);
    let head = |size: usize| {
        let frame = "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nX: \r\n\r\n";
        frame.replace("X: ", &format!("X: {}", "x".repeat(size - frame.len())))
    };
    let fields = |count: usize| {
        let others: String = (1..count).map(|n| format!("X{n}: y\r\n")).collect();
        format!("GET /small.txt HTTP/1.1\r\nHost: localhost\r\n{others}\r\n")
    };
    for fitting in [head(1000), fields(10)] {
        let mut client = server.connect();
        client.send(&fitting);
        assert_eq!(client.response().text(), "small\n");
    }
    is_the_last(server, &head(1001), 431);
    is_the_last(server, head(5000).trim_end(), 431);
    is_the_last(server, &fields(11), 431);
}

fn a_body_has_a_size(server: &Server) {
    let server = &strict(server, SMALL);
    let sized = |size: usize| {
        let body = "x".repeat(size);
        format!("GET /small.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n{body}")
    };
    let chunked = |size: usize| {
        let chunk = format!("64\r\n{}\r\n", "x".repeat(100)).repeat(size / 100);
        let last = "x".repeat(size % 100);
        let last = if last.is_empty() { last } else { format!("{:x}\r\n{last}\r\n", size % 100) };
        let head = "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
        format!("{head}{chunk}{last}0\r\n\r\n")
    };
    for fitting in [sized(1000), chunked(1000)] {
        let mut client = server.connect();
        client.send(fitting);
        assert_eq!(client.response().text(), "small\n");
        assert_eq!(client.get("/small.txt").text(), "small\n");
    }
    is_the_last(server, &sized(1001), 413);
    is_the_last(server, &chunked(1001), 413);
    // A client need not send a body that would be refused.
    let head =
        "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\nExpect: 100-continue\r\n\r\n";
    is_the_last(server, head, 413);
}

/// The third of three says that it is the last; more than `pipelined_max` at a time.
fn a_connection_has_a_number_of_requests(server: &Server) {
    let server = &strict(server, SMALL);
    let mut client = server.connect();
    client.send("GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(5));
    for option in [None, None, Some("close")] {
        let response = client.response();
        assert_eq!((response.text(), response.field("connection")), ("small\n", option));
    }
    client.expect_end();
}

/// Clients, all at once, that stall in a head, or in a body whose request has been answered.
fn a_request_has_a_time(server: &Server) {
    let server = &strict(server, SHORT);
    let beginnings = [
        "G",
        "GET /small.txt HTTP/1.1\r\nHost: localhost\r\n",
        "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nGET",
        "GET /small.txt HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nGET",
    ];
    // Also after an answered request.
    let good = "GET /alphabet.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let inputs: Vec<_> = beginnings
        .iter()
        .flat_map(|beginning| [(*beginning).to_owned(), format!("{good}{beginning}")])
        .collect();
    let begin = |input| {
        let mut client = server.connect();
        client.send(input);
        (input, client)
    };
    let mut clients: Vec<_> = inputs.iter().map(begin).collect();
    for (input, client) in &mut clients {
        if input.starts_with(good) {
            assert_eq!(client.response().text(), crate::museum::ALPHABET);
        }
        let response = client.response();
        if input.contains("\r\n\r\n5") || input.ends_with("\r\n\r\nGET") {
            assert_eq!((response.text(), response.field("connection")), ("small\n", None), "{input:?}");
        } else {
            assert_eq!((response.status, response.field("connection")), (408, Some("close")), "{input:?}");
        }
        client.expect_end();
    }
}

/// Between two requests there is no status to send.
fn an_idle_connection_has_a_time(server: &Server) {
    let server = &strict(server, SHORT);
    let mut client = server.connect();
    assert_eq!(client.get("/small.txt").text(), "small\n");
    client.expect_end();
}

/// Lowers the workers' limit of descriptors, and restores it: meanwhile files that are not open are a 503 with
/// `Retry-After`.
fn without_descriptors_there_is_a_word_and_a_way_back(server: &Server) {
    let folder = Folder::new();
    folder.write("a.txt", "a").write("last.txt", "last");
    for attempt in 0..ATTEMPTS {
        folder.write(&format!("{attempt}.txt"), attempt.to_string());
    }
    let architecture = crate::museum::architecture_of(server);
    let server = Server::serve(folder, &["--architecture", &architecture, "--user", "root"]);
    let mut client = server.connect();
    assert_eq!(client.get("/a.txt").text(), "a");
    let before = getrlimit(Resource::Nofile);
    let allow = |count: Option<u64>| {
        for worker in server.workers() {
            let limit = Rlimit { current: count, maximum: before.maximum };
            prlimit(Some(worker), Resource::Nofile, limit).expect("a limit");
        }
    };
    let refused = (0..ATTEMPTS).any(|attempt| {
        allow(Some(open_descriptors(&server)));
        let (path, response) = (format!("/{attempt}.txt"), client.get(&format!("/{attempt}.txt")));
        allow(before.current);
        if response.status == 200 {
            return false; // A descriptor was counted that a worker had only for a moment.
        }
        assert_eq!((response.status, response.field("retry-after")), (503, Some("1")));
        assert_eq!(response.field("connection"), None, "the connection has done nothing wrong");
        assert_eq!(client.get(&path).text(), attempt.to_string());
        true
    });
    assert!(refused, "no descriptor was missing in {ATTEMPTS} attempts");
    assert_eq!(client.get("/last.txt").text(), "last");
}

/// How often descriptors are counted: one may be open for a moment just then, and leave room for another.
const ATTEMPTS: usize = 20;

/// No worker can have one more than this: the numbers below it are in use.
fn open_descriptors(server: &Server) -> u64 {
    let open = |worker: rustix::process::Pid| {
        let folder = format!("/proc/{}/fd", worker.as_raw_nonzero());
        let numbers = fs::read_dir(folder).expect("its descriptors").filter_map(Result::ok);
        let mut numbers: Vec<u64> =
            numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        numbers.sort_unstable();
        // The first gap.
        (0..)
            .zip(&numbers)
            .find(|(index, number)| index != *number)
            .map_or(numbers.len() as u64, |(index, _)| index)
    };
    server.workers().into_iter().map(open).min().expect("a worker")
}
