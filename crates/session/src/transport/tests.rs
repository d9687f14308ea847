//! Goal: a transport carries the same bytes with TLS on it. Method: the library's client at the other end of a stream in
//! memory.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use baton_buf::{Buffer, FileSlice, OpenFile, Stop};
use baton_telemetry::clock::Clock;
use baton_tls::{FailureReason, Version};

use super::memory::{self, Left, connect};
use super::tls_client::{NAME, TlsClient, server};
use super::{HandshakeNeed, Received, Transport};
use crate::send_queue::SendfileMode;
use crate::send_queue::{Flush, SendPolicy, SendQueue, is_resident};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server's end and a client's, with room for so many bytes of the server's.
fn ends(room: usize) -> (Transport, TlsClient) {
    let (server_end, client_end) = connect(room, true);
    let peer = "192.0.2.1:1".parse().unwrap();
    (memory::transport(server_end, peer, Some(&server())), TlsClient::new(client_end, NAME))
}

/// Shakes hands; the client makes room for `room` bytes whenever there is none.
fn shake(transport: &mut Transport, client: &mut TlsClient, room: usize) -> HandshakeNeed {
    client.send(b"");
    loop {
        transport.handle_readable();
        match transport.shake_hands() {
            HandshakeNeed::Readable => assert_eq!(client.take(), Ok(Vec::new())),
            HandshakeNeed::Writable => {
                client.take().unwrap();
                client.end.make_room(room);
            }
            HandshakeNeed::Work(mut machine) => {
                assert!(matches!(transport.shake_hands(), HandshakeNeed::WorkUnderWay));
                machine.work();
                transport.handle_handshake_work(machine);
            }
            need => return need,
        }
    }
}

/// Both ends after a handshake, with room for what the server sends.
fn established() -> (Transport, TlsClient) {
    let (mut transport, mut client) = ends(1 << 20);
    assert!(matches!(shake(&mut transport, &mut client, 0), HandshakeNeed::Nothing));
    (transport, client)
}

fn policy() -> SendPolicy {
    SendPolicy {
        sendfile: SendfileMode::NonBlocking,
        quantum_bytes: u64::MAX,
        test_residency: false,
        is_resident,
        kernel_tls: true,
    }
}

fn flush(transport: &mut Transport, send_queue: &mut SendQueue, policy: &SendPolicy) -> Flush {
    transport.flush(send_queue, policy, &mut [0; 64 * 1024], false, &Clock::default())
}

fn receive_all(transport: &mut Transport, bytes_at_once: usize) -> (Vec<u8>, Received) {
    let mut all = Vec::new();
    loop {
        let mut into = vec![0; bytes_at_once];
        match transport.receive(&mut into) {
            Received::Bytes(count) => all.extend_from_slice(&into[..count]),
            end => return (all, end),
        }
    }
}

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + at / 251) as u8).collect()
}

fn file_of(bytes: &[u8]) -> Arc<OpenFile> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    Arc::new(OwnedFd::from(file).into())
}

#[test]
fn hands_are_shaken_through_any_bottleneck() {
    for room in [1, 7, 100, 1 << 20] {
        let (mut transport, mut client) = ends(room);
        assert!(transport.is_handshaking() && transport.tls().is_none());
        assert_eq!(receive_all(&mut transport, 10), (Vec::new(), Received::Nothing));
        assert!(matches!(shake(&mut transport, &mut client, room), HandshakeNeed::Nothing));
        assert_eq!(transport.tls().unwrap().version, Version::Tls13);
        assert!(!transport.is_handshaking() && !transport.sends_files() && !transport.has_missed_tls());
    }
}

/// However small the reader's memory is, and although a request rides behind the handshake.
#[test]
fn data_arrive_in_any_pieces() {
    let data = some_bytes(100_000);
    for bytes_at_once in [1, 100, 16_384, 65_536, 200_000] {
        let (mut transport, mut client) = ends(1 << 20);
        client.send(REQUEST);
        assert!(matches!(shake(&mut transport, &mut client, 0), HandshakeNeed::Nothing));
        assert!(transport.is_readable());
        let (request, rest) = receive_all(&mut transport, bytes_at_once);
        assert_eq!((&request[..], rest), (REQUEST, Received::Nothing));
        assert!(!transport.is_readable());
        for piece in data.chunks(33_000) {
            client.send(piece);
        }
        transport.handle_readable();
        assert!(receive_all(&mut transport, bytes_at_once) == (data.clone(), Received::Nothing));
        assert!(!transport.is_readable());
    }
}

