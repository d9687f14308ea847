//! The checked configuration.

use baton_engine::listen::ListenAddress;

use super::acme::Acme;
use super::admin::Admin;
use super::cache::Cache;
use super::cluster::Cluster;
use super::limits::Limits;
use super::log::LogSettings;
use super::media_types::MediaTypes;
use super::send::Send;
use super::server::Server;
use super::shared_cache::{RouteCache, SharedCache};
use super::site::Site;
use super::timeouts::Timeouts;
use super::tls::Tls;

/// A checked configuration: every setting has a value, all of them make sense together. Paths are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// `[server]`
    pub server: Server,
    /// `[limits]`
    pub limits: Limits,
    /// `[timeouts]`
    pub timeouts: Timeouts,
    /// `[send]`
    pub send: Send,
    /// `[cache]`
    pub cache: Cache,
    /// `[shared_cache]`
    pub shared_cache: SharedCache,
    /// `[tls]`
    pub tls: Tls,
    /// `[acme]`
    pub acme: Acme,
    /// `[cluster]`
    pub cluster: Cluster,
    /// `[log]`
    pub log: LogSettings,
    /// `[admin]`
    pub admin: Admin,
    /// `[media_types]`
    pub media_types: MediaTypes,
    /// `[[site]]`, at least one.
    pub sites: Vec<Site>,
}

impl Config {
    /// How the routes with a shared cache keep their responses.
    pub fn cached_routes(&self) -> impl Iterator<Item = &RouteCache> {
        self.sites.iter().flat_map(|site| &site.routes).filter_map(|route| route.settings.cache.as_ref())
    }

    /// The addresses of all sites, each once, in the order of the file. The place of an address in this list is the
    /// id of its listener, by which a plan names it.
    pub fn addresses(&self) -> Vec<&ListenAddress> {
        let mut addresses = Vec::new();
        for address in self.sites.iter().flat_map(Site::addresses) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses
    }
}
