//! Goal: handshakes end as they should, however the bytes are cut. Method: a client of the library at the other end.

use std::io::Write;

use rustls::AlertDescription;
use rustls::crypto::aws_lc_rs::cipher_suite;

use super::ends::{Client, NAME, SUITES, connect, established, give, output_of, server, shake};
use crate::{
    Alert, FailureReason, HANDSHAKE_INPUT_BYTES_MAX, Handshake, Needs, Opened, Protocol, Version,
    looks_like_tls,
};

#[test]
fn every_suite_is_spoken_and_named() {
    for (suite, name) in SUITES {
        let (_, established) = established(Client::of(suite));
        let facts = &established.facts;
        assert_eq!(facts.cipher_suite, name);
        assert_eq!(facts.version, if suite.tls13().is_some() { Version::Tls13 } else { Version::Tls12 });
        assert_eq!(facts.server_name.as_deref(), Some(NAME));
        assert!(!facts.resumed && facts.client_certificate.is_none());
        assert!(established.unread.is_empty());
    }
}

/// Whatever the cuts, and a request right behind the handshake is left as it came.
#[test]
fn bytes_may_arrive_in_any_pieces() {
    for (suite, _) in SUITES {
        for bytes_at_once in [1, 2, 3, 5, 7, 100, 1000, usize::MAX] {
            let mut client = Client::of(suite).connect();
            let (result, works) = shake(&mut client, &server(|_| {}), bytes_at_once, b"GET / HTTP/1.1\r\n");
            let mut established = result.unwrap();
            // Key exchange and signature come together in TLS 1.3. Before, the exchange ends with the second flight, in
            // which a message says that the client has no certificate.
            let expected = if suite.tls13().is_some() { 1..=1 } else { 2..=3 };
            assert!(expected.contains(&works), "{suite:?}: {works}");
            let mut unread = std::mem::take(&mut established.unread);
            unread.extend(output_of(&mut client));
            let Opened::Data { data, .. } = established.records.open(&mut unread).unwrap() else {
                panic!("no data")
            };
            assert_eq!(&unread[data], b"GET / HTTP/1.1\r\n");
        }
    }
}

/// A client may cut its first message into records of any size (RFC 8446, section 5.1).
#[test]
fn a_first_message_in_many_records_is_understood() {
    let mut client = Client::default().connect();
    let sent = output_of(&mut client);
    let mut handshake = Handshake::new(server(|_| {}));
    for fragment in sent[5..].chunks(100) {
        assert!(matches!(handshake.poll(), Needs::Input));
        handshake.feed(&[22, 3, 1, 0, fragment.len() as u8]);
        handshake.feed(fragment);
    }
    assert!(matches!(handshake.poll(), Needs::Work));
    handshake.work();
    assert!(matches!(handshake.poll(), Needs::Input));
    give(&mut client, &handshake.take_output()).unwrap();
    handshake.feed(&output_of(&mut client));
    let Needs::Nothing(established) = handshake.poll() else { panic!("not established") };
    assert_eq!(established.facts.server_name.as_deref(), Some(NAME));
}

#[test]
fn the_server_chooses_the_protocol() {
    let (h2, http) = (b"h2".to_vec(), b"http/1.1".to_vec());
    for (offered, expected) in [
        (vec![], Protocol::Http11),
        (vec![http.clone()], Protocol::Http11),
        (vec![http, h2], Protocol::Http2),
    ] {
        let (_, established) = established(Client { protocols: offered, ..Client::default() });
        assert_eq!(established.facts.protocol, expected);
    }
}

#[test]
fn a_client_that_comes_back_is_known() {
    for suite in [cipher_suite::TLS13_AES_128_GCM_SHA256, SUITES[3].0] {
        let server = server(|_| {});
        let config = Client::of(suite).config();
        for resumed in [false, true, true] {
            let mut client = connect(&config, NAME);
            let (result, _) = shake(&mut client, &server, usize::MAX, b"");
            assert_eq!(result.unwrap().facts.resumed, resumed, "{suite:?}");
        }
    }
}

#[test]
fn a_clients_certificate_is_shown() {
    for suite in [SUITES[0].0, SUITES[3].0] {
        let (_, established) = established(Client { shows_certificate: true, ..Client::of(suite) });
        assert!(established.facts.client_certificate.is_some());
    }
}

