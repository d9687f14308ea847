//! Versions, resumption and certificates of clients.

use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use rustls::{NamedGroup, ProtocolVersion};

use super::authority::{Authority, Issued};
use super::client::Client;
use crate::{ClientCertificates, ClientPolicy, PemFile, Server, Site, TicketSecrets, Tickets};

pub(super) fn tickets() -> Arc<Tickets> {
    Arc::new(Tickets::new(TicketSecrets::draw().unwrap()))
}

/// A server with one site.
fn server(issued: &Issued, clients: Option<ClientPolicy>, tickets: &Arc<Tickets>) -> Server {
    let site = Site {
        hosts: Vec::new(),
        identities: vec![Arc::new(issued.identity())],
        clients: clients.map(Arc::new),
    };
    Server::new(vec![site], &[], tickets).unwrap()
}

#[test]
fn both_versions_are_spoken_and_the_post_quantum_exchange_comes_first() {
    let server = server(&Authority::new("authority").issue(&["one"]), None, &tickets());
    let terms = server.terms(None).unwrap();
    let connected = Client::with_version(&TLS13).meet(terms).unwrap();
    assert_eq!(
        (connected.version, connected.group),
        (ProtocolVersion::TLSv1_3, Some(NamedGroup::X25519MLKEM768))
    );
    assert_eq!(Client::with_version(&TLS12).meet(terms).unwrap().version, ProtocolVersion::TLSv1_2);
}

/// Another worker, or the same after a reload, has the same secrets and another server.
#[test]
fn a_session_is_resumed_by_any_server_with_the_same_secrets() {
    let issued = Authority::new("authority").issue(&["one"]);
    let secrets = TicketSecrets::draw().unwrap();
    let copy = TicketSecrets::from_bytes(secrets.bytes()).unwrap();
    let theirs = Arc::new(Tickets::new(copy));
    let (one, other) =
        (server(&issued, None, &Arc::new(Tickets::new(secrets))), server(&issued, None, &theirs));
    let stranger = server(&issued, None, &tickets());
    for version in [&TLS12, &TLS13] {
        let client = Client::with_version(version);
        assert!(!client.meet(one.terms(None).unwrap()).unwrap().resumed);
        assert!(client.meet(other.terms(None).unwrap()).unwrap().resumed);
        assert!(!client.meet(stranger.terms(None).unwrap()).unwrap().resumed);
    }
}

#[test]
fn a_client_is_asked_for_a_certificate_as_the_site_says() {
    let (ours, strangers) = (Authority::new("ours"), Authority::new("strangers"));
    let (server_own, accepted, revoked) = (
        ours.issue(&["one"]),
        ours.issue_for(&["good"], &rcgen::PKCS_ECDSA_P256_SHA256, 20),
        ours.issue_for(&["bad"], &rcgen::PKCS_ECDSA_P256_SHA256, 21),
    );
    let crl = ours.revocations(&revoked);
    let stranger = strangers.issue(&["stranger"]);
    for (mode, without) in [(ClientCertificates::Request, Some(0)), (ClientCertificates::Require, None)] {
        let policy = ClientPolicy::load(mode, &ours.file(), Some(&crl)).unwrap();
        let server = server(&server_own, Some(policy), &tickets());
        let seen =
            |client: Client| client.meet(server.terms(None).unwrap()).map(|seen| seen.own_certificates);
        assert_eq!(seen(Client::new()).ok(), without);
        assert_eq!(seen(Client::with_certificate(&accepted)), Ok(1));
        for refused in [&revoked, &stranger] {
            assert!(seen(Client::with_certificate(refused)).is_err());
        }
    }
}

/// CVE-2025-23419: a session that began where no certificate is asked for is not resumed where one is.
#[test]
fn a_session_is_not_resumed_under_another_policy() {
    let authority = Authority::new("authority");
    let (issued, tickets) = (authority.issue(&["one"]), tickets());
    let load = |mode| ClientPolicy::load(mode, &authority.file(), None).unwrap();
    let (request, require) = (load(ClientCertificates::Request), load(ClientCertificates::Require));
    assert_ne!(request.id(), require.id());
    assert_eq!(request.id(), load(ClientCertificates::Request).id());
    let open = server(&issued, None, &tickets);
    let asking = server(&issued, Some(request), &tickets);
    let demanding = server(&issued, Some(require), &tickets);
    for version in [&TLS12, &TLS13] {
        let client = Client::with_version(version);
        client.meet(open.terms(None).unwrap()).unwrap();
        assert!(!client.meet(asking.terms(None).unwrap()).unwrap().resumed);
        assert!(client.meet(demanding.terms(None).unwrap()).is_err());
        assert!(client.meet(asking.terms(None).unwrap()).unwrap().resumed);
    }
}

#[test]
fn files_without_authorities_or_lists_are_refused() {
    let authority = Authority::new("authority");
    let issued = authority.issue(&["one"]);
    let load = |authorities: &PemFile, revoked: Option<&PemFile>| {
        let loaded = ClientPolicy::load(ClientCertificates::Require, authorities, revoked);
        loaded.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(load(&issued.key_file(), None).starts_with("k.pem: no certificate in it"));
    assert!(load(&authority.file(), Some(&authority.file())).starts_with("ca.pem: no revocation list in it"));
    let old = PemFile::new("crl.pem", LIST_OF_VERSION_1.as_bytes().to_vec());
    let why = load(&authority.file(), Some(&old));
    assert!(why.starts_with("crl.pem:1: a revocation list of version 1: version 2 is needed"), "{why}");
}

const LIST_OF_VERSION_1: &str = "-----BEGIN X509 CRL-----\n\
MIGcMEMwCgYIKoZIzj0EAwIwFTETMBEGA1UEAwwKdjEuZXhhbXBsZRcNMjYxMTI3\n\
MDIxNzM3WhgPMjEyNjExMDMwMjE3MzdaMAoGCCqGSM49BAMCA0kAMEYCIQD0+Lkn\n\
c9pVYIDxMlsUvjmXmAz9W3RfUfZUSIIitXY/GgIhAPAwZQKUDnsvr9p3BgyxaFa6\n\
mxZPqnLnJ+8iXjzVHocq\n\
-----END X509 CRL-----\n";
