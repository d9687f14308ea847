//! Goal: members with the same file or the same authority speak, and nothing else is heard.

use std::time::{Duration, SystemTime};

use crate::{Identity, MemberAuthority, MemberChannel, MemberKey, MemberTlsError, PemFile, self_signed};

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn file(pem: &str) -> PemFile {
    PemFile::new("cluster.pem", pem.as_bytes().to_vec())
}

fn key() -> MemberKey {
    MemberKey::load(&file(&MemberKey::generate(now()).unwrap()), &[]).unwrap()
}

/// Carries bytes until both ends are silent. What each end has got, or why it failed.
fn carry(ends: [&mut MemberChannel; 2]) -> [Result<Vec<u8>, MemberTlsError>; 2] {
    let [one, other] = ends;
    let mut got = [Ok(Vec::new()), Ok(Vec::new())];
    for _ in 0..10 {
        for is_back in [false, true] {
            let (from, to) = if is_back { (&mut *other, &mut *one) } else { (&mut *one, &mut *other) };
            let mut bytes = Vec::new();
            from.take_output(&mut bytes);
            let slot = &mut got[usize::from(!is_back)];
            if let Ok(data) = slot
                && let Err(error) = to.feed(&bytes, data)
            {
                *slot = Err(error);
            }
        }
    }
    got
}

#[test]
fn members_with_one_file_speak() {
    let key = key();
    let (mut one, mut other) = (key.connect().unwrap(), key.accept().unwrap());
    // Before the handshake, data waits.
    one.send(b"hello");
    let long = vec![7; 300_000];
    other.send(&long);
    let [back, there] = carry([&mut one, &mut other]);
    assert_eq!(there.unwrap(), b"hello");
    assert_eq!(back.unwrap(), long);
    assert!(one.is_established() && other.is_established());
    one.close();
    let mut bytes = Vec::new();
    one.take_output(&mut bytes);
    assert_eq!(other.feed(&bytes, &mut Vec::new()), Ok(false));
}

#[test]
fn another_certificate_is_refused_by_both_ends() {
    let (ours, theirs) = (key(), key());
    let (mut one, mut other) = (ours.connect().unwrap(), theirs.accept().unwrap());
    one.send(b"secret");
    let [back, there] = carry([&mut one, &mut other]);
    assert!(back.unwrap_err().to_string().contains("another key"));
    assert!(there.unwrap_err().to_string().contains("another key"));
    assert!(!other.is_established());
}

/// An authority that signs now: certificates of members have dates.
fn authority() -> MemberAuthority {
    MemberAuthority::load(&file(&MemberAuthority::make(SystemTime::now()).unwrap())).unwrap()
}

fn member(authority: &MemberAuthority, name: &str, revoked: &[&str]) -> MemberKey {
    let revoked: Vec<_> = revoked.iter().map(|name| (*name).to_owned()).collect();
    MemberKey::load(&file(&authority.sign(name, SystemTime::now()).unwrap()), &revoked).unwrap()
}

#[test]
fn members_of_one_authority_speak_and_know_each_other() {
    let authority = authority();
    let (front_end, node) = (member(&authority, "front", &[]), member(&authority, "Node-A", &["node-b"]));
    let (mut one, mut other) = (front_end.connect().unwrap(), node.accept().unwrap());
    assert_eq!(one.member(), None, "nothing is known before the handshake");
    one.send(b"hello");
    let [back, there] = carry([&mut one, &mut other]);
    assert_eq!((there.unwrap(), back.unwrap()), (b"hello".to_vec(), Vec::new()));
    assert_eq!((one.member().as_deref(), other.member().as_deref()), (Some("node-a"), Some("front")));
}

#[test]
fn a_revoked_member_is_refused_at_both_ends() {
    let authority = authority();
    let stolen = member(&authority, "node-b", &[]);
    let loyal = member(&authority, "front", &["Node-B"]);
    for (mut one, mut other, is_back) in [
        (loyal.connect().unwrap(), stolen.accept().unwrap(), true),
        (stolen.connect().unwrap(), loyal.accept().unwrap(), false),
    ] {
        one.send(b"secret");
        other.send(b"secret");
        let got = carry([&mut one, &mut other]);
        let (ours, theirs) = if is_back { (&got[0], &got[1]) } else { (&got[1], &got[0]) };
        assert!(ours.as_ref().unwrap_err().to_string().contains("certificate is revoked"), "{got:?}");
        assert!(theirs.as_ref().unwrap_err().to_string().contains("our certificate is revoked"), "{got:?}");
    }
}

