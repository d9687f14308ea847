//! When programs end.

use std::io::Read;
use std::net::Shutdown;

use baton_fcgi::request;
use rustix::net::SendFlags;
use rustix::process::{Signal, kill_process};

use crate::program::{Library, Program};

/// `SIGUSR1` ends a program that waits: for a connection, or for a request on one that is kept.
#[test]
fn the_signal_of_the_original_ends_a_program_that_waits() {
    for library in [Library::Original, Library::Ours] {
        for keeps_connection in [false, true] {
            let mut program = Program::of("streams", &[], library);
            let mut server = program.connect();
            server.ask(&[("QUERY_STRING", "e")], b"");
            assert_eq!(server.reply().end, Some(0), "{library:?}");
            let kept = keeps_connection.then_some(server);
            // The signal may come before the program waits: it is sent until it has been noticed.
            let pid = program.pid();
            let noticed = std::sync::atomic::AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !noticed.load(std::sync::atomic::Ordering::Relaxed) {
                        let _ = kill_process(pid, Signal::USR1);
                        std::thread::sleep(std::time::Duration::from_millis(10));
                    }
                });
                let status = program.wait();
                noticed.store(true, std::sync::atomic::Ordering::Relaxed);
                assert_eq!(status.code(), Some(0), "{library:?}, {keeps_connection}");
            });
            drop(kept);
        }
    }
}

/// Goal: a signal at any time loses no request. Method: signal and request at once, on a kept connection, repeatedly;
/// a server that cannot send the request asks another process.
#[test]
fn no_request_is_lost_to_the_signal() {
    for _ in 0..60 {
        let program = Program::of("streams", &[], Library::Ours);
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "e")], b"");
        assert_eq!(server.reply().end, Some(0));
        let mut records = Vec::new();
        let mut block = Vec::new();
        baton_fcgi::params::push(&mut block, b"QUERY_STRING", b"e");
        request::push_begin(&mut records, 1, true);
        request::push_params(&mut records, 1, &block);
        request::push_stdin_end(&mut records, 1);
        let pid = program.pid();
        let sent = std::thread::scope(|scope| {
            scope.spawn(|| kill_process(pid, Signal::USR1).unwrap());
            rustix::net::send(&server.socket, &records, SendFlags::NOSIGNAL)
        });
        if sent.is_ok() {
            server.socket.shutdown(Shutdown::Write).unwrap();
            let mut answer = Vec::new();
            // It may end by a reset, if the program did not read the end of the stream.
            let _ = server.socket.read_to_end(&mut answer);
            assert!(!answer.is_empty(), "it was sent, and lost");
        }
    }
}

/// `FCGX_ShutdownPending` lets the request at hand end, and no other begin.
#[test]
fn a_program_can_end_itself() {
    for library in [Library::Original, Library::Ours] {
        let mut program = Program::of("streams", &[], library);
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "q")], b"");
        let reply = server.reply();
        assert_eq!(reply.stdout, b"Status: 404 Not Found\r\nX-Empty:\r\n\r\n");
        assert_eq!(reply.end, Some(0));
        drop(server);
        assert_eq!(program.wait().code(), Some(0), "{library:?}");
    }
}

/// A server that leaves in the middle, or writes nonsense, costs only its connection.
#[test]
fn broken_connections_end_by_themselves() {
    use std::io::Write;
    for library in [Library::Original, Library::Ours] {
        let program = Program::of("streams", &[], library);
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "c3000000")], b"");
        drop(server);
        let mut server = program.connect();
        server.socket.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        drop(server);
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "l10")], b"");
        assert_eq!(server.reply().stdout.len(), 58, "{library:?}");
    }
}
