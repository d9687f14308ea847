//! With output in any pieces, the client receives one response, and the server the rest.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;

use baton_fcgi::application::{push_end, push_stderr, push_stdout};
use baton_fcgi::offer::{Bodies, Client, Offer, Transport};
use baton_fcgi::record::{RecordHeader, RecordType};
use baton_fcgi::request::{push_begin, push_params};
use baton_fcgi::response::{Part, ProtocolStatus, ResponseReader};
use libc::iovec;
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::connection::{Connection, Outcome};

/// The request that is answered, and one that was never sent.
const ANSWERED: u16 = 1;
const OTHER: u16 = 2;

/// A record that a program writes.
#[derive(Debug, Clone)]
enum Written {
    Output { bytes: usize, padding: u8 },
    Errors(usize),
    OfAnother(usize),
}

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![
        (1..20_000_usize, any::<u8>()).prop_map(|(bytes, padding)| Written::Output { bytes, padding }),
        (1..3000_usize).prop_map(Written::Errors),
        (0..300_usize).prop_map(Written::OfAnother),
    ]
}

/// The ends of a connection that has received a request with an offer of a client's socket.
struct Exchange {
    connection: Connection,
    application: UnixStream,
    server: UnixStream,
    client: UnixStream,
}

impl Exchange {
    fn begin() -> Self {
        let (server, application) = UnixStream::pair().expect("two sockets");
        let (server_end, client) = UnixStream::pair().expect("two sockets");
        let transport = Transport::PassFd(Client { minor: 1, keep: true, head: false });
        let mut block = Vec::new();
        Offer {
            transport,
            fds: 1,
            bodies: Bodies::default(),
            patience_ms: 10_000,
            holds: false,
            fields: b"",
        }
        .push(&mut block);
        baton_fcgi::params::push(&mut block, b"A", b"b");
        let mut bytes = Vec::new();
        push_begin(&mut bytes, ANSWERED, true);
        push_params(&mut bytes, ANSWERED, &block);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let passed = [server_end.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        sendmsg(&server, &[IoSlice::new(&bytes)], &mut control, SendFlags::empty()).expect("room");
        let this = Self { connection: Connection::new(), application, server, client };
        let mut received = 0;
        while received < 16 + 8 + 4 + 8 {
            let mut buffer = [0; 64];
            let part = iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            // SAFETY: `buffer` may be written.
            match unsafe { this.connection.receive(this.application.as_raw_fd(), &[part], 0) } {
                Outcome::Bytes(bytes) => received += bytes,
                _ => panic!("the request is not received"),
            }
        }
        this
    }

    /// The program writes these parts; false if the libc has to.
    fn send(&self, parts: &[&[u8]]) -> bool {
        let parts: Vec<_> = parts
            .iter()
            .map(|part| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() })
            .collect();
        // SAFETY: the parts may be read.
        match unsafe { self.connection.send(self.application.as_raw_fd(), &parts) } {
            Outcome::Bytes(bytes) => bytes == parts.iter().map(|part| part.iov_len).sum::<usize>(),
            _ => false,
        }
    }

