//! In any pieces, a program receives the server's bytes without offers and records for the library.

use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use baton_fcgi::application::{Part, RequestReader};
use baton_fcgi::offer::{Bodies, NAME};
use baton_fcgi::record::{RecordHeader, RecordType};
use baton_fcgi::request::{
    push_begin, push_file, push_freed, push_get_values, push_give_back, push_params, push_stdin,
    push_stdin_end,
};
use baton_fcgi::{FileRange, params};
use baton_responder::Control;
use proptest::collection::vec;
use proptest::prelude::*;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::{Inbox, Stage, TRANSPORTS};

/// A record of the server, and where it goes.
#[derive(Debug, Clone)]
enum Sent {
    /// A request begins, with or without an offer of so many bytes in the first record of its parameters, followed by
    /// so many bytes of parameters.
    Begin {
        offer: Option<usize>,
        params: usize,
        padding: u8,
    },
    Params(usize),
    Stdin(usize),
    Freed(u32),
    GiveBack,
    GetValues,
}

fn sent() -> impl Strategy<Value = Sent> {
    prop_oneof![
        (proptest::option::of(0..40_000_usize), 0..20_000_usize, any::<u8>())
            .prop_map(|(offer, params, padding)| Sent::Begin { offer, params, padding }),
        (0..3000_usize).prop_map(Sent::Params),
        (1..70_000_usize).prop_map(Sent::Stdin),
        (1..1000_u32).prop_map(Sent::Freed),
        Just(Sent::GiveBack),
        Just(Sent::GetValues),
    ]
}

/// The bytes sent, the bytes expected by the program, and the expected findings.
#[derive(Default)]
struct Script {
    sent: Vec<u8>,
    received: Vec<u8>,
    offers: Vec<(u16, usize)>,
    /// Since the last request began.
    freed: u32,
    is_wanted_back: bool,
    asked: usize,
}

impl Script {
    fn of(records: &[Sent]) -> Self {
        let mut script = Self::default();
        let mut id = 0;
        for record in records {
            script.add(record, &mut id);
        }
        script
    }

    fn add(&mut self, record: &Sent, id: &mut u16) {
        let start = self.sent.len();
        match *record {
            // The first bytes of a connection are not those of a control.
            Sent::Params(_) | Sent::Stdin(_) | Sent::Freed(_) | Sent::GiveBack if *id == 0 => return,
            Sent::Begin { offer, params, padding } => {
                *id += 1;
                (self.freed, self.is_wanted_back) = (0, false);
                push_begin(&mut self.sent, *id, true);
                self.received.extend_from_slice(&self.sent[start..]);
                let mut rest = Vec::new();
                params::push(&mut rest, b"NAME", &vec![b'v'; params]);
                let mut pair = Vec::new();
                if let Some(bytes) = offer {
                    params::push(&mut pair, NAME.as_bytes(), &vec![b'o'; bytes]);
                    self.offers.push((*id, bytes));
                }
                // Without parameters after it, the offer is alone in its record, which the program must not see.
                let rest = if offer.is_some() && params == 0 { &[][..] } else { &rest };
                push_padded(&mut self.sent, *id, &[&pair, rest].concat(), padding);
                if !rest.is_empty() {
                    push_padded(&mut self.received, *id, rest, padding);
                }
                return;
            }
            Sent::Params(bytes) => push_padded(&mut self.sent, *id, &vec![b'p'; bytes], 0),
            Sent::Stdin(bytes) => push_stdin(&mut self.sent, *id, &vec![b's'; bytes]),
            Sent::GetValues => {
                push_get_values(&mut self.sent, &["OTHER", TRANSPORTS]);
                self.asked += 1;
            }
            Sent::Freed(bytes) => {
                push_freed(&mut self.sent, *id, bytes);
                self.freed += bytes;
                return;
            }
            Sent::GiveBack => {
                push_give_back(&mut self.sent, *id);
                self.is_wanted_back = true;
                return;
            }
        }
        self.received.extend_from_slice(&self.sent[start..]);
    }
}

fn push_padded(out: &mut Vec<u8>, request_id: u16, content: &[u8], padding_len: u8) {
    let kind = RecordType::Params as u8;
    let header = RecordHeader { kind, request_id, content_len: content.len() as u16, padding_len };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(content);
    out.resize(out.len() + usize::from(padding_len), 0);
}

/// What a program and the library around it see.
#[derive(Default)]
struct Seen {
    received: Vec<u8>,
    offers: Vec<(u16, usize)>,
    /// Since the last request began.
    freed: u32,
    is_wanted_back: bool,
    asked: usize,
}