/// What is left of a record that the reader took a part of counts as readable: no poller will announce it.
#[test]
fn what_is_opened_and_not_taken_is_readable() {
    let (mut transport, mut client) = established();
    client.send(b"12345");
    client.send(b"67890");
    transport.handle_readable();
    let mut into = [0; 3];
    for (expected, is_readable) in [(&b"123"[..], true), (b"45", true), (b"678", true), (b"90", false)] {
        let Received::Bytes(count) = transport.receive(&mut into) else { panic!("nothing") };
        assert_eq!((&into[..count], transport.is_readable()), (expected, is_readable));
    }
}

/// Memory and files in turn, through any bottleneck. What the stream has not taken counts as unsent, and the send queue is not
/// empty before it has.
#[test]
fn everything_that_is_sent_arrives() {
    for room in [1000, 20_000, 100_000, 10 << 20] {
        let (mut transport, mut client) = established();
        let mut send_queue = SendQueue::default();
        let mut expected = Vec::new();
        for round in 0..3 {
            for len in [1, 300, 5000] {
                let bytes = some_bytes(len + round);
                expected.extend_from_slice(&bytes);
                send_queue.push(Buffer::new(bytes));
            }
            let bytes = some_bytes(200_000 + round);
            expected.extend_from_slice(&bytes);
            send_queue.push(FileSlice::new(file_of(&bytes), 0, bytes.len() as u64));
        }
        let mut received = client.take().unwrap();
        loop {
            let flush = flush(&mut transport, &mut send_queue, &policy());
            received.extend(client.take().unwrap());
            assert_eq!(send_queue.sent() + send_queue.queued(), expected.len() as u64);
            match flush {
                Flush::Done => break,
                Flush::Full => {
                    assert!(!send_queue.is_empty(), "the session would not try again");
                    client.end.make_room(room);
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(send_queue.is_empty());
        assert!(received == expected, "{} of {}", received.len(), expected.len());
    }
}

/// Other clients have turns, and no record is lost between them.
#[test]
fn a_quantum_ends_a_flush() {
    let (mut transport, mut client) = established();
    let mut send_queue = SendQueue::default();
    let data = some_bytes(50_000);
    send_queue.push(FileSlice::new(file_of(&data), 0, data.len() as u64));
    let policy = SendPolicy { quantum_bytes: 20_000, ..policy() };
    let mut received = Vec::new();
    for sent in [20_000, 40_000] {
        assert!(matches!(flush(&mut transport, &mut send_queue, &policy), Flush::Quantum));
        received.extend(client.take().unwrap());
        assert_eq!((send_queue.sent(), received.len()), (sent, sent as usize));
    }
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy), Flush::Done));
    received.extend(client.take().unwrap());
    assert!(received == data);
}

#[test]
fn both_ends_tell_the_other_that_they_end() {
    let (mut transport, mut client) = established();
    client.send(b"last");
    client.say_end();
    transport.handle_readable();
    assert_eq!(receive_all(&mut transport, 100), (b"last".to_vec(), Received::End));
    assert!(transport.has_ended_input());

    let mut send_queue = SendQueue::default();
    send_queue.push(Buffer::new(b"answer".to_vec()));
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Done));
    assert!(transport.end_output());
    assert_eq!(client.take(), Ok(b"answer".to_vec()));
    assert!(client.has_heard_end());
    assert_eq!(client.end.server_left(), Left::InOrder);
}

/// The stream takes what is sent, and nothing more: the client must be told with the last data that they are the last.
#[test]
fn a_full_line_hears_of_the_end() {
    let (mut transport, mut client) = ends(0);
    assert!(matches!(shake(&mut transport, &mut client, 10_000), HandshakeNeed::Nothing));
    client.take().unwrap();
    let mut send_queue = SendQueue::default();
    send_queue.push(Buffer::new(some_bytes(20_000)));
    transport.end_behind_output();
    let mut received = Vec::new();
    while !matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Done) {
        client.end.make_room(1);
        received.extend(client.take().unwrap());
    }
    received.extend(client.take().unwrap());
    assert!(received == some_bytes(20_000));
    assert!(client.has_heard_end());
}

