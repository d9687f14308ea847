//! Requests and answers without an offer: ordinary FastCGI.

mod rig;

use std::io::{Read, Write};
use std::path::PathBuf;

use baton_fcgi::record::{RecordHeader, RecordType};
use baton_fcgi::request;
use baton_responder::Role;
use rig::{Server, application, text};

/// Writes the requested bytes, in pieces, and a line for the error log.
fn writer() -> (tempfile::TempDir, PathBuf) {
    application(|request| {
        let number = |name: &str| -> usize {
            std::str::from_utf8(request.variable(name).unwrap()).unwrap().parse().unwrap()
        };
        let (bytes, piece) = (number("BYTES"), number("PIECE"));
        for piece in text(bytes).chunks(piece) {
            request.write_all(piece).unwrap();
        }
        request.log(b"that was all\n").unwrap();
    })
}

#[test]
fn responses_arrive_whole_however_they_are_written() {
    let (_dir, path) = writer();
    let mut server = Server::connect(&path);
    for (bytes, piece) in [
        (0, 1),
        (10, 1),
        (65_528, 1000),
        (65_529, 65_529),
        (100_000, 7),
        (5_000_000, 5_000_000),
        (300_000, 70_000),
    ] {
        server.ask(&[("BYTES", &bytes.to_string()), ("PIECE", &piece.to_string())], b"");
        let reply = server.reply();
        assert!(reply.stdout == text(bytes), "{bytes} bytes in pieces of {piece}");
        assert_eq!((reply.stderr, reply.end), (b"that was all\n".to_vec(), Some(0)));
    }
}

/// Large output is cut into the largest records that need no padding.
#[test]
fn records_are_large() {
    let (_dir, path) = writer();
    let mut server = Server::connect(&path);
    server.ask(&[("BYTES", "200000"), ("PIECE", "200000")], b"");
    let mut lengths = Vec::new();
    loop {
        let mut header = [0; 8];
        server.socket.read_exact(&mut header).unwrap();
        let header = RecordHeader::parse(&header).unwrap();
        let mut content = vec![0; usize::from(header.content_len) + usize::from(header.padding_len)];
        server.socket.read_exact(&mut content).unwrap();
        match RecordType::from_u8(header.kind).unwrap() {
            RecordType::Stdout => lengths.push(header.content_len),
            RecordType::EndRequest => break,
            _ => {}
        }
    }
    assert_eq!(lengths, [65_528, 65_528, 65_528, 200_000u32.wrapping_sub(3 * 65_528) as u16, 0]);
}

/// Variables that fill several records, and values that need four bytes for their length.
#[test]
fn variables_arrive_as_they_were_sent() {
    let (_dir, path) = application(|request| {
        for (name, value) in request.variables().map(|(n, v)| (n.to_vec(), v.to_vec())).collect::<Vec<_>>() {
            request.write_all(&[&name[..], b"=", &value, b"\n"].concat()).unwrap();
        }
    });
    let mut server = Server::connect(&path);
    let long = "v".repeat(70_000);
    let name = "N".repeat(200);
    let variables =
        [("A", ""), ("B", "x=y"), ("LONG", &long[..]), (&name[..], "short"), ("", "nameless"), ("LAST", "1")];
    server.ask(&variables, b"");
    let expected: String = variables.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    assert_eq!(String::from_utf8(server.reply().stdout).unwrap(), expected);
}

#[test]
fn bodies_are_read_or_skipped() {
    let (_dir, path) = application(|request| {
        let wanted: u64 = std::str::from_utf8(request.variable("READ").unwrap()).unwrap().parse().unwrap();
        let mut body = Vec::new();
        Read::by_ref(request).take(wanted).read_to_end(&mut body).unwrap();
        request.write_all(&body).unwrap();
    });
    let mut server = Server::connect(&path);
    for (sent, read) in [(0, 10), (100_000, 100_000), (50_000, 0), (30_000, 100), (10, 100)] {
        server.ask(&[("READ", &read.to_string())], &text(sent));
        let reply = server.reply();
        assert!(reply.stdout == text(sent.min(read)), "{read} of {sent}");
        assert_eq!(reply.end, Some(0));
    }
}