impl Seen {
    /// The program asks for `wanted` bytes, as often as there are some without waiting.
    fn read(&mut self, inbox: &mut Inbox, socket: &UnixStream, wanted: usize) {
        loop {
            self.look(inbox);
            let given = inbox.ready().min(wanted);
            self.received.extend_from_slice(&inbox.give()[..given]);
            inbox.given(given);
            let mut past = vec![0; inbox.may_bypass().min(wanted)];
            let arrived = if given > 0 {
                continue;
            } else if !past.is_empty() && wanted.is_multiple_of(2) {
                let arrived = inbox.receive_past(socket.as_fd(), &mut past, RecvFlags::DONTWAIT);
                self.received.extend_from_slice(&past[..arrived.unwrap_or(0)]);
                arrived
            } else {
                inbox.fill(socket.as_fd(), wanted, RecvFlags::DONTWAIT)
            };
            if arrived.is_err() {
                return;
            }
        }
    }

    fn look(&mut self, inbox: &mut Inbox) {
        loop {
            let begins = inbox.take_begins();
            let offered = inbox.take_offer().map(|(id, offer, _)| (id, offer.len()));
            self.offers.extend(offered);
            self.asked += usize::from(inbox.take_asked());
            if begins.is_some() {
                (self.freed, self.is_wanted_back) = (0, false);
            }
            for control in std::iter::from_fn(|| inbox.take_control()) {
                match control {
                    Control::Freed(bytes) => self.freed += bytes,
                    Control::GiveBack => self.is_wanted_back = true,
                }
            }
            if begins.is_none() && offered.is_none() {
                break;
            }
            inbox.sift();
        }
    }
}

/// Bug: where the first byte of a connection came alone, the connection was taken for something else than FastCGI.
#[test]
fn the_kind_of_the_first_record_is_waited_for() {
    let mut sent = Vec::new();
    push_begin(&mut sent, 1, true);
    let (mut server, application) = UnixStream::pair().expect("two sockets");
    let (mut inbox, mut seen) = (Inbox::default(), Seen::default());
    server.write_all(&sent[..1]).expect("room");
    seen.read(&mut inbox, &application, 8);
    assert_eq!((inbox.stage(), &seen.received[..]), (Stage::New, &b""[..]));
    server.write_all(&sent[1..]).expect("room");
    seen.read(&mut inbox, &application, 8);
    assert_eq!((inbox.stage(), seen.received), (Stage::FastCgi, sent));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn programs_see_everything_but_what_is_for_the_library(
        records in vec(sent(), 1..12),
        cuts in vec((1..30_000_usize, 2..20_000_usize), 1..30),
    ) {
        let script = Script::of(&records);
        let (mut server, application) = UnixStream::pair().expect("two sockets");
        let mut inbox = Inbox::default();
        let mut seen = Seen::default();
        let mut rest = &script.sent[..];
        for (bytes, wanted) in cuts.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*bytes));
            server.write_all(now).expect("room");
            rest = later;
            seen.read(&mut inbox, &application, *wanted);
            if rest.is_empty() {
                break;
            }
        }
        prop_assert!(script.sent.is_empty() || inbox.stage() == Stage::FastCgi);
        prop_assert_eq!(seen.received.len(), script.received.len());
        prop_assert!(seen.received == script.received);
        prop_assert_eq!(seen.offers, script.offers);
        prop_assert_eq!((seen.freed, seen.is_wanted_back), (script.freed, script.is_wanted_back));
        // Two questions before a look count as one.
        prop_assert!(seen.asked <= script.asked && (seen.asked > 0) == (script.asked > 0));
    }

    /// Input that is not FastCGI, from the first or a later byte on, arrives unchanged.
    #[test]
    fn what_is_unfamiliar_arrives_as_it_is(
        begins in any::<bool>(),
        bytes in vec(any::<u8>(), 0..5000),
        wanted in 1..3000_usize,
    ) {
        let mut sent = Vec::new();
        if begins {
            push_begin(&mut sent, 1, true);
        }
        // No version that there is.
        sent.push(7);
        sent.extend_from_slice(&bytes);
        let (mut server, application) = UnixStream::pair().expect("two sockets");
        server.write_all(&sent).expect("room");
        let (mut inbox, mut seen) = (Inbox::default(), Seen::default());
        seen.read(&mut inbox, &application, wanted);
        // Eight bytes without the version are waited for; the end of the connection ends that, too.
        drop(server);
        while inbox.fill(application.as_fd(), wanted, RecvFlags::DONTWAIT) != Ok(0) {}
        seen.received.extend_from_slice(inbox.give());
        prop_assert_eq!(seen.received, sent);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// What is lent stands in its place among the bytes: the program reads one stream of records.
    #[test]
    fn a_body_in_a_file_is_read_as_records(
        parts in vec((any::<bool>(), 1..70_000_usize), 1..8),
        cut in 1..30_000_usize,
        wanted in 1..20_000_usize,
    ) {
        let bytes = parts.iter().map(|(_, bytes)| bytes).sum();
        let body: Vec<u8> = (0..bytes).map(|at| (at * 31 % 251) as u8).collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&body).expect("room");
        let (mut server, application) = UnixStream::pair().expect("two sockets");
        let (mut inbox, mut seen) = (Inbox::default(), Seen::default());
        let mut sent = Vec::new();
        push_begin(&mut sent, 1, true);
        send_with(&server, &sent, file.as_fd());
        seen.read(&mut inbox, &application, wanted);
        inbox.begin_body(1, Bodies { file: true, ..Bodies::default() }).expect("a file");
        sent.clear();
        push_params(&mut sent, 1, &[]);
        let mut at = 0;
        for (is_lent, bytes) in parts {
            match is_lent {
                true => push_file(&mut sent, 1, FileRange { offset: at as u64, len: bytes as u64 }),
                false => push_stdin(&mut sent, 1, &body[at..at + bytes]),
            }
            at += bytes;
        }
        push_stdin_end(&mut sent, 1);
        for part in sent.chunks(cut) {
            server.write_all(part).expect("room");
            seen.read(&mut inbox, &application, wanted);
        }
        prop_assert!(body_of(&seen.received) == Some(body));
    }
}

