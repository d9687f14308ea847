//! The system calls of a request, counted from outside.

use std::process::Command;

use crate::program::{Library, Program, compiled, directory_of_ours};
use crate::rig::{Client, HTTP_1_1, Region, Server};

/// Has a program answer requests under `strace`: the calls of the second, as `strace` writes them.
fn calls(ask: impl Fn(&mut Server, &Client)) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("trace");
    let mut command = Command::new("strace");
    command.arg("-o").arg(&trace).arg("-E");
    command.arg(format!("LD_LIBRARY_PATH={}", directory_of_ours().display()));
    command.arg(compiled("streams"));
    let mut program = Program::start(command, Library::Original);
    let mut server = program.connect();
    // The next offer reports what was freed after the end, not a record that wakes the program.
    server.region = Some(Region { frees_in: 0, ..Region::new(1 << 20) });
    for _ in 0..3 {
        let client = Client::new();
        ask(&mut server, &client);
        assert_eq!(server.reply().end, Some(0));
    }
    // The program ends, and the trace is complete.
    server.ask(&[("QUERY_STRING", "q")], b"");
    server.reply();
    drop(server);
    program.wait();
    let trace = std::fs::read_to_string(trace).unwrap();
    // The standard library looks at descriptors before it closes them, in debug builds.
    let calls: Vec<_> = trace.lines().filter(|line| !line.starts_with("fcntl(")).collect();
    let mut requests = calls.split(|line| line.starts_with("recvmsg(")).skip(2);
    requests.next().expect("a second request").iter().map(|&line| line.to_owned()).collect()
}

/// Their names.
fn names(calls: &[String]) -> Vec<&str> {
    calls.iter().filter_map(|line| line.split_once('(')).map(|(name, _)| name).collect()
}

/// Head and body leave with one call, from the program's own memory; the client's descriptor is closed; the server is
/// told. (The request was read with the call before these.)
#[test]
fn an_answer_on_the_clients_socket_takes_three_calls() {
    for query in ["l100", "l40000", "l400000"] {
        let ask = |server: &mut Server, client: &Client| {
            rustix::net::sockopt::set_socket_send_buffer_size(&client.far, 2 << 20).unwrap();
            server.pass(client, HTTP_1_1, 60_000, &[("QUERY_STRING", query)], b"");
        };
        assert_eq!(names(&calls(ask)), ["sendmsg", "close", "sendmsg"], "{query}");
    }
}

/// A page whose length is declared leaves as a whole although it is made piece by piece, up to 256 KiB with its head;
/// beyond that as often as the buffer of one record's size is full.
#[test]
fn a_page_made_in_place_leaves_at_once_if_it_is_known_to_be_short() {
    for (query, expected) in [("i60000", 1), ("i200000", 1), ("i262144", 5)] {
        let ask = |server: &mut Server, client: &Client| {
            rustix::net::sockopt::set_socket_send_buffer_size(&client.far, 2 << 20).unwrap();
            server.pass(client, HTTP_1_1, 60_000, &[("QUERY_STRING", query)], b"");
        };
        let calls = calls(ask);
        let names = names(&calls);
        let before_the_close =
            names.iter().position(|name| *name == "close").expect("the client's descriptor");
        assert_eq!(names[..before_the_close], vec!["sendmsg"; expected], "{query}");
    }
}

#[test]
fn a_shared_answer_takes_one_call_and_one_to_wait() {
    for query in ["l100", "l40000", "l200000"] {
        let ask = |server: &mut Server, _: &Client| server.share(1 << 20, &[("QUERY_STRING", query)], b"");
        assert_eq!(names(&calls(ask)), ["sendmsg", "ppoll"], "{query}");
    }
}

/// Up to one record the response leaves with its end; a larger one leaves at once, all records with one call.
#[test]
fn a_plain_answer_takes_one_call_or_two_and_one_to_wait() {
    for (query, expected) in [("l100", 1), ("l60000", 1), ("l150000", 2)] {
        let ask = |server: &mut Server, _: &Client| server.ask(&[("QUERY_STRING", query)], b"");
        let expected = [vec!["sendmsg"; expected], vec!["ppoll"]].concat();
        assert_eq!(names(&calls(ask)), expected, "{query}");
    }
}

/// Packets are filled where more output is certain to follow, and the last output is never held back.
#[test]
fn the_socket_waits_only_for_what_follows() {
    let ask_about = |about| {
        let calls = calls(move |server, client| {
            rustix::net::sockopt::set_socket_send_buffer_size(&client.far, 2 << 20).unwrap();
            server.pass(client, about, 60_000, &[("QUERY_STRING", "p200000")], b"");
        });
        let sent = calls.iter().filter(|line| line.starts_with("sendmsg("));
        sent.map(|line| line.contains("MSG_MORE")).collect::<Vec<_>>()
    };
    // Three buffers and the rest to the client, the report to the server.
    assert_eq!(ask_about(HTTP_1_1), [true, true, true, false, false]);
    // The head alone to the client: no body follows it.
    let head = baton_fcgi::offer::Client { head: true, ..HTTP_1_1 };
    assert_eq!(ask_about(head), [false, false]);
}