/// A client that takes less than a batch at a time is seen to take it: it would be given up as too slow.
#[test]
fn a_slow_client_is_seen_to_take() {
    let (mut transport, mut client) = ends(0);
    assert!(matches!(shake(&mut transport, &mut client, 10_000), HandshakeNeed::Nothing));
    let mut send_queue = SendQueue::default();
    send_queue.push(Buffer::new(some_bytes(60_000)));
    while send_queue.sent() == 0 {
        assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Full));
        client.end.make_room(1000);
    }
    let before = send_queue.sent();
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Full));
    assert!((900..=1000).contains(&(send_queue.sent() - before)), "{} after {before}", send_queue.sent());
}

/// Data in records that the stream has not taken are not sent, whether more is behind them or not, nor when the client has left.
#[test]
fn what_waits_in_records_is_not_sent() {
    let (mut transport, mut client) = ends(0);
    assert!(matches!(shake(&mut transport, &mut client, 10_000), HandshakeNeed::Nothing));
    let mut send_queue = SendQueue::default();
    // The second piece is of another kind, so that the first one waits for it in its records.
    send_queue.push(Buffer::new(some_bytes(30_000)));
    send_queue.push(FileSlice::new(file_of(&some_bytes(30_000)), 0, 30_000));
    let sent = |transport: &Transport, send_queue: &SendQueue| send_queue.sent() - transport.early_data();
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Full));
    let before = sent(&transport, &send_queue);
    client.end.make_room(300);
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Full));
    let after = sent(&transport, &send_queue);
    assert!((200..=300).contains(&(after - before)), "{before}, {after}");
    client.end.close();
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Over(Stop::PeerGone)));
    assert_eq!(sent(&transport, &send_queue), after);
}

/// An answer that is cut short must not look complete.
#[test]
fn a_reset_is_not_called_an_end() {
    let (mut transport, mut client) = established();
    transport.reset();
    transport.say_end();
    client.take().unwrap();
    assert!(!client.has_heard_end());
}

/// The end of the stream without a word, in the middle of a record.
#[test]
fn a_client_that_leaves_in_a_record_has_ended() {
    let (mut transport, client) = established();
    client.end.send(&[23, 3, 3, 1, 0, 1, 2, 3]);
    client.end.end_input();
    transport.handle_input_end();
    assert_eq!(receive_all(&mut transport, 100), (Vec::new(), Received::End));
}

#[test]
fn rubbish_ends_the_connection_with_an_alert() {
    let (mut transport, mut client) = established();
    client.end.send(b"GET / HTTP/1.1\r\n\r\n");
    transport.handle_readable();
    assert_eq!(receive_all(&mut transport, 100), (Vec::new(), Received::End));
    let alert = rustls::AlertDescription::UnexpectedMessage;
    assert_eq!(client.take(), Err(rustls::Error::AlertReceived(alert)));
}

#[test]
fn a_client_that_speaks_in_clear_is_heard() {
    let (mut transport, client) = ends(1 << 20);
    client.end.send(REQUEST);
    assert!(matches!(transport.shake_hands(), HandshakeNeed::Clear));
    assert!(transport.has_missed_tls() && transport.is_readable() && transport.tls().is_none());
    assert_eq!(receive_all(&mut transport, 5), (REQUEST.to_vec(), Received::Nothing));
    let mut send_queue = SendQueue::default();
    send_queue.push(Buffer::new(b"in clear".to_vec()));
    assert!(matches!(flush(&mut transport, &mut send_queue, &policy()), Flush::Done));
    assert_eq!(client.end.take_output(), b"in clear");
}

#[test]
fn a_failed_handshake_has_its_reason() {
    let reason = |need| match need {
        HandshakeNeed::Failed(failure) => failure.reason,
        other => panic!("{other:?}"),
    };
    let (mut transport, mut client) = ends(1 << 20);
    client.send(b"");
    client.end.end_input();
    while let HandshakeNeed::Work(mut machine) = transport.shake_hands() {
        machine.work();
        transport.handle_handshake_work(machine);
    }
    transport.handle_readable();
    assert_eq!(reason(transport.shake_hands()), FailureReason::Left);

    let (server_end, client_end) = connect(1 << 20, true);
    let mut transport = memory::transport(server_end, "192.0.2.1:1".parse().unwrap(), Some(&server()));
    let mut client = TlsClient::new(client_end, "other.test");
    client.send(b"");
    assert_eq!(reason(transport.shake_hands()), FailureReason::UnknownName);
    let alert = rustls::AlertDescription::UnrecognisedName;
    assert_eq!(client.take(), Err(rustls::Error::AlertReceived(alert)));
}
