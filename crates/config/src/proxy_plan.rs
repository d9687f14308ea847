//! From the `proxy` of a route to the pool of an origin, and what its requests and responses become.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;

use baton_dispatch::Fits;
use baton_http::origin::{Forwarding, HostRule, PathRule, Prefix, ResponseRules};
use baton_site::plan::{ClusterTerms, Delegate, ProxyTerms, Terms, UploadSettings};
use baton_tls::{Identity, OriginPolicy, Trust, system_authorities};
use baton_upstream::{
    Address, Application, BalanceSettings, CheckSettings, ClusterSettings, Ejection, Endpoint, NamedAddress,
    OriginName, Peer, Peers, Protocol, ProxyVersion, Settings, StreamedBodies, TemporaryFiles,
    TransportChoice,
};

use super::application::{Target, temporary_folder};
use super::client_addresses::address_set;
use super::cluster::{Cluster, ClusterNode};
use super::kind::count;
use super::origin_url::OriginUrl;
use super::origins::Origin;
use super::proxy::{OriginTls, Proxy, SendProxyProtocol};
use super::resources::{Resources, ResponseBounds};
use super::route::Route;
use super::tls_files::PemFiles;

/// The delegate of a route to an origin.
///
/// # Errors
/// A certificate that cannot be used, or a setting that no pool can have.
pub(super) fn delegate(
    site: &str,
    route: &Route,
    proxy: &Proxy,
    resources: &Resources,
    bounds: &ResponseBounds,
) -> io::Result<Delegate> {
    let name = |origin: &Origin| OriginName {
        site: site.to_owned(),
        route: route.settings.name(),
        origin: origin.to.to_string(),
    };
    let origin_of = &*route.settings.name();
    let peer = |origin: &Origin| {
        let settings = pool(proxy, &origin.to, &name(origin), resources, bounds)?;
        peer(proxy, origin, settings, origin_of)
    };
    let peers: Vec<_> = proxy.to.iter().map(peer).collect::<io::Result<_>>()?;
    let first = peers.first().ok_or_else(|| io::Error::other("a proxy without an origin"))?;
    let application = Arc::clone(&first.application);
    // One that is alone is asked, whatever it has done.
    let peers =
        (peers.len() > 1).then(|| resources.peers.make(site, origin_of, peers, &balance(proxy))).flatten();
    let terms = ProxyTerms { peers, ..terms(route, proxy) };
    Ok(to_origins(site, route, proxy, terms, application, temporary(proxy, bounds)))
}

/// The delegate of a route to the nodes of the cluster; `proxy`: the cluster as a proxy.
pub(super) fn cluster_delegate(
    site: &str,
    route: &Route,
    proxy: &Proxy,
    nodes: Arc<Peers>,
    cluster: ClusterTerms,
    bounds: &ResponseBounds,
) -> Delegate {
    let application = Arc::clone(nodes.first());
    let terms = ProxyTerms { peers: Some(nodes), cluster: Some(cluster), ..terms(route, proxy) };
    to_origins(site, route, proxy, terms, application, temporary(proxy, bounds))
}

/// How nodes are asked for files by another node; `proxy`: the cluster as a proxy.
pub(super) fn homes_delegate(
    route: &Route,
    proxy: &Proxy,
    nodes: &Arc<Peers>,
    bounds: &ResponseBounds,
) -> Delegate {
    let application = Arc::clone(nodes.first());
    to_origins(Cluster::SITE, route, proxy, terms(route, proxy), application, temporary(proxy, bounds))
}

/// The nodes of the cluster. `route`: under which those are known that they follow.
///
/// # Errors
/// See [`delegate`].
pub(super) fn nodes(
    cluster: &Cluster,
    route: &str,
    resources: &Resources,
    bounds: &ResponseBounds,
) -> io::Result<Arc<Peers>> {
    let proxy = cluster.as_proxy();
    let node = |(node, origin): (&ClusterNode, &Origin)| {
        let settings = pool(&proxy, &node.to, &node.origin_name(), resources, bounds)?;
        let settings = Settings { node: Some(node.name().into_owned()), ..settings };
        Ok(Peer { public: node.public.clone(), ..peer(&proxy, origin, settings, "the cluster")? })
    };
    let none = ClusterNode::none();
    let known: Vec<_> = cluster.known_nodes().collect();
    let is_empty = known.is_empty();
    let nodes = if is_empty { vec![&none] } else { known };
    let peers = nodes.into_iter().zip(&proxy.to).map(node).collect::<io::Result<Vec<_>>>()?;
    let (t_low, t_high) = cluster.thresholds();
    let fits =
        Fits { t_low: cluster.t_low.map(|t_low| t_low as u32), delay_us: cluster.delay_spread_ms * 1_000 };
    let settings = ClusterSettings {
        t_low: t_low as u32,
        t_high: t_high as u32,
        fits: cluster.t_high.is_none().then_some(fits),
        is_bounded: cluster.admission,
    };
    let mut balance = BalanceSettings { cluster: Some(settings), ..balance(&proxy) };
    if is_empty {
        peers.iter().for_each(|peer| peer.application.settings().record.set_drained(true));
        balance.check = None;
    }
    let made = resources.peers.make(Cluster::SITE, route, peers, &balance);
    made.ok_or_else(|| io::Error::other("a cluster without a node"))
}