#[test]
fn members_of_other_authorities_and_strangers_of_the_same_one_are_refused() {
    let (ours, theirs) = (authority(), authority());
    // A certificate for development is no member's, whichever authority signed it.
    let pem = MemberAuthority::make(SystemTime::now()).unwrap();
    let local = crate::LocalAuthority::load(&file(&pem)).unwrap();
    let leaf = local.sign(&["node-b.members.baton.internal".to_owned()], SystemTime::now()).unwrap();
    let stranger = MemberKey::load(&file(&format!("{}{}", *leaf, local.pem())), &[]).unwrap();
    let shared = MemberKey::load(&file(&MemberKey::generate(SystemTime::now()).unwrap()), &[]).unwrap();
    let same = MemberAuthority::load(&file(&pem)).unwrap();
    for (accepts, other) in [
        (member(&ours, "a", &[]), member(&theirs, "a", &[])),
        (member(&same, "a", &[]), stranger),
        (member(&ours, "a", &[]), shared),
    ] {
        let (mut one, mut end) = (other.connect().unwrap(), accepts.accept().unwrap());
        one.send(b"secret");
        let [_, there] = carry([&mut one, &mut end]);
        assert!(there.is_err() && !end.is_established(), "{there:?}");
    }
}

/// A list of names would shut nothing out, and look as if it did.
#[test]
fn no_name_is_revoked_of_a_shared_key() {
    let shared = MemberKey::generate(now()).unwrap();
    let refused = MemberKey::load(&file(&shared), &["node-b".to_owned()]).unwrap_err().to_string();
    assert!(refused.contains("all share one key"), "{refused}");
}

#[test]
fn names_of_members_are_words() {
    let authority = authority();
    for wrong in ["", "a.b", "-a", "a-", "*", "a b", "ä", &"a".repeat(64)] {
        assert!(authority.sign(wrong, SystemTime::now()).is_err(), "{wrong}");
    }
}

#[test]
fn the_certificate_without_its_key_is_not_enough() {
    let pem = MemberKey::generate(now()).unwrap();
    let (certificate, _) = pem.split_once("-----BEGIN PRIVATE KEY-----").unwrap();
    let other = self_signed(&["members.baton.internal".to_owned()], now()).unwrap();
    let (_, stolen) = other.split_once("-----BEGIN PRIVATE KEY-----").unwrap();
    let mixed = format!("{certificate}-----BEGIN PRIVATE KEY-----{stolen}");
    assert!(MemberKey::load(&file(&mixed), &[]).is_err());
    assert!(MemberKey::load(&file(certificate), &[]).is_err());
    assert!(Identity::load(&file(&pem), &file(&pem)).is_ok());
}

#[test]
fn a_member_speaks_no_older_version() {
    use rustls::{ClientConfig, ClientConnection, version};
    use std::sync::Arc;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS12])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(crate::any_certificate::AnyCertificate::new()))
        .with_no_client_auth();
    let name = "members.baton.internal".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    let mut server = key().accept().unwrap();
    assert!(server.feed(&hello, &mut Vec::new()).is_err());
    assert!(!server.is_established());
}

#[test]
fn a_stranger_without_a_certificate_is_refused() {
    use rustls::{ClientConfig, ClientConnection};
    use std::sync::Arc;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(crate::any_certificate::AnyCertificate::new()))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"baton-mover".to_vec()];
    let name = "members.baton.internal".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut server = key().accept().unwrap();
    let mut refused = None;
    for _ in 0..4 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        if let Err(error) = server.feed(&bytes, &mut Vec::new()) {
            refused = Some(error);
            break;
        }
        let mut answer = Vec::new();
        server.take_output(&mut answer);
        client.read_tls(&mut &answer[..]).unwrap();
        client.process_new_packets().unwrap();
    }
    assert!(refused.is_some() && !server.is_established());
}
