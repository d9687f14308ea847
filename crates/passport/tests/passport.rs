//! Goal: what is written is read again, and nothing else is taken for it.

use baton_passport::{Address, PARTS_BYTES_MAX, Part, PartKind, Passport, Refused, UNREAD_BYTES_MAX};
use proptest::prelude::*;

#[path = "../../../fuzz/src/passport.rs"]
pub mod invariants;
#[path = "../../../fuzz/src/replay.rs"]
pub mod replay;

#[test]
fn the_fuzz_corpus() {
    replay::replay("passport", invariants::message);
}

fn passport(unread: Vec<u8>) -> Passport {
    Passport {
        listener: Address::Tcp("0.0.0.0:80".parse().unwrap()),
        peer: Some("[2001:db8::1]:40000".parse().unwrap()),
        requests: 7,
        written: 123_456,
        was_passed: true,
        flow: None,
        stay: false,
        left_ms: None,
        unread,
        begins_with_tls: false,
        parts: Vec::new(),
    }
}

fn part(bytes: Vec<u8>) -> Part {
    Part { kind: PartKind::Tls, bytes: bytes.into() }
}

proptest! {
    #[test]
    fn a_passport_is_read_as_it_was_written(
        unread in proptest::collection::vec(any::<u8>(), 0..2_000),
        numbers in any::<(u64, u64, bool)>(),
        cluster in any::<(Option<u64>, bool)>(),
        is_unix in any::<bool>(),
        begins_with_tls in any::<bool>(),
        packed in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..200)),
    ) {
        let (requests, written, was_passed) = numbers;
        let (flow, stay) = cluster;
        let mut written_one = Passport { requests, written, was_passed, flow, stay, ..passport(unread) };
        if is_unix {
            (written_one.listener, written_one.peer) = (Address::Unix("/run/front.sock".into()), None);
        }
        written_one.left_ms = begins_with_tls.then_some(requests);
        written_one.begins_with_tls = begins_with_tls;
        written_one.parts = packed.map(part).into_iter().collect();
        prop_assert_eq!(written_one.version() == 1, !begins_with_tls && written_one.parts.is_empty());
        let message = written_one.to_message().unwrap();
        prop_assert_eq!(Passport::from_message(&message), Ok(written_one));
    }

    #[test]
    fn a_message_that_is_cut_is_refused(at in 0..1_000_usize) {
        let mut passport = passport(b"GET / HTTP/1.1\r\n".to_vec());
        passport.parts.push(part(b"packed".to_vec()));
        let message = passport.to_message().unwrap();
        let at = at % message.len();
        prop_assert!(Passport::from_message(&message[..at]).is_err());
    }
}

#[test]
fn too_much_input_does_not_travel() {
    assert!(passport(vec![b'x'; UNREAD_BYTES_MAX]).to_message().is_some());
    assert_eq!(passport(vec![b'x'; UNREAD_BYTES_MAX + 1]).to_message(), None);
    let with_part = |len| Passport { parts: vec![part(vec![0; len])], ..passport(Vec::new()) };
    assert!(with_part(PARTS_BYTES_MAX).to_message().is_some());
    assert_eq!(with_part(PARTS_BYTES_MAX + 1).to_message(), None);
}

#[test]
fn another_version_says_which() {
    let message = passport(Vec::new()).to_message().unwrap();
    let text = String::from_utf8(message.to_vec()).unwrap();
    let later = text.replace("\"version\":1", "\"version\":9").replace("\"requests\":7,", "");
    assert_eq!(Passport::from_message(later.as_bytes()), Err(Refused::Version(9)));
    let extended = text.replace("\"requests\":7", "\"requests\":7,\"more\":[1]");
    assert_eq!(Passport::from_message(extended.as_bytes()), Ok(passport(Vec::new())));
    let lacking = text.replace("\"requests\":7,", "");
    assert_eq!(Passport::from_message(lacking.as_bytes()), Err(Refused::Malformed));
    assert_eq!(Passport::from_message((text + "x").as_bytes()), Err(Refused::Length));
}

#[test]
fn a_server_of_before_the_cluster_writes_passports_without_its_fields() {
    let message = passport(Vec::new()).to_message().unwrap();
    let text = String::from_utf8(message.to_vec()).unwrap();
    assert!(!text.contains("flow") && !text.contains("stay"), "{text}");
    let moved = Passport { flow: Some(u64::MAX), stay: true, ..passport(Vec::new()) };
    let text = String::from_utf8(moved.to_message().unwrap().to_vec()).unwrap();
    assert!(text.contains("\"flow\":18446744073709551615,\"stay\":true"), "{text}");
}
