//! An identity: a certificate chain and its private key, from PEM files, checked before a client sees it.

use std::sync::Arc;

use baton_report::OperatorError;
use rustls::pki_types::pem::SectionKind;
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs1KeyDer, PrivatePkcs8KeyDer, PrivateSec1KeyDer,
};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{Error, InconsistentKeys};
use x509_parser::prelude::{FromDer, X509Certificate, X509Version};

use crate::certificate::{Certificate, KeyAlgorithm};
use crate::pem::{PemFile, Section};

/// A certificate chain with its private key.
#[derive(Debug)]
pub struct Identity {
    pub(crate) certified: Arc<CertifiedKey>,
    certificate: Certificate,
}

impl Identity {
    /// Reads the chain of one file and the key of another, or of the same.
    ///
    /// # Errors
    /// The chain is missing, damaged or in a wrong order; the key is missing, protected by a password, of an unknown
    /// kind, or belongs to another certificate. An expired certificate is no error, since a server that did not start
    /// for it would serve no other site either: see [`Certificate::advice`].
    pub fn load(chain: &PemFile, key: &PemFile) -> Result<Self, OperatorError> {
        let sections = chain.sections(&[SectionKind::Certificate])?;
        let Some(leaf) = sections.first() else { return Err(no_certificate(chain)) };
        check_order(chain, &sections)?;
        check_version(chain, leaf)?;
        let (signing_key, line) = signing_key(key)?;
        let algorithm = KeyAlgorithm::of(signing_key.algorithm())
            .ok_or_else(|| key.trouble(line, "a key of a kind that is not supported"))?;
        let certificate = Certificate::read(&leaf.der, algorithm, chain.name())
            .ok_or_else(|| chain.trouble(leaf.line, "not a certificate"))?;
        let ders = sections.iter().map(|section| CertificateDer::from(section.der.to_vec())).collect();
        let certified = CertifiedKey::new(ders, signing_key);
        match certified.keys_match() {
            // A key that cannot tell its public part is used unchecked.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(_)) => {
                let what = format!(
                    "the key does not belong to the certificate at {}:{} ({})",
                    chain.name(),
                    leaf.line,
                    certificate.subject
                );
                return Err(key
                    .trouble(line, what)
                    .cause(
                        "the key or the certificate was renewed without the other, or the leaf is not first",
                    )
                    .remedy("install both from the same renewal, the server's own certificate first"));
            }
            Err(error) => return Err(chain.trouble(leaf.line, error)),
        }
        Ok(Self { certified: Arc::new(certified), certificate })
    }

    /// What its first certificate says.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }
}

/// Each certificate must be issued by the next one: many clients do not sort them.
fn check_order(file: &PemFile, sections: &[Section]) -> Result<(), OperatorError> {
    let mut previous: Option<(X509Certificate<'_>, usize)> = None;
    for section in sections {
        let (_, certificate) = X509Certificate::from_der(&section.der)
            .map_err(|error| file.trouble(section.line, format_args!("not a certificate: {error}")))?;
        if let Some((issued, line)) = &previous
            && issued.issuer().as_raw() != certificate.subject().as_raw()
        {
            let what = format!(
                "this certificate ({}) did not issue the one before it, at line {line}, which names {}",
                certificate.subject(),
                issued.issuer()
            );
            return Err(file
                .trouble(section.line, what)
                .cause("the certificates are in a wrong order, or belong to different chains")
                .remedy("the server's own certificate first, then its issuer, then the issuer of that one"));
        }
        previous = Some((certificate, section.line));
    }
    Ok(())
}

/// A certificate without extensions says for which names it is where no client looks any more.
fn check_version(file: &PemFile, leaf: &Section) -> Result<(), OperatorError> {
    let version = X509Certificate::from_der(&leaf.der).map(|(_, certificate)| certificate.version());
    match version {
        Ok(version) if version != X509Version::V3 => Err(file
            .trouble(leaf.line, format_args!("a certificate of X.509 version {}: TLS needs version 3", version.0 + 1))
            .cause("openssl makes these where its configuration names no extensions")
            .remedy("make one with the names that it is for: `openssl req -x509 -addext subjectAltName=DNS:NAME …`")),
        _ => Ok(()),
    }
}

/// The first private key of a file, and its line.
pub(crate) fn signing_key(file: &PemFile) -> Result<(Arc<dyn SigningKey>, usize), OperatorError> {
    let kinds = [SectionKind::PrivateKey, SectionKind::RsaPrivateKey, SectionKind::EcPrivateKey];
    let sections = file.sections(&kinds)?;
    let Some(section) = sections.first() else {
        return Err(match file.encrypted_key() {
            Some(line) => file
                .trouble(line, "the private key is protected by a password")
                .remedy(format!("`openssl pkey -in {} -out KEY` writes it without", file.name())),
            None => file
                .whole("no private key in it")
                .cause("the file is another one, such as the certificate")
                .remedy("name a PEM file with a section `-----BEGIN PRIVATE KEY-----`"),
        });
    };
    // Borrowed: the one copy of the bytes is zeroed on drop.
    let der = match section.kind {
        SectionKind::RsaPrivateKey => PrivateKeyDer::from(PrivatePkcs1KeyDer::from(&section.der[..])),
        SectionKind::EcPrivateKey => PrivateKeyDer::from(PrivateSec1KeyDer::from(&section.der[..])),
        _ => PrivateKeyDer::from(PrivatePkcs8KeyDer::from(&section.der[..])),
    };
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&der).map_err(|_| {
        file.trouble(section.line, "a private key that is damaged or of a kind that is not supported")
            .cause("supported are RSA of 2048 to 8192 bits, ECDSA over P-256, P-384 and P-521, and Ed25519")
    })?;
    Ok((key, section.line))
}

pub(crate) fn no_certificate(file: &PemFile) -> OperatorError {
    file.whole("no certificate in it")
        .cause("the file is another one, such as the key, or is not PEM but DER")
        .remedy(format!("`openssl x509 -inform der -in {} -out PEM` converts DER", file.name()))
}