/// Each failure has its reason, and the client is told by an alert.
#[test]
fn failures_have_a_reason_and_an_alert() {
    let refused = |client: Client, server| {
        let mut client = client.connect();
        let reason = shake(&mut client, &server, usize::MAX, b"").0.unwrap_err().reason;
        let told = client.process_new_packets().map(|_| ());
        (reason, told)
    };
    let alert = |description| Err(rustls::Error::AlertReceived(description));
    assert_eq!(
        refused(Client { name: "other.test", ..Client::default() }, server(|_| {})),
        (FailureReason::UnknownName, alert(AlertDescription::UnrecognisedName))
    );
    assert_eq!(
        refused(Client { protocols: vec![b"spdy/1".to_vec()], ..Client::default() }, server(|_| {})),
        (FailureReason::NoCommonProtocol, alert(AlertDescription::NoApplicationProtocol))
    );
    // The server's only key is for ECDSA.
    assert_eq!(
        refused(Client::of(cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256), server(|_| {})),
        (FailureReason::NoCommonCipher, alert(AlertDescription::HandshakeFailure))
    );
    let (reason, _) = refused(Client { trusts: false, ..Client::default() }, server(|_| {}));
    assert_eq!(reason, FailureReason::PeerAlert);
}

#[test]
fn what_is_no_handshake_is_refused() {
    let fails = |bytes: &[u8]| {
        let mut handshake = Handshake::new(server(|_| {}));
        handshake.feed(bytes);
        let mut needs = handshake.poll();
        if matches!(needs, Needs::Work) {
            handshake.work();
            needs = handshake.poll();
        }
        match needs {
            Needs::Failed(failure) => (failure.reason, handshake.take_output()),
            other => panic!("{other:?}"),
        }
    };
    assert!(!looks_like_tls(b"GET / HTTP/1.1\r\n\r\n"));
    assert!(looks_like_tls(&[22]));
    // An alert in clear is 7 bytes.
    assert!(
        matches!(fails(b"GET / HTTP/1.1\r\n\r\n"), (FailureReason::Misbehaved, alert) if alert.len() == 7)
    );
    assert!(
        matches!(fails(&[22, 3, 1, 0, 4, 2, 0, 0, 0]), (FailureReason::Misbehaved, alert) if alert.len() == 7)
    );
    assert!(matches!(fails(&[22, 3, 1, 0xff, 0xff]), (FailureReason::Misbehaved, _)));
    // The first message of a client that knows TLS 1.1 at most.
    let old = [&[22, 3, 1, 0, 45, 1, 0, 0, 41, 3, 2][..], &[7; 32], &[0, 0, 2, 0xc0, 0x13, 1, 0]].concat();
    assert_eq!(fails(&old), (FailureReason::NoCommonVersion, Alert::PROTOCOL_VERSION.in_clear().to_vec()));
    // A first message that never ends.
    let mut endless = vec![22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    endless.resize(5 + (1 << 14), 0);
    let mut record = vec![22, 3, 1, 0x40, 0];
    record.resize(5 + (1 << 14), 0);
    while endless.len() <= HANDSHAKE_INPUT_BYTES_MAX {
        endless.extend_from_slice(&record);
    }
    assert_eq!(fails(&endless).0, FailureReason::TooLarge);
}

/// A handshake whose result was taken has no other.
#[test]
fn the_result_is_given_once() {
    let mut handshake = Handshake::new(server(|_| {}));
    handshake.feed(b"no TLS at all");
    assert!(matches!(handshake.poll(), Needs::Work));
    handshake.work();
    assert!(
        matches!(handshake.poll(), Needs::Failed(failure) if failure.reason == FailureReason::Misbehaved)
    );
    handshake.feed(b"more");
    handshake.work();
    assert!(matches!(handshake.poll(), Needs::Failed(failure) if failure.reason == FailureReason::Internal));
}

/// A client that refuses the server's certificate, in words for the log.
#[test]
fn an_alert_is_named_in_the_log() {
    let mut client = Client { trusts: false, ..Client::default() }.connect();
    client.writer().write_all(b"never sent").unwrap();
    let failure = shake(&mut client, &server(|_| {}), 10, b"").0.unwrap_err();
    let text = failure.to_string();
    assert!(text.starts_with("peer-alert: the client sent the alert "), "{text}");
}