/// Goal: an answer does not wait for the server's words behind a piece that is lent: they are found once that has been read.
#[test]
fn there_is_no_room_behind_a_piece_that_is_lent() {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(b"a body").expect("room");
    let (mut server, application) = UnixStream::pair().expect("two sockets");
    let (mut inbox, mut seen, mut sent) = (Inbox::default(), Seen::default(), Vec::new());
    push_begin(&mut sent, 1, true);
    send_with(&server, &sent, file.as_fd());
    seen.read(&mut inbox, &application, 1_000);
    inbox.begin_body(1, Bodies { file: true, ..Bodies::default() }).expect("a file");
    assert!(inbox.has_room());
    sent.clear();
    push_params(&mut sent, 1, &[]);
    push_file(&mut sent, 1, FileRange { offset: 0, len: 6 });
    push_freed(&mut sent, 1, 7);
    server.write_all(&sent).expect("room");
    inbox.fill(application.as_fd(), 1, RecvFlags::empty()).expect("bytes");
    assert!(!inbox.has_room() && inbox.take_control().is_none());
    while inbox.ready() > 0 {
        inbox.given(inbox.ready());
    }
    assert!(inbox.has_room());
    assert_eq!(inbox.take_control(), Some(Control::Freed(7)));
}

/// The body in a stream of records, if it is complete.
fn body_of(mut stream: &[u8]) -> Option<Vec<u8>> {
    let (mut reader, mut body) = (RequestReader::new(), Vec::new());
    loop {
        let (consumed, part) = reader.read(stream).expect("records");
        match part {
            Part::NeedMore => return None,
            Part::Stdin(range) => body.extend_from_slice(&stream[range]),
            Part::StdinEnd => return Some(body),
            _ => {}
        }
        stream = &stream[consumed..];
    }
}

/// Sends bytes with a descriptor.
fn send_with(socket: &UnixStream, bytes: &[u8], descriptor: BorrowedFd<'_>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let passed = [descriptor];
    assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::empty()).expect("room");
}

/// The descriptors stay with their offers when several requests wait.
#[test]
fn descriptors_are_kept_in_order() {
    let (server, application) = UnixStream::pair().expect("two sockets");
    let mut inbox = Inbox::default();
    let files: Vec<_> = (0..3).map(|_| UnixStream::pair().expect("two sockets")).collect();
    for (id, (near, _)) in (1..).zip(&files) {
        let script = Script::of(&[Sent::Begin { offer: Some(10), params: 5, padding: 0 }]);
        let mut bytes = script.sent;
        bytes[3] = id;
        bytes[16 + 3] = id;
        send_with(&server, &bytes, near.as_fd());
    }
    let mut taken = Vec::new();
    while inbox.fill(application.as_fd(), 8, RecvFlags::DONTWAIT).is_ok() {
        loop {
            let begins = inbox.take_begins();
            let offered =
                inbox.take_offer().map(|(id, _, descriptors)| (id, descriptors.take().expect("one")));
            if begins.is_none() && offered.is_none() {
                break;
            }
            taken.extend(offered);
            inbox.sift();
        }
    }
    assert_eq!(taken.len(), files.len());
    for ((id, descriptor), (number, (_, far))) in taken.into_iter().zip((1..).zip(files)) {
        assert_eq!(id, number);
        UnixStream::from(descriptor).write_all(&[id as u8]).expect("room");
        let mut byte = [0];
        std::io::Read::read_exact(&mut &far, &mut byte).expect("a byte");
        assert_eq!(byte, [id as u8]);
    }
}
