//! Requests by processes that wait for the answers: to an authority of ACME, to etcd, to other servers. One at a time, each
//! with a deadline and a bound on its answer.
//!
//! The HTTP library is generic in the bodies of requests. Its code is compiled here, once, for bytes.

mod authorities;

use std::sync::Arc;
use std::time::Duration;

use baton_report::OperatorError;
use ureq::http::{Request, Response};
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body, Proxy};

pub use authorities::Authorities;
pub use ureq::{BodyReader, Error, http};

/// What a client is for.
#[derive(Clone, Debug)]
pub struct ClientSettings<'a> {
    /// By which servers are known. `None`: no URL is of TLS, and a system without authorities does no harm.
    pub authorities: Option<Authorities<'a>>,
    /// Whether URLs without TLS are refused, also those of redirections.
    pub https_only: bool,
    /// Redirections that are followed. With none, they are answers like any other.
    pub redirects_max: u32,
    /// Whether requests go through the proxy that the environment names (`HTTPS_PROXY`). Those within a site's own network
    /// must not.
    pub uses_proxy: bool,
    /// How long a connection may take to come about. `None`: as long as the whole request.
    pub connect_timeout: Option<Duration>,
    /// How long a request may take, with its answer.
    pub timeout: Duration,
}

/// A client, which keeps connections.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
}

impl Client {
    /// A client by these settings. Answers of any status are answers, not errors.
    ///
    /// # Errors
    /// If the certificates of the authorities cannot be read, or there are none.
    pub fn new(settings: &ClientSettings<'_>) -> Result<Self, OperatorError> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(settings.https_only)
            .max_redirects(settings.redirects_max)
            .proxy(if settings.uses_proxy { Proxy::try_from_env() } else { None })
            .timeout_connect(settings.connect_timeout)
            .timeout_global(Some(settings.timeout))
            .user_agent(OUR_NAME);
        if let Some(authorities) = &settings.authorities {
            let roots = authorities.read()?;
            let roots: Vec<_> = roots.iter().map(|root| Certificate::from_der(root).to_owned()).collect();
            let tls = TlsConfig::builder()
                .root_certs(RootCerts::new_with_certs(&roots))
                .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
            config = config.tls_config(tls.build());
        }
        Ok(Self { agent: config.build().new_agent() })
    }

    /// Sends a request and reads its answer, of at most `bytes_max`.
    ///
    /// # Errors
    /// There is no answer in time, or it is longer.
    pub fn ask(&self, request: Request<&[u8]>, bytes_max: u64) -> Result<Response<Vec<u8>>, Error> {
        let (parts, mut body) = self.send(request)?.into_parts();
        let bytes = body.with_config().limit(bytes_max).read_to_vec()?;
        Ok(Response::from_parts(parts, bytes))
    }

    /// Sends a request whose answer has no end. It may be silent for `idle`.
    ///
    /// # Errors
    /// There is no answer in time.
    pub fn follow(
        &self,
        request: Request<&[u8]>,
        idle: Duration,
    ) -> Result<Response<BodyReader<'static>>, Error> {
        let configured = self.agent.configure_request(request);
        let request = configured.timeout_global(None).timeout_per_read(Some(idle)).build();
        let (parts, body) = self.send(request)?.into_parts();
        Ok(Response::from_parts(parts, body.into_with_config().limit(u64::MAX).reader()))
    }

    fn send(&self, request: Request<&[u8]>) -> Result<Response<Body>, Error> {
        // An empty body belongs to GET and HEAD, which the library refuses to send with one.
        if request.body().is_empty() { self.agent.run(request.map(|_| ())) } else { self.agent.run(request) }
    }
}

/// What this client calls itself where a request has no other name.
const OUR_NAME: &str = concat!("baton/", env!("CARGO_PKG_VERSION"));
