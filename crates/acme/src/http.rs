//! Requests to the authority: one after the other, each with a deadline and a bound on its answer.
//!
//! The ACME library is written for async runtimes and takes an HTTP client as a trait. This one blocks: its futures are
//! ready when they are made, so [`run`] needs no runtime to drive them.

use std::future::{Future, ready};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use baton_report::Trouble;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use ureq::Agent;
use ureq::http::header::{RETRY_AFTER, USER_AGENT};
use ureq::http::{HeaderValue, Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Drives a future of the ACME library that does nothing but requests by [`Http`].
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("the library waits for something else than a request"),
    }
}

/// A client for one authority.
#[derive(Clone, Debug)]
pub(crate) struct Http {
    agent: Agent,
    /// `Retry-After` of the last answer. The library does not pass on that of errors.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl Http {
    /// A client that trusts the certificates in the PEM file `roots`, or else those that the system trusts.
    ///
    /// # Errors
    /// If the file cannot be read, or there are none.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Self, Trouble> {
        let roots = match roots {
            Some(file) => from_file(file)?,
            None => baton_tls::system_authorities()?,
        };
        let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .build();
        let agent = Agent::config_builder()
            .https_only(true)
            .http_status_as_error(false)
            .timeout_global(Some(REQUEST_TIMEOUT))
            .tls_config(tls)
            .build()
            .new_agent();
        Ok(Self { agent, retry_after: Arc::default() })
    }

    /// How long the authority wanted to be left alone in its last answer.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let (mut parts, body) = request.into_parts();
        parts.headers.insert(USER_AGENT, HeaderValue::from_static(OUR_NAME));
        let Ok(body) = run(body.collect());
        let body = body.to_bytes();
        // An empty body belongs to GET and HEAD, which the client refuses to send with one.
        let answer = if body.is_empty() {
            self.agent.run(Request::from_parts(parts, ()))
        } else {
            self.agent.run(Request::from_parts(parts, &body[..]))
        };
        let other = |error: ureq::Error| Error::Other(error.into());
        let mut answer = answer.map_err(other)?;
        let retry_after =
            answer.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value, SystemTime::now()));
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner) = retry_after;
        let bytes = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec().map_err(other)?;
        let (parts, _) = answer.into_parts();
        let response = Response::from_parts(parts, ());
        Ok(BytesResponse { parts: response.into_parts().0, body: Box::new(Bytes::from(bytes)) })
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        Box::pin(ready(self.send(request)))
    }
}

fn from_file(path: &Path) -> Result<Vec<CertificateDer<'static>>, Trouble> {
    let file = path.display();
    let failed = |reason: &dyn std::fmt::Display| {
        Trouble::new(format!("cannot read the authority's root certificates from {file}: {reason}"))
            .remedy("name a PEM file that the workers' user may read, or leave the setting out")
    };
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(path).map_err(|error| failed(&error))?.collect();
    let found = found.map_err(|error| failed(&error))?;
    if found.is_empty() { Err(failed(&"there is none in it")) } else { Ok(found) }
}

/// RFC 9110, 10.2.3: seconds, or a date.
fn parse_retry_after(value: &HeaderValue, now: SystemTime) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => Some(httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default()),
    }
}

/// Authorities answer within seconds; while the process waits, it does not notice what the master says.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer, a certificate chain, has some kilobytes.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// RFC 8555, 6.1: the client says what it is.
const OUR_NAME: &str = concat!("baton/", env!("CARGO_PKG_VERSION"), " instant-acme");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_a_number_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_700);
        let parse = |text| parse_retry_after(&HeaderValue::from_static(text), now);
        assert_eq!(parse("120"), Some(Duration::from_secs(120)));
        assert_eq!(parse("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::from_secs(77)));
        assert_eq!(parse("Sun, 06 Nov 1983 08:49:37 GMT"), Some(Duration::ZERO));
        assert_eq!(parse("soon"), None);
    }
}
