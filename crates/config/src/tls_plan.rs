//! From a site's settings about TLS to what the engine gets: certificates, redirections, fields.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use baton_engine::listen::ListenAddress;
use baton_report::OperatorError;
use baton_site::guards::Guards;
use baton_site::matcher::Matcher;
use baton_site::plan;
use baton_site::plan::Action;
use baton_telemetry::log::SiteLog;
use baton_tls::{Certificate, ClientPolicy, Identity, Proofs, Protocol, Server, TicketSecrets, Tickets};

use super::config::Config;
use super::marking::marking;
use super::real_ip::RealIp;
use super::site::Site;
use super::tls::RedirectHttps;
use super::tls_files::PemFiles;

/// A certificate, and the site that has it.
#[derive(Clone, Debug)]
pub struct SiteCertificate {
    /// The site's name.
    pub site: String,
    /// The site's hosts.
    pub hosts: Vec<String>,
    /// What the certificate says.
    pub certificate: Certificate,
}

impl Config {
    /// Whether any site speaks TLS.
    pub fn has_tls(&self) -> bool {
        self.sites.iter().any(|site| site.settings.listen.iter().any(|listen| listen.tls))
    }

    /// Whether clients may speak HTTP/2 over TLS.
    pub fn offers_http2(&self) -> bool {
        self.tls.protocols.contains(&Protocol::Http2)
    }

    /// The certificates of all sites, checked with their keys; what sites demand of clients is checked too.
    ///
    /// # Errors
    /// The first that cannot be used, with file and line.
    pub fn certificates(&self, files: &PemFiles) -> Result<Vec<SiteCertificate>, OperatorError> {
        let mut all = Vec::new();
        for (site, tls) in self.sites.iter().zip(self.tls_sites(files)?) {
            all.extend(tls.identities.iter().map(|identity| SiteCertificate {
                site: site.name(),
                hosts: site.settings.hosts.clone(),
                certificate: identity.certificate().clone(),
            }));
        }
        Ok(all)
    }

    /// Certificates and demands of each site.
    pub(super) fn tls_sites(&self, files: &PemFiles) -> Result<Vec<baton_tls::Site>, OperatorError> {
        self.sites.iter().map(|site| self.tls_site(site, files)).collect()
    }

    /// The TLS of each listener that has it.
    pub(super) fn tls_servers(
        &self,
        listener_ids: &HashMap<&ListenAddress, usize>,
        tls_sites: Vec<baton_tls::Site>,
        tickets: Option<&Arc<Tickets>>,
        proofs: &Arc<Proofs>,
    ) -> io::Result<HashMap<usize, Arc<Server>>> {
        let tickets = match tickets {
            Some(tickets) => Arc::clone(tickets),
            // This plan is only inspected.
            None => Arc::new(Tickets::new(TicketSecrets::draw().map_err(io::Error::other)?)),
        };
        tickets.open_for(Duration::from_secs(self.tls.session_s));
        let mut by_listener: HashMap<usize, Vec<baton_tls::Site>> = HashMap::new();
        for (site, tls) in self.sites.iter().zip(tls_sites) {
            for listen in site.settings.listen.iter().filter(|listen| listen.tls) {
                if let Some(id) = listener_ids.get(&listen.address) {
                    by_listener.entry(*id).or_default().push(tls.clone());
                }
            }
        }
        let server = |(id, sites)| {
            let server = Server::new(sites, &self.tls.protocols, &tickets).map_err(io::Error::other)?;
            Ok((id, Arc::new(server.with_proofs(Arc::clone(proofs)))))
        };
        by_listener.into_iter().map(server).collect()
    }

    /// A site's certificates and demands.
    fn tls_site(&self, site: &Site, files: &PemFiles) -> Result<baton_tls::Site, OperatorError> {
        let settings = &site.settings;
        let file = |path| files.get(path).map_err(|error| OperatorError::new(error.to_string()));
        let certificates = self.certificate_files(site);
        let identities = certificates.iter().map(|one| {
            let identity = Identity::load(file(&one.certificate)?, file(one.key_file())?)?;
            Ok(Arc::new(identity))
        });
        let clients = settings.client_certificates.as_ref().map(|clients| {
            let revoked = clients.revoked.as_deref().map(file).transpose()?;
            ClientPolicy::load(clients.mode, file(&clients.authorities)?, revoked).map(Arc::new)
        });
        Ok(baton_tls::Site {
            hosts: settings.hosts.clone(),
            identities: identities.collect::<Result<_, OperatorError>>()?,
            clients: clients.transpose()?,
        })
    }
}

impl Site {
    /// The site with `Strict-Transport-Security` in every response, unless a route says otherwise.
    pub(super) fn with_hsts(self) -> Self {
        let mut site = self;
        let Some(value) = site.settings.hsts.clone() else { return site };
        let routes = site.routes.iter_mut().map(|route| &mut route.files);
        for files in routes.chain([&mut site.files]) {
            let fields = &mut files.headers.set;
            if !fields.iter().any(|(name, _)| baton_http::is_same_field(name, HSTS)) {
                fields.push((HSTS.to_owned(), value.as_str().into()));
            }
        }
        site
    }

    /// What answers on its addresses without TLS, if that sends clients to those with TLS. `guards`: what holds there.
    pub(super) fn redirecting(
        &self,
        listener_ids: &HashMap<&ListenAddress, usize>,
        guards: Option<Arc<Guards>>,
    ) -> Option<plan::Site> {
        let settings = &self.settings;
        let port = match settings.redirect_https {
            RedirectHttps::Off => return None,
            RedirectHttps::Port(port) => port,
            RedirectHttps::On => settings
                .listen
                .iter()
                .filter(|listen| listen.tls)
                .find_map(|listen| match listen.address {
                    ListenAddress::Tcp(address) => Some(address.port()),
                    ListenAddress::Unix(_) => None,
                })
                .unwrap_or(HTTPS_PORT),
        };
        let clear = settings.listen.iter().filter(|listen| !listen.tls);
        let host = settings.hosts.iter().find(|host| !host.starts_with('*')).cloned();
        Some(plan::Site {
            name: self.name(),
            listeners: clear.filter_map(|listen| listener_ids.get(&listen.address).copied()).collect(),
            hosts: settings.hosts.clone(),
            routes: vec![plan::Route {
                matcher: Matcher::prefix("/"),
                when: None,
                pages: None,
                cache_bypass: None,
                headers: self.files.headers.clone(),
                compress: None,
                digest: None,
                cors: None,
                guards: guards.clone(),
                action: Action::Https { host, port },
                otherwise: None,
            }],
            headers: self.files.headers.clone(),
            compress: None,
            cors: None,
            guards,
            real_address: settings.real_ip.as_ref().map(RealIp::plan),
            error_pages: Vec::new(),
            clients: None,
            figures: None,
            marking: marking(settings.request_id.as_ref(), settings.traceparent),
            log: SiteLog::Off,
            log_when: None,
        })
    }
}

const HSTS: &str = "Strict-Transport-Security";
const HTTPS_PORT: u16 = 443;