fn temporary(proxy: &Proxy, bounds: &ResponseBounds) -> TemporaryFiles {
    let folder = temporary_folder(proxy.temporary_folder.as_ref());
    TemporaryFiles { folder: folder.into(), space: bounds.space.clone() }
}

fn peer(proxy: &Proxy, origin: &Origin, settings: Settings, origin_of: &str) -> io::Result<Peer> {
    let application = Application::new(settings)
        .map_err(|error| io::Error::other(format!("the origin of {origin_of}: {error}")))?;
    Ok(Peer {
        application,
        weight: count(origin.weight) as u32,
        is_backup: origin.backup,
        check_text: check_text(proxy, &origin.to),
        public: None,
    })
}

/// What holds for all origins alike.
fn terms(route: &Route, proxy: &Proxy) -> ProxyTerms {
    ProxyTerms {
        peers: None,
        cluster: None,
        forwarding: forwarding(&route.settings.path, proxy),
        responses: responses(&route.settings.path, proxy),
        trusted: address_set(&proxy.trusted),
        copies: None,
    }
}

fn to_origins(
    site: &str,
    route: &Route,
    proxy: &Proxy,
    terms: ProxyTerms,
    application: Arc<Application>,
    temporary: TemporaryFiles,
) -> Delegate {
    let cache = route.settings.cache.as_ref();
    // What is cached of a cluster stays when its first node goes.
    let origin = if terms.cluster.is_some() { Cluster::SITE } else { application.name() };
    let first_bytes = terms.cluster.as_ref().map_or(0, |cluster| cluster.key.body_bytes() as u64);
    Delegate {
        cache: cache.map(|cache| cache.plan(site, &route.settings.name(), origin)),
        application,
        upload: UploadSettings {
            bytes_max: proxy.body_bytes_max.or(route.guards().body_bytes_max).unwrap_or(BODY_BYTES_MAX),
            timeout_ms: route.guards().body_ms,
            memory_bytes_max: 0,
            first_bytes: first_bytes.max(1),
            temporary,
        },
        terms: Terms::Proxy(Box::new(terms)),
    }
}

fn balance(proxy: &Proxy) -> BalanceSettings {
    let ejection = proxy.eject.as_ref().map(|eject| Ejection {
        failures: eject.failures as u32,
        window_ms: eject.window_ms,
        out_ms: eject.out_ms,
        out_ms_max: eject.out_ms_max,
        statuses: eject.statuses.iter().map(|status| *status as u16).collect(),
    });
    let check = proxy.health.as_ref().map(|health| CheckSettings {
        interval_ms: health.interval_ms,
        timeout_ms: health.timeout_ms,
        rise: health.rise as u32,
        fall: health.fall as u32,
        statuses: health.statuses.iter().map(|status| *status as u16).collect(),
    });
    let slow_start_ms = proxy.slow_start_ms;
    BalanceSettings { policy: proxy.policy, ejection, check, slow_start_ms, cluster: None }
}

/// The head of the request that checks an origin.
fn check_text(proxy: &Proxy, url: &OriginUrl) -> Vec<u8> {
    let path = proxy.health.as_ref().map_or("/", |health| &health.path);
    let host = match &proxy.host {
        HostRule::Fixed(host) => host.clone(),
        HostRule::Client | HostRule::Origin => url.authority(),
    };
    let connection = if proxy.keep_connections { "" } else { "Connection: close\r\n" };
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: baton-check\r\n{connection}\r\n").into_bytes()
}

fn pool(
    proxy: &Proxy,
    url: &OriginUrl,
    name: &OriginName,
    resources: &Resources,
    bounds: &ResponseBounds,
) -> io::Result<Settings> {
    let record = resources.origins.map(|(table, worker)| table.record(name, worker));
    let stand_in = resources.stand_in.as_ref();
    let address = match &url.target {
        _ if let Some(path) = stand_in => Address::Unix(path.clone()),
        Target::Unix(path) => Address::Unix(path.clone()),
        Target::Tcp(address) => Address::Inet(*address),
        Target::Host(host, port) => {
            Address::Named(NamedAddress { name: resources.names.watch(host), port: *port })
        }
    };
    Ok(Settings {
        protocol: Protocol::Http1,
        tls: (url.tls && stand_in.is_none()).then(|| policy(proxy, url, &resources.pem_files)).transpose()?,
        send_proxy: match proxy.send_proxy_protocol {
            _ if stand_in.is_some() => None,
            SendProxyProtocol::Off => None,
            SendProxyProtocol::V1 => Some(ProxyVersion::V1),
            SendProxyProtocol::V2 => Some(ProxyVersion::V2),
        },
        transport: TransportChoice::Plain,
        backlog_notice: None,
        connections_max: count(proxy.connections_max),
        tunnels_max: count(proxy.tunnels_max),
        streamed_bodies: StreamedBodies::default(),
        keep_connections: proxy.keep_connections,
        requests_max_per_connection: proxy.requests_per_connection_max.unwrap_or(0),
        idle_timeout_ms: proxy.idle_ms,
        idle_max: count(proxy.idle_connections_max),
        splice_bytes_min: proxy.splice_bytes_min,
        connect_timeout_ms: proxy.connect_ms,
        queue_max: count(proxy.queue_max),
        queue_timeout_ms: proxy.queue_ms,
        head_timeout_ms: Some(proxy.head_ms),
        timeout_ms: proxy.gap_ms,
        tunnel_idle_timeout_ms: proxy.tunnel_idle_ms,
        spool_memory_bytes: proxy.response_memory_bytes,
        spool_file_bytes_max: proxy.response_file_bytes_max,
        head_bytes_max: bounds.head_bytes_max,
        temporary: temporary(proxy, bounds),
        record: record.unwrap_or_default(),
        figures: resources.row_of_upstream(&url.to_string()),
        ..Settings::new(url.to_string(), Endpoint::Shared(address))
    })
}

