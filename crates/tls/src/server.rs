//! What a listener knows of TLS: by the name that a client asks for, the site's certificates and its demands.
//!
//! A server does not change: a reload makes another one, and handshakes under way keep theirs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use baton_report::OperatorError;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, SignatureScheme};

use crate::clients::{ClientPolicy, PolicyId};
use crate::identity::Identity;
use crate::proofs::Proofs;
use crate::provider::provider;
use crate::tickets::{Ticketer, Tickets};
use crate::traffic_secrets::SecretLog;

/// A protocol above TLS, as clients and servers agree on it (ALPN, RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `h2`
    Http2,
    /// `http/1.1`
    Http11,
}

/// A site of the listener.
#[derive(Clone, Debug)]
pub struct Site {
    /// Names as in the configuration: `example.org`, `*.example.org`. Empty: it answers to all others.
    pub hosts: Vec<String>,
    /// Its certificates: at least one. A client gets one whose algorithm it knows, ECDSA before RSA.
    pub identities: Vec<Arc<Identity>>,
    /// What it demands of clients; `None`: no certificate.
    pub clients: Option<Arc<ClientPolicy>>,
}

/// The sites of a listener, by name.
pub struct Server {
    sites: Vec<Terms>,
    by_host: HashMap<String, usize>,
    /// Suffixes (`.example.org`), longest first.
    wildcards: Vec<(String, usize)>,
    /// The site for other names, if one answers to them.
    default: Option<usize>,
    /// What certificate authorities get to see.
    proofs: Arc<Proofs>,
}

/// The terms on which a site meets clients.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// For the library.
    pub(crate) config: Arc<ServerConfig>,
    /// What it demands of clients.
    pub(crate) policy: Option<PolicyId>,
}

impl Server {
    /// A server for these sites. Of two sites with the same host the first wins, as for requests.
    ///
    /// # Errors
    /// No site, or one without a certificate: the configuration should have said so.
    pub fn new(
        sites: Vec<Site>,
        protocols: &[Protocol],
        tickets: &Arc<Tickets>,
    ) -> Result<Self, OperatorError> {
        if sites.is_empty() || sites.iter().any(|site| site.identities.is_empty()) {
            return Err(OperatorError::new("a TLS listener needs a certificate for each of its sites"));
        }
        let mut by_host = HashMap::new();
        let mut wildcards: Vec<(String, usize)> = Vec::new();
        for (index, site) in sites.iter().enumerate() {
            for host in &site.hosts {
                let host = host.to_ascii_lowercase();
                match host.strip_prefix('*') {
                    Some(suffix) => wildcards.push((suffix.to_owned(), index)),
                    None => _ = by_host.entry(host).or_insert(index),
                }
            }
        }
        wildcards.sort_by_key(|(suffix, _)| std::cmp::Reverse(suffix.len()));
        let default = sites.iter().position(|site| site.hosts.is_empty());
        let sites = sites.into_iter().map(|site| Terms::new(site, protocols, tickets));
        let proofs = Arc::default();
        Ok(Self { sites: sites.collect::<Result<_, _>>()?, by_host, wildcards, default, proofs })
    }

    /// Shows authorities these proofs.
    pub fn with_proofs(self, proofs: Arc<Proofs>) -> Self {
        Self { proofs, ..self }
    }

    /// The terms for an authority that wants to see a proof for a name.
    pub(crate) fn proof(&self, name: Option<&str>) -> Option<Terms> {
        self.proofs.get(name?).map(|config| Terms { config, policy: None })
    }

    /// The terms for a client, by the name that it asks for (SNI). A client without a name, such as one that was given an
    /// IP address, gets the default site or else the first. `None`: no site answers to the name, and the client is to be
    /// told so (`unrecognized_name`).
    pub(crate) fn terms(&self, name: Option<&str>) -> Option<&Terms> {
        let Some(name) = name else { return self.sites.get(self.default.unwrap_or(0)) };
        let name = name.to_ascii_lowercase();
        let by_wildcard = || {
            let matches = |suffix: &str| name.len() > suffix.len() && name.ends_with(suffix);
            self.wildcards.iter().find(|(suffix, _)| matches(suffix)).map(|(_, index)| *index)
        };
        let index = self.by_host.get(&name).copied().or_else(by_wildcard).or(self.default)?;
        self.sites.get(index)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("by_host", &self.by_host).finish_non_exhaustive()
    }
}

impl Terms {
    fn new(site: Site, protocols: &[Protocol], tickets: &Arc<Tickets>) -> Result<Self, OperatorError> {
        let policy = site.clients.as_ref().map(|clients| clients.id());
        let mut certified = site.identities;
        certified.sort_by_key(|identity| identity.certificate().key);
        let certified = certified.iter().map(|identity| Arc::clone(&identity.certified)).collect();
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(rustls::ALL_VERSIONS)
            .map_err(|error| OperatorError::new(error.to_string()))?;
        let builder = match site.clients {
            Some(clients) => builder.with_client_cert_verifier(Arc::clone(&clients.verifier)),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(Certificates(certified)));
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.id().to_vec()).collect();
        // Tickets hold the sessions: another worker could not look into this one's memory.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = Arc::new(Ticketer::new(Arc::clone(tickets), policy));
        // A request that is sent before the handshake is complete can be replayed, at another worker too.
        config.max_early_data_size = 0;
        // The record layer is our own, or the kernel's.
        config.enable_secret_extraction = true;
        config.key_log = Arc::new(SecretLog);
        Ok(Self { config: Arc::new(config), policy })
    }
}

impl Protocol {
    /// Its registered id.
    pub fn id(self) -> &'static [u8] {
        match self {
            Self::Http2 => b"h2",
            Self::Http11 => b"http/1.1",
        }
    }
}

/// The certificates of a site, those whose signatures cost least first.
#[derive(Debug)]
struct Certificates(Vec<Arc<CertifiedKey>>);

impl Certificates {
    fn choose(&self, schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let fits = |certified: &&Arc<CertifiedKey>| certified.key.choose_scheme(schemes).is_some();
        // A client that knows none of the algorithms gets an alert that says so, from the library.
        self.0.iter().find(fits).or_else(|| self.0.last()).map(Arc::clone)
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.signature_schemes())
    }
}

#[cfg(test)]
impl Server {
    /// A server that answers to one name, on terms of the library.
    pub(crate) fn for_tests(name: &str, mut config: ServerConfig) -> Self {
        config.key_log = Arc::new(SecretLog);
        let sites = vec![Terms { config: Arc::new(config), policy: None }];
        Self {
            sites,
            by_host: HashMap::from([(name.to_owned(), 0)]),
            wildcards: Vec::new(),
            default: None,
            proofs: Arc::default(),
        }
    }
}
