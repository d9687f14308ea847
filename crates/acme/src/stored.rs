//! A certificate with its key, checked before it replaces another one.

use baton_report::OperatorError;
use baton_tls::{Identity, PemFile};
use instant_acme::CertificateIdentifier;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use crate::names::Names;
use crate::planner::Validity;
use crate::time::UnixTime;

/// What the process knows about a certificate that it has.
#[derive(Clone, Debug)]
pub(crate) struct StoredCertificate {
    pub(crate) validity: Validity,
    /// How the authority knows it (RFC 9773, 4.1); a certificate without a key identifier has no such name.
    pub(crate) id: Option<CertificateIdentifier<'static>>,
}

impl StoredCertificate {
    /// Checks that key and chain belong together and that the certificate has all the names.
    ///
    /// # Errors
    /// What is wrong.
    pub(crate) fn check(source: &str, pem: &[u8], names: &Names) -> Result<Self, OperatorError> {
        let file = PemFile::new(source, pem.to_vec());
        let identity = Identity::load(&file, &file)?;
        let certificate = identity.certificate();
        if let Some(missing) = names.all().iter().find(|name| !certificate.covers(name)) {
            return Err(OperatorError::new(format!("{source}: the certificate is not for {missing}")));
        }
        let leaf = CertificateDer::from_pem_slice(pem)
            .map_err(|error| OperatorError::new(format!("{source}: {error}")))?;
        let id = CertificateIdentifier::try_from(&leaf).ok().map(CertificateIdentifier::into_owned);
        let validity = Validity {
            not_before: UnixTime::of(certificate.not_before),
            not_after: UnixTime::of(certificate.not_after),
        };
        Ok(Self { validity, id })
    }
}
