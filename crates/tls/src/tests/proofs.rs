//! Goal: authorities see proofs, browsers do not. Method: a client that believes any certificate.

use std::sync::Arc;

use rustls::{ClientConfig, ClientConnection};

use super::ends::{NAME, server, shake};
use crate::any_certificate::AnyCertificate;
use crate::{FailureReason, PemFile, Proofs, Server};

fn client(protocols: &[&str]) -> ClientConnection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate::new()))
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    ClientConnection::new(Arc::new(config), NAME.try_into().unwrap()).unwrap()
}

fn with_proofs(proofs: &Arc<Proofs>) -> Arc<Server> {
    let server = Arc::try_unwrap(server(|_| {})).unwrap();
    Arc::new(server.with_proofs(Arc::clone(proofs)))
}

#[test]
fn an_authority_sees_the_proof_while_it_is_there() {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let pem = made.cert.pem() + &made.signing_key.serialize_pem();
    let proofs = Arc::new(Proofs::default());
    let server = with_proofs(&proofs);

    proofs.put(&NAME.to_uppercase(), &PemFile::new("proof", pem.into_bytes())).unwrap();
    let mut authority = client(&["acme-tls/1"]);
    shake(&mut authority, &server, usize::MAX, b"").0.unwrap();
    assert_eq!(authority.peer_certificates().unwrap(), [made.cert.der().clone()]);
    assert_eq!(authority.alpn_protocol(), Some(&b"acme-tls/1"[..]));

    for protocols in [&["http/1.1"][..], &["acme-tls/1", "http/1.1"], &[]] {
        let mut browser = client(protocols);
        shake(&mut browser, &server, usize::MAX, b"").0.unwrap();
        assert_ne!(browser.peer_certificates().unwrap(), [made.cert.der().clone()], "{protocols:?}");
    }

    proofs.remove(NAME);
    let failure = shake(&mut client(&["acme-tls/1"]), &server, usize::MAX, b"").0.unwrap_err();
    assert_eq!(failure.reason, FailureReason::NoCommonProtocol);
}

#[test]
fn a_proof_without_a_key_is_refused() {
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
    let file = |text: String| PemFile::new("proof", text.into_bytes());
    assert!(Proofs::default().put(NAME, &file(made.cert.pem())).is_err());
    assert!(Proofs::default().put(NAME, &file(made.signing_key.serialize_pem())).is_err());
}
