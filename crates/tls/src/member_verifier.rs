//! Whom a member accepts at the other end: who has the same certificate, or one of the cluster's authority.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use baton_report::OperatorError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use crate::certificate::{Certificate, KeyAlgorithm};
use crate::member_authority::member_of;
use crate::provider::provider;

/// Verifies the other end of a connection, whichever has made it.
#[derive(Debug)]
pub(crate) struct MemberVerifier {
    accepts: Accepts,
    algorithms: WebPkiSupportedAlgorithms,
}

enum Accepts {
    /// One certificate, byte for byte. Neither names nor dates nor authorities count.
    Shared(CertificateDer<'static>),
    /// Certificates of an authority, but for those of these members.
    Signed { by: Arc<dyn ClientCertVerifier>, revoked: BTreeSet<String> },
}

impl fmt::Debug for Accepts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared",
            Self::Signed { .. } => "Signed",
        })
    }
}

impl MemberVerifier {
    /// For a member that has this chain: a certificate that all share, or its own one and the authority's.
    pub(crate) fn of(chain: &[CertificateDer<'static>], revoked: &[String]) -> Result<Self, OperatorError> {
        let accepts = match chain {
            [shared] if revoked.is_empty() => Accepts::Shared(shared.clone()),
            [_] => {
                return Err(OperatorError::new("members are revoked by name, but all share one key")
                    .cause("a host that has that key stays a member")
                    .remedy(
                        "give the others a new file of `baton cluster key`, or keys of an authority each",
                    ));
            }
            [.., authority] => {
                let failed = |error: &dyn fmt::Display| {
                    OperatorError::new(format!("the cluster's authority is of no use: {error}"))
                };
                let mut roots = RootCertStore::empty();
                roots.add(authority.clone()).map_err(|error| failed(&error))?;
                let by = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
                let revoked = revoked.iter().map(|name| name.to_ascii_lowercase()).collect();
                Accepts::Signed { by: by.map_err(|error| failed(&error))?, revoked }
            }
            [] => return Err(OperatorError::new("the cluster's key has no certificate")),
        };
        Ok(Self { accepts, algorithms: provider().signature_verification_algorithms })
    }

    fn check(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let refused = |why| Err(Error::InvalidCertificate(why));
        match &self.accepts {
            // Public, so that it does not matter how long this takes.
            Accepts::Shared(shared) if shown.as_ref() == shared.as_ref() => Ok(()),
            Accepts::Shared(_) => refused(CertificateError::ApplicationVerificationFailure),
            Accepts::Signed { by, revoked } => {
                by.verify_client_cert(shown, chain, now)?;
                match member(shown) {
                    Some(name) if !revoked.contains(&name) => Ok(()),
                    Some(_) => refused(CertificateError::Revoked),
                    None => refused(CertificateError::ApplicationVerificationFailure),
                }
            }
        }
    }
}

/// The name of the member with this certificate; `None`: the one that all share.
pub(crate) fn member(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = Certificate::read(certificate, KeyAlgorithm::Ecdsa, "")?;
    certificate.names.iter().find_map(|name| member_of(name).map(str::to_owned))
}

/// How either end verifies that the other has the key of its certificate: both traits ask for the same.
macro_rules! check_signatures {
    () => {
        /// TLS 1.2 is not spoken.
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::PeerIncompatible(rustls::PeerIncompatible::Tls13RequiredForQuic))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, certificate, signed, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }
    };
}

impl ServerCertVerifier for MemberVerifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown, chain, now).map(|()| ServerCertVerified::assertion())
    }

    check_signatures!();
}

impl ClientCertVerifier for MemberVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown, chain, now).map(|()| ClientCertVerified::assertion())
    }

    check_signatures!();
}
