//! What is demanded of an origin before it gets a request.

use std::fmt;
use std::sync::Arc;

use baton_report::OperatorError;
use rustls::client::Resumption;
use rustls::pki_types::pem::SectionKind;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use crate::any_certificate::AnyCertificate;
use crate::identity::no_certificate;
use crate::provider::provider;
use crate::traffic_secrets::SecretLog;
use crate::{Identity, PemFile, Protocol};

/// What the connections to an upstream have in common: whom they trust, as whom they show themselves, and their sessions,
/// which any of them may resume. One for each upstream and process.
#[derive(Clone)]
pub struct OriginPolicy {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Whose certificates an origin may have.
#[derive(Clone, Copy, Debug)]
pub enum Trust<'a> {
    /// Certificates of the authorities in this file.
    Authorities(&'a PemFile),
    /// Certificates of these authorities, in DER, which the system trusts.
    System(&'a [CertificateDer<'static>]),
    /// Of any server: the connection is private to eavesdroppers, not to a machine in between.
    Anything,
}

impl OriginPolicy {
    /// Demands a certificate for `name`, a host name or an IP address, of an authority that is trusted. `identity` is shown
    /// to an origin that asks for one.
    ///
    /// # Errors
    /// `name` is neither; there is no authority in the file, or a damaged one.
    pub fn new(name: &str, trust: Trust<'_>, identity: Option<&Identity>) -> Result<Self, OperatorError> {
        let literal = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let name = ServerName::try_from(literal.to_owned()).map_err(|_| {
            OperatorError::new(format!(
                "{name}: neither a host name nor an IP address, so no certificate can be for it"
            ))
            .remedy("name the host of the origin's certificate with `server_name`")
        })?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .map_err(|error| OperatorError::new(error.to_string()))?;
        let builder = match trust {
            Trust::Authorities(file) => builder.with_root_certificates(roots_of(file)?),
            Trust::System(authorities) => {
                let mut roots = RootCertStore::empty();
                // Systems trust some that the library cannot use.
                roots.add_parsable_certificates(authorities.iter().cloned());
                builder.with_root_certificates(roots)
            }
            Trust::Anything => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyCertificate::new()))
            }
        };
        let mut config = match identity {
            Some(identity) => {
                let shown = SingleCertAndKey::from(Arc::clone(&identity.certified));
                builder.with_client_cert_resolver(Arc::new(shown))
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![Protocol::Http11.id().to_vec()];
        config.resumption = Resumption::in_memory_sessions(SESSIONS_MAX);
        // The record layer is our own.
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(SecretLog);
        Ok(Self { config: Arc::new(config), name })
    }
}

impl fmt::Debug for OriginPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OriginPolicy").field("name", &self.name).finish_non_exhaustive()
    }
}

fn roots_of(file: &PemFile) -> Result<RootCertStore, OperatorError> {
    let mut roots = RootCertStore::empty();
    for section in file.sections(&[SectionKind::Certificate])? {
        roots.add(CertificateDer::from(&section.der[..])).map_err(|error| {
            file.trouble(section.line, format_args!("not the certificate of an authority: {error}"))
        })?;
    }
    if roots.is_empty() { Err(no_certificate(file)) } else { Ok(roots) }
}

/// Names whose sessions are kept for resumption: there is one for an upstream, and the library keeps eight tickets for each.
const SESSIONS_MAX: usize = 8;