#[test]
fn connections_are_kept_as_long_as_the_server_wants() {
    let (_dir, path) = application(|request| request.write_all(b"ok").unwrap());
    for _ in 0..3 {
        let mut server = Server::connect(&path);
        for keeps in [true, true, false] {
            server.keeps = keeps;
            server.ask(&[], b"");
            assert_eq!(server.reply().stdout, b"ok");
        }
        assert!(server.is_closed());
    }
}

#[test]
fn questions_are_answered() {
    let (_dir, path) = application(|request| request.write_all(b"ok").unwrap());
    let mut server = Server::connect(&path);
    let mut records = Vec::new();
    request::push_get_values(&mut records, &["BATON_TRANSPORTS", "FCGI_MPXS_CONNS", "OTHER"]);
    server.socket.write_all(&records).unwrap();
    let mut answer = [0; 128];
    let read = server.socket.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[8..read]).into_owned();
    assert!(answer.contains("BATON_TRANSPORTSpassfd,shm"), "{answer:?}");
    assert!(answer.contains("FCGI_MPXS_CONNS0") && !answer.contains("OTHER"), "{answer:?}");
    server.ask(&[], b"");
    assert_eq!(server.reply().stdout, b"ok");
}

/// `FCGI_BEGIN_REQUEST` for a role.
fn begin(id: u16, role: u8) -> Vec<u8> {
    let kind = RecordType::BeginRequest as u8;
    let header = RecordHeader { kind, request_id: id, content_len: 8, padding_len: 0 };
    [&header.to_bytes()[..], &[0, role, 1, 0, 0, 0, 0, 0]].concat()
}

#[test]
fn roles_are_told_and_unknown_ones_refused() {
    let (_dir, path) = application(|request| {
        let role = request.role();
        write!(request, "{role:?}").unwrap();
    });
    let mut server = Server::connect(&path);
    server.socket.write_all(&begin(9, 42)).unwrap();
    let mut refusal = [0; 16];
    server.socket.read_exact(&mut refusal).unwrap();
    assert_eq!((refusal[1], refusal[3], refusal[12]), (RecordType::EndRequest as u8, 9, 3));
    for (number, role) in [(1, Role::Responder), (2, Role::Authorizer), (3, Role::Filter)] {
        let mut records = begin(rig::ID, number);
        request::push_params(&mut records, rig::ID, b"");
        request::push_stdin_end(&mut records, rig::ID);
        server.socket.write_all(&records).unwrap();
        server.expect();
        assert_eq!(String::from_utf8(server.reply().stdout).unwrap(), format!("{role:?}"));
    }
}

/// A second request on the connection is refused; the first goes on.
#[test]
fn requests_are_not_mixed() {
    let (_dir, path) = application(|request| {
        let mut body = Vec::new();
        request.read_to_end(&mut body).unwrap();
        request.write_all(&body).unwrap();
    });
    let mut server = Server::connect(&path);
    let mut records = begin(rig::ID, 1);
    request::push_params(&mut records, rig::ID, b"");
    request::push_stdin(&mut records, rig::ID, b"one ");
    records.extend(begin(2, 1));
    request::push_params(&mut records, 2, b"");
    request::push_stdin(&mut records, rig::ID, b"request");
    request::push_stdin_end(&mut records, rig::ID);
    server.socket.write_all(&records).unwrap();
    server.expect();
    assert_eq!(server.reply().stdout, b"one request");
}

/// A broken connection does not end the application.
#[test]
fn broken_input_ends_only_its_connection() {
    let (_dir, path) = application(|request| {
        let mut body = Vec::new();
        let read = request.read_to_end(&mut body).map_err(|error| error.kind());
        let _ = write!(request, "{read:?}");
    });
    let mut aborted = begin(rig::ID, 1);
    request::push_params(&mut aborted, rig::ID, b"");
    request::push_abort(&mut aborted, rig::ID);
    let mut cut = begin(rig::ID, 1);
    request::push_params(&mut cut, rig::ID, &[5, 5, b'x']);
    for broken in [&b"GET / HTTP/1.1\r\n\r\n"[..], &aborted, &cut, &aborted[..20]] {
        let mut server = Server::connect(&path);
        server.socket.write_all(broken).unwrap();
        server.socket.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        // Reset or closed: the application has gone on to the next connection.
        let _ = server.socket.read_to_end(&mut answer);
    }
    let mut server = Server::connect(&path);
    server.ask(&[], b"body");
    assert_eq!(server.reply().stdout, b"Ok(4)");
}
