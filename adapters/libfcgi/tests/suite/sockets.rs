//! Sockets that programs open themselves, and connections over the network.

use std::io::Write;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::process::Command;
use std::time::Instant;

use crate::port::Port;
use crate::program::{Library, Program, compiled};
use crate::rig::{Server, TIMEOUT};

/// `FCGX_OpenSocket` at a path and at a port; the network connection ends without losing data.
#[test]
fn programs_open_their_own_sockets() {
    for library in [Library::Original, Library::Ours] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own");
        let program = Program::of("streams", &["2", path.to_str().unwrap()], library);
        let mut server = Server::connect(&path);
        server.ask(&[("QUERY_STRING", "l10")], b"");
        assert_eq!(server.reply().end, Some(0), "{library:?}");
        drop(program);

        let port = Port::reserve();
        let _program = Program::of("streams", &["2", &format!("127.0.0.1:{}", port.number)], library);
        let mut server = connected(&port);
        server.ask(&[("QUERY_STRING", "l3000000")], b"");
        let reply = server.reply();
        assert_eq!((reply.end, reply.stdout.len()), (Some(0), 3_000_053), "{library:?}");
    }
}

/// Over the network, once the program listens. All that the rig does with its connection is done with that, too.
fn connected(port: &Port) -> Server {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match TcpStream::connect(("127.0.0.1", port.number)) {
            Ok(socket) => return Server::new(OwnedFd::from(socket).into()),
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Where only some servers are allowed, others are not heard.
#[test]
fn servers_can_be_restricted() {
    for library in [Library::Original, Library::Ours] {
        for (allowed, answers) in [("127.0.0.1", true), ("10.0.0.1", false)] {
            if library == Library::Original && !answers {
                // The original of this version looks at a copy of the list that it never filled.
                continue;
            }
            let port = Port::reserve();
            let mut command = Command::new(compiled("streams"));
            command.args(["1", &format!("127.0.0.1:{}", port.number)]).env("FCGI_WEB_SERVER_ADDRS", allowed);
            let _program = Program::start(command, library);
            let mut server = connected(&port);
            if answers {
                server.ask(&[("QUERY_STRING", "l10")], b"");
                assert_eq!(server.reply().end, Some(0), "{library:?}");
            } else {
                let _ = server.socket.write_all(b"");
                assert_eq!(server.reply().end, None, "closed at once");
            }
        }
    }
}

/// A local server that connects and says nothing does not hold a program for long.
#[test]
fn silent_connections_are_given_up() {
    for library in [Library::Original, Library::Ours] {
        let mut command = Command::new(compiled("streams"));
        command.env("LIBFCGI_IS_AF_UNIX_KEEPER_POLL_TIMEOUT", "50");
        let program = Program::start(command, library);
        let silent = program.connect();
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "l10")], b"");
        assert_eq!(server.reply().end, Some(0), "{library:?}");
        drop(silent);
    }
}

/// A connection that is not kept ends with its request, even if a process that the program has started still holds it.
#[test]
fn connections_end_with_their_last_request() {
    for library in [Library::Original, Library::Ours] {
        let program = Program::of("streams", &[], library);
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "l10")], b"");
        assert_eq!(server.reply().end, Some(0));
        server.keeps = false;
        server.ask(&[("QUERY_STRING", "h")], b"");
        assert_eq!(server.reply().end, Some(0));
        assert!(server.is_closed(), "{library:?}");
        let mut server = program.connect();
        server.ask(&[("QUERY_STRING", "l10")], b"");
        assert_eq!(server.reply().end, Some(0), "{library:?}");
    }
}
