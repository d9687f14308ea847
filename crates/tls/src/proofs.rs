//! Proofs for certificate authorities that a name leads to this server (TLS-ALPN-01, RFC 8737): certificates that are
//! shown in a handshake for that protocol alone, and never to a browser.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use baton_report::OperatorError;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::SectionKind;
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};

use crate::client_hello::ACME_PROTOCOL;
use crate::identity::{no_certificate, signing_key};
use crate::pem::PemFile;
use crate::provider::provider;
use crate::traffic_secrets::SecretLog;

/// The proofs that a worker shows, by host name. All its listeners and loops share them.
#[derive(Debug, Default)]
pub struct Proofs(RwLock<HashMap<String, Arc<ServerConfig>>>);

impl Proofs {
    /// Shows this certificate for `name`; the file has its key, too.
    ///
    /// # Errors
    /// The file has no certificate, or no key.
    pub fn put(&self, name: &str, file: &PemFile) -> Result<(), OperatorError> {
        let sections = file.sections(&[SectionKind::Certificate])?;
        let Some(certificate) = sections.first() else { return Err(no_certificate(file)) };
        let (key, _) = signing_key(file)?;
        // Unchecked: the library would refuse the acmeIdentifier, an extension that is critical and unknown to it.
        let certified = CertifiedKey::new(vec![CertificateDer::from(certificate.der.to_vec())], key);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .map_err(|error| OperatorError::new(error.to_string()))?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = vec![ACME_PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        // As for other connections: the record layer is our own.
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(SecretLog);
        let mut proofs = self.0.write().unwrap_or_else(PoisonError::into_inner);
        proofs.insert(name.to_ascii_lowercase(), Arc::new(config));
        Ok(())
    }

    /// Shows nothing for `name` any more.
    pub fn remove(&self, name: &str) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&name.to_ascii_lowercase());
    }

    /// Its terms, for the library; `name` is in lower case.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<ServerConfig>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}