/// What is demanded of the origin's certificate, and what it is shown.
fn policy(proxy: &Proxy, url: &OriginUrl, files: &PemFiles) -> io::Result<OriginPolicy> {
    let OriginTls { ca, name, verify, certificate, key } = &proxy.tls;
    let name = name.clone().unwrap_or_else(|| url.host());
    let identity = certificate.as_ref().map(|certificate| {
        let key = key.as_ref().unwrap_or(certificate);
        Identity::load(files.get(certificate)?, files.get(key)?).map_err(io::Error::other)
    });
    let identity = identity.transpose()?;
    let authorities;
    let trust = match ca {
        _ if !verify => Trust::Anything,
        Some(path) => Trust::Authorities(files.get(path)?),
        None => {
            authorities = system_authorities().map_err(io::Error::other)?;
            Trust::System(&authorities)
        }
    };
    OriginPolicy::new(&name, trust, identity.as_ref()).map_err(io::Error::other)
}

fn forwarding(route: &str, proxy: &Proxy) -> Forwarding {
    let strip = if proxy.first().path.is_some() { route.trim_matches('/').as_bytes() } else { b"" };
    Forwarding {
        host: proxy.host.clone(),
        authority: proxy.first().authority(),
        path: PathRule { strip: strip.into(), base: proxy.first().base().into() },
        pseudonym: pseudonym(),
        rules: proxy.request_headers.clone(),
    }
}

fn responses(route: &str, proxy: &Proxy) -> ResponseRules {
    // Without a path in the URL, paths are the same on both sides.
    let (from, to) = match proxy.first().path {
        Some(_) => (proxy.first().base(), route.trim_end_matches('/')),
        None => ("", ""),
    };
    let mut rules = ResponseRules::default();
    let differs = from != to;
    if proxy.rewrite_locations {
        for Origin { to: url, .. } in &proxy.to {
            let scheme = if url.tls { "https" } else { "http" };
            rules.locations.push(Prefix::new(&format!("{scheme}://{}{from}", url.authority()), to));
        }
        if differs {
            rules.locations.push(Prefix::new(from, to));
            rules.own_paths = Some(Prefix::new(from, to));
        }
    }
    if proxy.rewrite_cookie_paths && differs {
        rules.cookie_paths.push(Prefix::new(from, to));
    }
    rules
}

/// The name of this host in `Via`. It tells hosts apart, and does not say what they are called.
fn pseudonym() -> String {
    let mut hasher = DefaultHasher::new();
    rustix::system::uname().nodename().to_bytes().hash(&mut hasher);
    format!("baton-{:08x}", hasher.finish() as u32)
}

/// Bytes of a body that an origin gets if nothing is said: it takes no room here.
const BODY_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(to: &str) -> Proxy {
        let to = OriginUrl::parse(to, std::path::Path::new("/")).unwrap();
        Proxy { to: vec![Origin { to, ..Origin::default() }], rewrite_cookie_paths: true, ..Proxy::default() }
    }

    /// What users of nginx expect: a path in the URL takes the place of the route's.
    #[test]
    fn a_path_replaces_the_routes() {
        for (route, to, strip, base) in [
            ("/app", "http://a", "", ""),
            ("/app", "http://a/", "app", ""),
            ("/app/", "http://a/b/", "app", "/b"),
            ("/", "http://a/b", "", "/b"),
        ] {
            let path = forwarding(route, &proxy(to)).path;
            assert_eq!((&path.strip[..], &path.base[..]), (strip.as_bytes(), base), "{route} {to}");
        }
    }

    #[test]
    fn what_leads_to_the_origin_leads_to_the_route() {
        let rules = responses("/app", &proxy("http://a:81/b/"));
        assert_eq!(rules.locations, [Prefix::new("http://a:81/b", "/app"), Prefix::new("/b", "/app")]);
        assert_eq!(rules.own_paths, Some(Prefix::new("/b", "/app")));
        assert_eq!(rules.cookie_paths, [Prefix::new("/b", "/app")]);
        let rules = responses("/app", &proxy("https://a"));
        assert_eq!((rules.locations, rules.cookie_paths), (vec![Prefix::new("https://a", "")], vec![]));
    }
}
