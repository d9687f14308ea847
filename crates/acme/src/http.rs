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

use baton_https_client::http::header::{RETRY_AFTER, USER_AGENT};
use baton_https_client::http::{HeaderValue, Request};
use baton_https_client::{Authorities, Client, ClientSettings};
use baton_report::OperatorError;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};

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
    client: Client,
    /// `Retry-After` of the last answer. The library does not pass on that of errors.
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl Http {
    /// A client that trusts the certificates in the PEM file `roots`, or else those that the system trusts.
    ///
    /// # Errors
    /// If the file cannot be read, or there are none.
    pub(crate) fn new(roots: Option<&Path>) -> Result<Self, OperatorError> {
        let client = Client::new(&ClientSettings {
            authorities: Some(Authorities {
                file: roots,
                what: "the authority's root certificates",
                remedy: "name a PEM file that the workers' user may read, or leave the setting out",
            }),
            https_only: true,
            redirects_max: REDIRECTS_MAX,
            // An authority is usually on the internet, to which a proxy may be the only way.
            uses_proxy: true,
            connect_timeout: None,
            timeout: REQUEST_TIMEOUT,
        })?;
        Ok(Self { client, retry_after: Arc::default() })
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
        let answer = self.client.ask(Request::from_parts(parts, &body[..]), ANSWER_BYTES_MAX);
        let answer = answer.map_err(|error| Error::Other(error.into()))?;
        let retry_after =
            answer.headers().get(RETRY_AFTER).and_then(|value| parse_retry_after(value, SystemTime::now()));
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner) = retry_after;
        let (parts, bytes) = answer.into_parts();
        Ok(BytesResponse { parts, body: Box::new(Bytes::from(bytes)) })
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

/// Authorities have no reason for more than one.
const REDIRECTS_MAX: u32 = 10;

/// The longest answer, a certificate chain, has some kilobytes.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// RFC 8555, 6.1: the client says what it is.
const OUR_NAME: &str = concat!("baton/", env!("CARGO_PKG_VERSION"), " instant-acme");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_roots_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let told = Http::new(Some(file.path())).unwrap_err().to_string();
        let name = file.path().display();
        let begin =
            format!("cannot read the authority's root certificates from {name}: there is none in it\n");
        assert!(told.starts_with(&begin), "{told}");
    }

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
