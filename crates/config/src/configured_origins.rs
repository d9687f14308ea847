//! All origins of a configuration, for those who keep books on them.

use std::borrow::Cow;

use baton_upstream::{JudgedBy, OriginName};

use super::config::Config;
use super::origin_url::OriginUrl;
use super::proxy::Proxy;

/// An origin of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredOrigin<'c> {
    /// Under which it is known.
    pub name: OriginName,
    /// Its name as a node of the cluster, if it is one.
    pub node: Option<Cow<'c, str>>,
    /// Its URL.
    pub url: &'c OriginUrl,
    /// Its weight among the origins of its route.
    pub weight: u64,
    /// Whether it is asked only while all others are ejected.
    pub backup: bool,
    /// What decides whether it gets requests.
    pub judged_by: JudgedBy,
}

impl Config {
    /// The origins of all routes, in the order of the file, and the nodes of the cluster.
    pub fn origins(&self) -> impl Iterator<Item = ConfiguredOrigin<'_>> {
        let routes = self.sites.iter().flat_map(|site| site.routes.iter().map(move |route| (site, route)));
        let origins = routes.flat_map(|(site, route)| {
            let proxy = route.settings.proxy.as_ref();
            proxy.into_iter().flat_map(move |proxy| {
                proxy.to.iter().map(move |origin| ConfiguredOrigin {
                    name: OriginName {
                        site: site.name(),
                        route: route.settings.name(),
                        origin: origin.to.to_string(),
                    },
                    node: None,
                    url: &origin.to,
                    weight: origin.weight,
                    backup: origin.backup,
                    judged_by: proxy.judged_by(),
                })
            })
        });
        origins.chain(self.nodes())
    }

    /// The nodes of the cluster, if they are asked: all that ask share what is known of them.
    fn nodes(&self) -> impl Iterator<Item = ConfiguredOrigin<'_>> {
        let (relay, is_used) = (&self.cluster.relay, self.asks_nodes());
        self.cluster.known_nodes().filter(move |_| is_used).map(|node| ConfiguredOrigin {
            name: node.origin_name(),
            node: Some(node.name()),
            url: &node.to,
            weight: node.weight,
            backup: false,
            judged_by: JudgedBy {
                requests: relay.eject.is_some(),
                checks: relay.health.is_some(),
                slow_start_ms: relay.slow_start_ms,
            },
        })
    }
}

impl Proxy {
    /// What decides which of its origins get requests.
    fn judged_by(&self) -> JudgedBy {
        // One that is alone is asked, whatever it has done.
        let has_several = self.to.len() > 1;
        JudgedBy {
            requests: has_several && self.eject.is_some(),
            checks: has_several && self.health.is_some(),
            slow_start_ms: self.slow_start_ms,
        }
    }
}
