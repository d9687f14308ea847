//! Certificates of clients: which a site asks for, and which it accepts.

use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use baton_report::OperatorError;
use rustls::RootCertStore;
use rustls::pki_types::pem::SectionKind;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use x509_parser::prelude::{CertificateRevocationList, FromDer, X509Version};

use crate::identity::no_certificate;
use crate::pem::{PemFile, Section};
use crate::provider::provider;

/// Whether a client must have a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// The client is asked for a certificate and may have none. One that is not accepted ends the handshake.
    Request,
    /// Without one the handshake fails.
    Require,
}

/// What a site demands of clients. Two policies with the same [`id`](Self::id) are the same.
#[derive(Debug)]
pub struct ClientPolicy {
    id: PolicyId,
    pub(crate) verifier: Arc<dyn ClientCertVerifier>,
}

/// Digest of a policy: whether clients must have a certificate, the authorities, and what they have revoked.
///
/// A connection keeps the id of the policy that its handshake met. A request for a site of another policy must be refused
/// (421): a client could otherwise reach a site that asks for certificates by way of one that does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PolicyId([u8; 32]);

impl ClientPolicy {
    /// Accepts certificates that one of the `authorities` has issued, itself or by intermediates, and not `revoked`. With
    /// revocation lists, each certificate of the client's chain needs one that covers it. A list whose time is over counts
    /// on.
    ///
    /// # Errors
    /// A file has no certificate or no list in it, or a damaged one.
    pub fn load(
        mode: ClientCertificates,
        authorities: &PemFile,
        revoked: Option<&PemFile>,
    ) -> Result<Self, OperatorError> {
        let mut digest = Context::new(&SHA256);
        digest.update(&[mode as u8]);
        let mut roots = RootCertStore::empty();
        for section in authorities.sections(&[SectionKind::Certificate])? {
            digest.update(&section.der);
            let added = roots.add(CertificateDer::from(&section.der[..]));
            added.map_err(|error| {
                authorities
                    .trouble(section.line, format_args!("not the certificate of an authority: {error}"))
            })?;
        }
        if roots.is_empty() {
            return Err(no_certificate(authorities));
        }
        let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider());
        if let Some(revoked) = revoked {
            let lists = revoked.sections(&[SectionKind::Crl])?;
            if lists.is_empty() {
                let trouble = revoked.whole("no revocation list in it");
                return Err(trouble.remedy("name a PEM file with a section `-----BEGIN X509 CRL-----`"));
            }
            for list in &lists {
                check_list(revoked, list)?;
            }
            // Where lists begin: the certificates before them could otherwise be confused with them.
            digest.update(b"revoked");
            lists.iter().for_each(|list| digest.update(&list.der));
            builder = builder
                .with_crls(lists.iter().map(|list| CertificateRevocationListDer::from(list.der.to_vec())));
        }
        if mode == ClientCertificates::Request {
            builder = builder.allow_unauthenticated();
        }
        let verifier = builder.build().map_err(|error| revoked.unwrap_or(authorities).whole(error))?;
        let id = PolicyId(digest.finish().as_ref().try_into().unwrap_or_default());
        Ok(Self { id, verifier })
    }

    /// Its id.
    pub fn id(&self) -> PolicyId {
        self.id
    }
}

/// A list of version 1 has no number, and does not say whose it is if an authority has several.
fn check_list(file: &PemFile, list: &Section) -> Result<(), OperatorError> {
    let parsed = CertificateRevocationList::from_der(&list.der);
    let (_, parsed) =
        parsed.map_err(|error| file.trouble(list.line, format_args!("not a revocation list: {error}")))?;
    if parsed.version() == Some(X509Version::V2) {
        return Ok(());
    }
    Err(file
        .trouble(list.line, "a revocation list of version 1: version 2 is needed")
        .cause("openssl makes these where its configuration names no `crl_extensions`")
        .remedy("set `crl_extensions` in the authority's section, and run `openssl ca -gencrl` again"))
}

impl PolicyId {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

#[cfg(test)]
impl PolicyId {
    pub(crate) fn for_tests(byte: u8) -> Self {
        Self([byte; 32])
    }
}
