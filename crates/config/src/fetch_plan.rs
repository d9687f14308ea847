//! From `kept` and the nodes of `[cluster]` to what a node does with files that it has not in memory.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use baton_engine::listen::ListenAddress;
use baton_site::plan::Fetching;
use baton_upstream::{FetchRule, Homes};

use super::application::Target;
use super::cluster::{Cluster, ClusterNode, Kept};
use super::config::Config;
use super::files::Files;
use super::guards::Guards;
use super::origin_url::OriginUrl;
use super::proxy::Proxy;
use super::proxy_plan;
use super::resources::{Resources, ResponseBounds};
use super::route::{Route, RouteSettings};

impl Config {
    /// Whether nodes of the cluster are asked: by routes, or for files.
    pub fn asks_nodes(&self) -> bool {
        self.has_cluster_routes() || self.cluster.fetch_rule().is_some()
    }
}

impl Cluster {
    /// When this host, as a node, fetches files from other nodes; `None`: never, or it does not know which node it is.
    pub fn fetch_rule(&self) -> Option<FetchRule> {
        let rule = match self.kept {
            Kept::Fetch => FetchRule::Always,
            Kept::Auto => FetchRule::IfFaster,
            Kept::Stay | Kept::Return => return None,
        };
        let own = self.own_node()?;
        (self.listen.is_some() && self.homes().any(|node| node.name() != own.name())).then_some(rule)
    }

    /// Which of the nodes this host is.
    pub fn own_node(&self) -> Option<&ClusterNode> {
        let registered = self.etcd.as_ref().and_then(|etcd| etcd.register.as_ref());
        let registered = registered.map(|own| own.name.clone().unwrap_or_else(|| own.to.authority()));
        let is_own = |node: &ClusterNode| match &registered {
            Some(name) => node.name() == *name,
            None => node.mover.is_some() && node.mover == self.listen,
        };
        self.homes().find(|node| is_own(node))
    }

    /// The nodes that files are fetched from. One that is shut out as a member is none of them.
    fn homes(&self) -> impl Iterator<Item = &ClusterNode> {
        let is_member = |node: &&ClusterNode| !self.revoked.iter().any(|name| *name == node.name());
        self.known_nodes().filter(is_member)
    }

    /// The cluster as a node asks it for files: a node that has the file itself waits for no other for long.
    fn for_fetching(&self) -> Self {
        let relay = &self.relay;
        let mut request_headers = relay.request_headers.clone();
        request_headers.add.push((Fetching::LOOPS.into(), Fetching::MARK.into()));
        let relay = Proxy {
            connect_ms: relay.connect_ms.min(CONNECT_MS_MAX),
            head_ms: relay.head_ms.min(HEAD_MS_MAX),
            gap_ms: relay.gap_ms.min(GAP_MS_MAX),
            queue_max: 0,
            request_headers,
            ..relay.clone()
        };
        Self { nodes: self.homes().cloned().collect(), relay, ..self.clone() }
    }
}

/// How files are fetched; `None`: they are not, or no site is at the port by which nodes ask each other.
///
/// # Errors
/// A certificate that cannot be used, or a setting that no pool can have.
pub(super) fn fetching(
    cluster: &Cluster,
    listener_ids: &HashMap<&ListenAddress, usize>,
    resources: &Resources,
    bounds: &ResponseBounds,
) -> io::Result<Option<Fetching>> {
    let (Some(rule), Some(own)) = (cluster.fetch_rule(), cluster.own_node()) else { return Ok(None) };
    let Some(door) = door(&own.to, listener_ids) else { return Ok(None) };
    let asked = cluster.for_fetching();
    let nodes = proxy_plan::nodes(&asked, ROUTE, resources, bounds)?;
    let Some(homes) = Homes::new(Arc::clone(&nodes), &own.name(), rule) else { return Ok(None) };
    let settings = RouteSettings { path: "/".into(), ..RouteSettings::default() };
    let route = Route::unnamed(settings, (&Guards::default(), &Files::default()));
    let delegate = proxy_plan::homes_delegate(&route, &asked.as_proxy(), &nodes, bounds);
    Ok(Some(Fetching::new(Arc::new(delegate), homes, door)))
}

/// The listener at which other nodes ask this one.
fn door(own: &OriginUrl, listener_ids: &HashMap<&ListenAddress, usize>) -> Option<usize> {
    let port = match &own.target {
        Target::Tcp(address) => address.port(),
        Target::Host(_, port) => *port,
        Target::Unix(_) => return None,
    };
    let is_there = |address: &ListenAddress| matches!(address, ListenAddress::Tcp(at) if at.port() == port);
    listener_ids.iter().filter(|(address, _)| is_there(address)).map(|(_, id)| *id).min()
}

/// Under which the nodes are known that files are fetched from: no route has such a name.
const ROUTE: &str = "homes";

/// Milliseconds for a connection to a home, for the head of its answer, and between two parts of its body.
const CONNECT_MS_MAX: u64 = 500;
const HEAD_MS_MAX: u64 = 1_000;
const GAP_MS_MAX: u64 = 5_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(settings: &str) -> Cluster {
        let nodes = "nodes = [{ to = 'http://10.0.0.1', name = 'a', mover = '10.0.0.1:7946' }, \
                     { to = 'http://10.0.0.2', name = 'b', mover = '10.0.0.2:7946' }]";
        let text = format!("[cluster]\nkey = '/k'\n{nodes}\n{settings}\n[[site]]\nroot = '/'\n");
        Config::from_toml(&text).unwrap_or_else(|error| panic!("{}", error.render(false))).cluster
    }

    #[test]
    fn a_node_knows_itself_by_where_it_takes_connections() {
        let own = |settings: &str| cluster(settings).own_node().map(|node| node.name().into_owned());
        assert_eq!(own("listen = '10.0.0.2:7946'").as_deref(), Some("b"));
        assert_eq!(own("listen = ':7946'"), None);
        assert_eq!(own("listen = '10.0.0.2:7946'\nrevoked = ['b']"), None);
        let etcd = "etcd = { endpoints = ['http://e:1'], register = { to = 'http://10.0.0.1', name = 'a' } }";
        assert_eq!(own(&format!("listen = ':7946'\n{etcd}")).as_deref(), Some("a"));
    }

    #[test]
    fn a_node_fetches_if_there_are_others() {
        let rule = |settings: &str| cluster(&format!("listen = '10.0.0.2:7946'\n{settings}")).fetch_rule();
        assert_eq!(rule(""), Some(FetchRule::IfFaster));
        assert_eq!(rule("kept = 'fetch'"), Some(FetchRule::Always));
        assert_eq!(rule("kept = 'stay'"), None);
        assert_eq!(rule("revoked = ['a']"), None, "no other is left");
        assert_eq!(cluster("").fetch_rule(), None, "a front-end has no such connections");
        let patient =
            cluster("listen = '10.0.0.2:7946'\nrelay = { head_ms = 9000, gap_ms = 10 }").for_fetching();
        assert_eq!(
            (patient.relay.head_ms, patient.relay.gap_ms, patient.relay.queue_max),
            (HEAD_MS_MAX, 10, 0)
        );
    }
}
