//! Questions to peers, over HTTP.

use std::time::Duration;

use baton_https_client::http::Request;
use baton_https_client::{Authorities, Client, ClientSettings, Error};
use baton_report::OperatorError;

use crate::settings::SiteSettings;
use crate::trust::SIGNATURE_FIELD;
use crate::words::{SignedMessage, WORDS_BYTES_MAX};
use crate::{COPIES, Origin};

/// A client for the peers of a site.
#[derive(Debug)]
pub(super) struct Caller {
    client: Client,
}

impl Caller {
    /// # Errors
    /// Certificates of authorities that cannot be read, if a peer speaks TLS.
    pub(super) fn new(settings: &SiteSettings) -> Result<Self, OperatorError> {
        let is_tls = settings.peers.iter().any(Origin::is_https);
        let client = Client::new(&ClientSettings {
            authorities: is_tls.then_some(Authorities {
                file: settings.authorities.as_deref(),
                what: "the authorities of peers",
                remedy: "name a PEM file that the workers' user may read",
            }),
            https_only: false,
            redirects_max: 0,
            uses_proxy: false,
            connect_timeout: None,
            timeout: Duration::from_millis(settings.reply_ms),
        })?;
        Ok(Self { client })
    }

    /// Asks; waits for the reply and its signature.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn ask(&self, peer: &Origin, question: &SignedMessage) -> Result<(Vec<u8>, String), String> {
        let request = Request::post(format!("{peer}{COPIES}/"))
            .header(SIGNATURE_FIELD, &question.signature)
            .header("Content-Type", "application/json")
            .body(&question.body[..]);
        let reply =
            request.map_err(Error::from).and_then(|request| self.client.ask(request, WORDS_BYTES_MAX as u64));
        let reply = reply.map_err(|error| error.to_string())?;
        let signature =
            reply.headers().get(SIGNATURE_FIELD).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let status = reply.status().as_u16();
        let bytes = reply.into_body();
        match signature.filter(|_| status == 200) {
            Some(signature) => Ok((bytes, signature)),
            None => Err(format!(
                "it answers {status}: {}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim()
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_dispatch::migration::LoadMetric;

    use super::*;

    #[test]
    fn a_file_without_authorities_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let settings = SiteSettings {
            at: "https://a.example".parse().unwrap(),
            peers: vec!["https://b.example".parse().unwrap()],
            secret: Vec::new(),
            authorities: Some(file.path().to_owned()),
            files: None,
            statistics_ms: 1,
            ping_ms: 1,
            reply_ms: 1,
            peer_ms: 1,
            recall_ms: 1,
            imbalance_percent: 1,
            metric: LoadMetric::Requests,
            threshold_permille: 1,
            documents_max: 1,
        };
        let told = Caller::new(&settings).unwrap_err().to_string();
        let name = file.path().display();
        let begin = format!("cannot read the authorities of peers from {name}: there is none in it\n");
        assert!(told.starts_with(&begin), "{told}");
    }
}
