//! The routes that lead to the cluster.

use std::borrow::Cow;

use super::config::Config;
use super::proxy::Proxy;
use super::route::Route;

impl Config {
    /// Whether requests of any route go to the cluster.
    pub fn has_cluster_routes(&self) -> bool {
        self.sites.iter().flat_map(|site| &site.routes).any(|route| route.settings.cluster.is_some())
    }

    /// How the requests of a route go to origins, or to the nodes of the cluster, if they do.
    pub fn proxy_of<'c>(&self, route: &'c Route) -> Option<Cow<'c, Proxy>> {
        match &route.settings.cluster {
            Some(_) => Some(Cow::Owned(self.cluster.as_proxy())),
            None => route.settings.proxy.as_ref().map(Cow::Borrowed),
        }
    }
}