    /// All that the server and the client have received.
    fn end(self) -> (Vec<u8>, Vec<u8>) {
        let Self { connection, application, mut server, mut client } = self;
        drop((connection, application));
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        server.read_to_end(&mut to_server).expect("an end");
        client.read_to_end(&mut to_client).expect("an end");
        (to_server, to_client)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_cut_of_the_output_is_the_same_answer(
        records in vec(written(), 0..8),
        cuts in vec((1..30_000_usize, 0..5_usize), 1..40),
    ) {
        let head = b"Status: 203 As told\r\nX-A: b\r\n\r\n";
        let (mut sent, mut body, mut errors, mut of_another) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        push_stdout(&mut sent, ANSWERED, head);
        for (number, record) in (0_u8..).zip(&records) {
            match *record {
                Written::Output { bytes, padding } => {
                    let content = vec![b'a' + number; bytes];
                    let kind = RecordType::Stdout as u8;
                    let header =
                        RecordHeader { kind, request_id: ANSWERED, content_len: bytes as u16, padding_len: padding };
                    sent.extend_from_slice(&header.to_bytes());
                    sent.extend_from_slice(&content);
                    sent.resize(sent.len() + usize::from(padding), 0);
                    body.extend(content);
                }
                Written::Errors(bytes) => {
                    push_stderr(&mut sent, ANSWERED, &vec![b'e'; bytes]);
                    errors.resize(errors.len() + bytes, b'e');
                }
                Written::OfAnother(bytes) => {
                    let start = sent.len();
                    push_stdout(&mut sent, OTHER, &vec![b'o'; bytes]);
                    of_another.extend_from_slice(&sent[start..]);
                }
            }
        }
        push_end(&mut sent, ANSWERED, 7, ProtocolStatus::RequestComplete);
        let exchange = Exchange::begin();
        let mut rest = &sent[..];
        for (bytes, parts) in cuts.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*bytes));
            rest = later;
            let length = now.len().div_ceil(parts + 1).max(1);
            prop_assert!(exchange.send(&now.chunks(length).collect::<Vec<_>>()));
            if rest.is_empty() {
                break;
            }
        }
        let (to_server, to_client) = exchange.end();

        let mut reader = ResponseReader::new(ANSWERED);
        let (mut told, mut end, mut answered) = (Vec::new(), None, None);
        let mut input = &to_server[..];
        loop {
            let (consumed, part) = reader.read(input).expect("FastCGI");
            match part {
                Part::Stderr(range) => told.extend_from_slice(&input[range]),
                Part::End { app_status, .. } => end = Some(app_status),
                Part::Answered(report) => answered = Some(report),
                Part::NeedMore => break,
                other => panic!("unexpected: {other:?}"),
            }
            input = &input[consumed..];
        }
        prop_assert_eq!((told, end), (errors, Some(7)));
        let answered = answered.expect("answered");
        prop_assert_eq!((answered.complete, answered.status), (true, 203));
        prop_assert_eq!(answered.body_bytes, body.len() as u64);
        let passed_on = to_server.windows(of_another.len().max(1)).any(|bytes| bytes == of_another);
        let others = records.iter().filter(|record| matches!(record, Written::OfAnother(1..))).count();
        prop_assert!(passed_on || others != 1, "records of another request are passed on");
        let (head, framed) = to_client.split_at(answered.head_bytes as usize);
        prop_assert!(head.starts_with(b"HTTP/1.1 203 As told\r\n") && head.ends_with(b"\r\n\r\n"));
        let is_chunked = head.windows(7).any(|bytes| bytes == b"chunked");
        let received = if is_chunked { unchunked(framed) } else { framed.to_vec() };
        prop_assert!(body == received);
    }
}

fn unchunked(mut framed: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let line = framed.iter().position(|byte| *byte == b'\r').expect("the length of a chunk");
        let length = std::str::from_utf8(&framed[..line]).expect("text");
        let length = usize::from_str_radix(length, 16).expect("a number");
        body.extend_from_slice(&framed[line + 2..line + 2 + length]);
        framed = framed[line + 2 + length..].strip_prefix(b"\r\n").expect("the end of a chunk");
        if length == 0 {
            assert!(framed.is_empty(), "nothing follows");
            return body;
        }
    }
}

/// Nothing of the write was taken, so the program can write something else: the end of the request.
#[test]
fn a_client_that_is_gone_is_a_broken_pipe_between_two_records() {
    let Exchange { connection, application, mut server, client } = Exchange::begin();
    drop(client);
    let write = |bytes: &[u8]| {
        let part = iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        // SAFETY: `bytes` may be read.
        match unsafe { connection.send(application.as_raw_fd(), &[part]) } {
            Outcome::Bytes(bytes) => Ok(bytes),
            Outcome::Failed(errno) => Err(errno),
            _ => panic!("there is an answer"),
        }
    };
    let mut output = Vec::new();
    push_stdout(&mut output, ANSWERED, b"X-A: b\r\n\r\nbody");
    assert_eq!(write(&output), Err(rustix::io::Errno::PIPE));
    assert_eq!(write(&output), Err(rustix::io::Errno::PIPE));
    // A part of a record cannot be taken back: the next bytes would count as its rest.
    assert_eq!(write(&output[..10]), Err(rustix::io::Errno::PIPE));
    let mut last = output.clone();
    push_end(&mut last, ANSWERED, 0, ProtocolStatus::RequestComplete);
    assert_eq!(write(&last), Ok(last.len()), "with the end it is taken, and dropped");
    drop(application);
    let mut told = Vec::new();
    server.read_to_end(&mut told).expect("an end");
    let (_, part) = ResponseReader::new(ANSWERED).read(&told).expect("FastCGI");
    assert!(matches!(part, Part::Answered(answered) if !answered.complete), "{part:?}");
}

#[test]
fn what_is_not_fastcgi_reaches_the_server_as_it_is() {
    let exchange = Exchange::begin();
    let mut output = Vec::new();
    push_stdout(&mut output, ANSWERED, b"X-A: b\r\n\r\nbody");
    assert!(exchange.send(&[&output, b"oh, well ", b"whatever"]));
    // From here on the libc is asked to.
    assert!(!exchange.send(&[&output]));
    (&exchange.application).write_all(b"!").expect("room");
    let (to_server, to_client) = exchange.end();
    assert_eq!((&to_server[..], &to_client[..]), (&b"oh, well whatever!"[..], &b""[..]));
}
