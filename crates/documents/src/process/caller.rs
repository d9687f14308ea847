//! Questions to peers, over HTTP.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_report::Trouble;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::settings::SiteSettings;
use crate::trust::SIGNATURE_FIELD;
use crate::words::{Signed, WORDS_BYTES_MAX};
use crate::{COPIES, Origin};

/// A client for the peers of a site.
#[derive(Debug)]
pub(super) struct Caller {
    agent: Agent,
}

impl Caller {
    /// # Errors
    /// Certificates of authorities that cannot be read, if a peer speaks TLS.
    pub(super) fn new(settings: &SiteSettings) -> Result<Self, Trouble> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_global(Some(Duration::from_millis(settings.reply_ms)));
        if settings.peers.iter().any(Origin::is_https) {
            let roots = match &settings.authorities {
                Some(file) => from_file(file)?,
                None => baton_tls::system_authorities()?,
            };
            let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::new_with_certs(&roots))
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
            config = config.tls_config(tls.build());
        }
        Ok(Self { agent: config.build().new_agent() })
    }

    /// Asks; waits for the reply and its signature.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn ask(&self, peer: &Origin, question: &Signed) -> Result<(Vec<u8>, String), String> {
        let asked = self.agent.post(format!("{peer}{COPIES}/")).header(SIGNATURE_FIELD, &question.signature);
        let asked = asked.header("Content-Type", "application/json").send(&question.body[..]);
        let mut reply = asked.map_err(|error| error.to_string())?;
        let signature =
            reply.headers().get(SIGNATURE_FIELD).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = reply.status().as_u16();
        let bytes = reply.body_mut().with_config().limit(WORDS_BYTES_MAX as u64).read_to_vec();
        let bytes = bytes.map_err(|error| error.to_string())?;
        match signature.filter(|_| status == 200) {
            Some(signature) => Ok((bytes, signature)),
            None => Err(format!(
                "it answers {status}: {}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim()
            )),
        }
    }
}

fn from_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.map_err(|error| {
        Trouble::new(format!("cannot read the authorities of peers from {}: {error}", path.display()))
            .remedy("name a PEM file that the workers' user may read")
    })
}
