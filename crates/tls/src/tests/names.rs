//! Which site a name leads to, and which of its certificates a client gets.

use std::sync::Arc;

use rustls::SignatureScheme;

use super::authority::{Authority, Issued};
use super::client::{Client, Connected};
use super::sessions::tickets;
use crate::{Protocol, Server, Site};

fn site(hosts: &[&str], issued: &[&Issued]) -> Site {
    Site {
        hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
        identities: issued.iter().map(|issued| Arc::new(issued.identity())).collect(),
        clients: None,
    }
}

#[test]
fn exact_name_before_the_longest_wildcard_before_the_default() {
    let authority = Authority::new("authority");
    let issued = ["exact", "wide", "deep", "default"].map(|name| authority.issue(&[name]));
    let [exact, wide, deep, default] = &issued;
    let mut sites = vec![
        site(&["*.example.org"], &[wide]),
        site(&["*.b.example.org"], &[deep]),
        site(&["a.example.org"], &[exact]),
        site(&[], &[default]),
    ];
    let server = Server::new(sites.clone(), &[], &tickets()).unwrap();
    let served = |server: &Server, name| {
        let terms = server.terms(name)?;
        let certificate = Client::new().meet(terms).unwrap().certificate;
        issued.iter().position(|one| one.identity().certified.cert[0] == certificate)
    };
    for (name, expected) in [
        (Some("A.example.org"), 0),
        (Some("x.example.org"), 1),
        (Some("x.b.example.org"), 2),
        (Some("example.org"), 3),
        (None, 3),
    ] {
        assert_eq!(served(&server, name), Some(expected), "{name:?}");
    }
    sites.pop();
    let server = Server::new(sites, &[], &tickets()).unwrap();
    assert!(server.terms(Some("example.org")).is_none(), "no site answers to it");
    assert_eq!(served(&server, None), Some(1), "a client without a name gets the first");
}

#[test]
fn a_client_gets_the_certificate_whose_algorithm_it_knows() {
    let authority = Authority::new("authority");
    let (rsa, ecdsa) = (authority.issue_rsa(&["one"]), authority.issue(&["one"]));
    let server = Server::new(vec![site(&["one"], &[&rsa, &ecdsa])], &[], &tickets()).unwrap();
    let terms = server.terms(Some("one")).unwrap();
    let of = |issued: &Issued| issued.identity().certified.cert[0].clone();
    let rsa_only = Client::with_schemes(&[SignatureScheme::RSA_PSS_SHA256]);
    assert_eq!(Client::new().meet(terms).unwrap().certificate, of(&ecdsa));
    assert_eq!(rsa_only.meet(terms).unwrap().certificate, of(&rsa));
}

#[test]
fn protocols_are_agreed_on_or_the_handshake_ends() {
    let authority = Authority::new("authority");
    let issued = authority.issue(&["one"]);
    let sites = vec![site(&[], &[&issued])];
    let server = Server::new(sites, &[Protocol::Http2, Protocol::Http11], &tickets()).unwrap();
    let terms = server.terms(None).unwrap();
    let get = |alpn: &[&str]| Client::new().alpn(alpn).meet(terms);
    let agreed = |connected: Connected| String::from_utf8(connected.alpn.unwrap_or_default()).unwrap();
    assert_eq!(get(&["http/1.1", "h2"]).map(agreed).unwrap(), "h2");
    assert_eq!(get(&["http/1.1"]).map(agreed).unwrap(), "http/1.1");
    assert_eq!(get(&[]).map(agreed).unwrap(), "");
    assert_eq!(get(&["spdy/3"]).err().unwrap(), "received fatal alert: NoApplicationProtocol");
}

#[test]
fn a_listener_without_a_certificate_is_refused() {
    assert!(Server::new(Vec::new(), &[], &tickets()).is_err());
    assert!(Server::new(vec![site(&[], &[])], &[], &tickets()).is_err());
}
