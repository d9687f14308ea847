//! The two ends of a connection: the library's client, and a server of this crate.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use rustls::client::Resumption;
use rustls::crypto::aws_lc_rs::{self, Ticketer, cipher_suite};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedCipherSuite,
    SupportedProtocolVersion, version,
};

use crate::{Established, Handshake, HandshakeFailure, Needs, Server};

/// The name that the test's certificate is for.
pub(super) const NAME: &str = "site.test";

/// Every suite, with its version and the server's name for it.
pub(super) const SUITES: [(SupportedCipherSuite, &str); 6] = [
    (cipher_suite::TLS13_AES_128_GCM_SHA256, "TLS_AES_128_GCM_SHA256"),
    (cipher_suite::TLS13_AES_256_GCM_SHA384, "TLS_AES_256_GCM_SHA384"),
    (cipher_suite::TLS13_CHACHA20_POLY1305_SHA256, "TLS_CHACHA20_POLY1305_SHA256"),
    (cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, "ECDHE-ECDSA-AES128-GCM-SHA256"),
    (cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, "ECDHE-ECDSA-AES256-GCM-SHA384"),
    (cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, "ECDHE-ECDSA-CHACHA20-POLY1305"),
];

/// A certificate that signs itself, with its key.
fn identity() -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    static IDENTITY: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    let (certificate, key) = IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        (made.cert.der().clone(), made.signing_key.serialize_der())
    });
    (certificate.clone(), PrivateKeyDer::try_from(key.clone()).unwrap())
}

fn trusting() -> Arc<RootCertStore> {
    let mut store = RootCertStore::empty();
    store.add(identity().0).unwrap();
    Arc::new(store)
}

/// A server for [`NAME`] with both protocols and tickets, after `change`.
pub(super) fn server(change: impl FnOnce(&mut ServerConfig)) -> Arc<Server> {
    let (certificate, key) = identity();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(rustls::ALL_VERSIONS)
        .unwrap()
        .with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(trusting(), Arc::new(aws_lc_rs::default_provider()))
                .allow_unauthenticated()
                .build()
                .unwrap(),
        );
    let mut config = config.with_single_cert(vec![certificate], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.ticketer = Ticketer::new().unwrap();
    config.enable_secret_extraction = true;
    change(&mut config);
    Arc::new(Server::for_tests(NAME, config))
}

/// What a client is like.
pub(super) struct Client {
    pub(super) suites: Vec<SupportedCipherSuite>,
    pub(super) name: &'static str,
    pub(super) protocols: Vec<Vec<u8>>,
    pub(super) trusts: bool,
    pub(super) shows_certificate: bool,
}

impl Default for Client {
    fn default() -> Self {
        Self {
            suites: aws_lc_rs::default_provider().cipher_suites,
            name: NAME,
            protocols: Vec::new(),
            trusts: true,
            shows_certificate: false,
        }
    }
}

impl Client {
    /// A client that knows one suite only.
    pub(super) fn of(suite: SupportedCipherSuite) -> Self {
        Self { suites: vec![suite], ..Self::default() }
    }

    pub(super) fn config(self) -> Arc<ClientConfig> {
        let versions: Vec<&'static SupportedProtocolVersion> = [&version::TLS12, &version::TLS13]
            .into_iter()
            .filter(|version| self.suites.iter().any(|suite| *suite.version() == **version))
            .collect();
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites = self.suites;
        let config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(if self.trusts {
                trusting()
            } else {
                let mut others = RootCertStore::empty();
                let stranger = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
                others.add(stranger.cert.der().clone()).unwrap();
                Arc::new(others)
            });
        let (certificate, key) = identity();
        let mut config = if self.shows_certificate {
            config.with_client_auth_cert(vec![certificate], key).unwrap()
        } else {
            config.with_no_client_auth()
        };
        config.alpn_protocols = self.protocols;
        config.resumption = Resumption::in_memory_sessions(4);
        config.enable_secret_extraction = true;
        Arc::new(config)
    }

    pub(super) fn connect(self) -> ClientConnection {
        let name = self.name;
        connect(&self.config(), name)
    }
}

pub(super) fn connect(config: &Arc<ClientConfig>, name: &'static str) -> ClientConnection {
    ClientConnection::new(Arc::clone(config), ServerName::try_from(name).unwrap()).unwrap()
}

/// All that the client has to send.
pub(super) fn output_of(client: &mut ClientConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Gives the client these records. Returns the data in them.
pub(super) fn give(client: &mut ClientConnection, mut records: &[u8]) -> Result<Vec<u8>, rustls::Error> {
    let mut data = Vec::new();
    while !records.is_empty() {
        client.read_tls(&mut records).unwrap();
        client.process_new_packets()?;
        // Fails while there is nothing to read.
        let _ = client.reader().read_to_end(&mut data);
    }
    Ok(data)
}

/// How a handshake ended, and how often it asked for work.
pub(super) type Ended = (Result<Box<Established>, HandshakeFailure>, usize);

/// Takes a handshake to its end; the client's bytes arrive so many at a time. The client sends `request` as soon as it
/// may.
pub(super) fn shake(
    client: &mut ClientConnection,
    server: &Arc<Server>,
    bytes_at_once: usize,
    request: &[u8],
) -> Ended {
    client.writer().write_all(request).unwrap();
    let mut handshake = Handshake::new(Arc::clone(server));
    let mut works = 0;
    loop {
        let sent = output_of(client);
        assert!(!sent.is_empty(), "both ends wait");
        let mut pieces = sent.chunks(bytes_at_once);
        while let Some(piece) = pieces.next() {
            handshake.feed(piece);
            loop {
                let needs = handshake.poll();
                let result = match needs {
                    Needs::Input => break,
                    Needs::Work => {
                        works += 1;
                        // On another thread, as a loop that must not block has it done.
                        handshake = std::thread::spawn(move || {
                            handshake.work();
                            handshake
                        })
                        .join()
                        .unwrap();
                        continue;
                    }
                    Needs::Nothing(mut established) => {
                        pieces.for_each(|piece| established.unread.extend_from_slice(piece));
                        Ok(established)
                    }
                    Needs::Failed(failure) => Err(failure),
                };
                let told = give(client, &handshake.take_output());
                assert!(told.is_ok() || result.is_err(), "{told:?}");
                return (result, works);
            }
        }
        // A client that fails has an alert for the server.
        let _ = give(client, &handshake.take_output());
    }
}

/// An established connection.
pub(super) fn established(client: Client) -> (ClientConnection, Box<Established>) {
    let mut client = client.connect();
    let (result, _) = shake(&mut client, &server(|_| {}), usize::MAX, b"");
    (client, result.unwrap())
}
