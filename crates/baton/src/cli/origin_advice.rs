//! What `baton check` says of origins.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_config::{Cluster, Config, Eject, OriginUrl, Proxy, Route, Target, word_of};
use baton_dispatch::PolicyName;
use baton_dns::{Name, Names};

/// The origins of a route, and what may surprise its operator, a line each.
pub(super) fn lines(config: &Config, route: &Route, names: &Names) -> Vec<String> {
    let Some(proxy) = config.proxy_of(route) else { return Vec::new() };
    let coming = if route.settings.cluster.is_some() { coming_nodes(&config.cluster) } else { Vec::new() };
    let route = route.settings.name();
    let (first, is_alone) = match &coming[..] {
        [] => (listed(&route, &proxy), proxy.to.len() == 1),
        coming => (clustered(&route, &config.cluster, coming), false),
    };
    let advice = advice(&proxy, is_alone, names);
    [first].into_iter().chain(advice.into_iter().map(|advice| format!("  warning: {advice}"))).collect()
}

fn listed(route: &str, proxy: &Proxy) -> String {
    let urls: Vec<_> = proxy
        .to
        .iter()
        .map(|origin| match (origin.weight, origin.backup) {
            (_, true) => format!("{} (backup)", origin.to),
            (1, false) => origin.to.to_string(),
            (weight, false) => format!("{} (weight {weight})", origin.to),
        })
        .collect();
    match &urls[..] {
        [url] => format!("{route}: the origin {url}"),
        urls => format!("{route}: {} origins by {}: {}", urls.len(), word_of(proxy.policy), urls.join(", ")),
    }
}

/// The nodes of a cluster, some of which come and go.
fn clustered(route: &str, cluster: &Cluster, coming: &[String]) -> String {
    let known = cluster.nodes.iter().filter(|node| !node.each_address);
    let all: Vec<_> = known.map(|node| node.to.to_string()).chain(coming.iter().cloned()).collect();
    format!("{route}: nodes by {}: {}", word_of(cluster.policy), all.join(", "))
}

/// Where nodes come from that the configuration does not list one by one.
fn coming_nodes(cluster: &Cluster) -> Vec<String> {
    let of_dns = cluster.nodes.iter().filter(|node| node.each_address);
    let of_dns = of_dns.map(|node| format!("each address of {}", node.to));
    let of_etcd = cluster.etcd.iter().map(|etcd| format!("those in etcd at {}", etcd.endpoints.join(", ")));
    of_dns.chain(of_etcd).collect()
}

fn advice(proxy: &Proxy, is_alone: bool, names: &Names) -> Vec<String> {
    let mut advice = Vec::new();
    let idle = [
        ("eject", proxy.eject.as_ref().is_some_and(|eject| *eject != Eject::default())),
        ("policy", proxy.policy != PolicyName::Wrr),
        ("slow_start_ms", proxy.slow_start_ms > 0),
    ];
    for (setting, _) in idle.into_iter().filter(|(_, is_set)| is_alone && *is_set) {
        advice.push(format!(
            "`{setting}` has no effect: one origin alone gets every request, whatever it does"
        ));
    }
    for origin in &proxy.to {
        if origin.to.tls && !proxy.tls.verify {
            advice.push(format!(
                "the certificate of {} is not verified: a machine in between can read and change everything",
                origin.to
            ));
        }
        if let Target::Host(host, _) = &origin.to.target
            && names.watch(host).addresses().is_empty()
        {
            advice.push(format!(
                "{host} has no address now: until it has one, requests for {} fail",
                origin.to
            ));
        }
    }
    advice
}

/// Looks up the hosts of all origins and of etcd. Their addresses are known as long as what is returned is held.
///
/// # Errors
/// No thread can be started.
pub(super) fn look_up(config: &Config, names: &Names) -> std::io::Result<Vec<Arc<Name>>> {
    names.ask(&config.server.dns_servers);
    let endpoints = config.cluster.etcd.iter().flat_map(|etcd| &etcd.endpoints);
    let endpoints = endpoints.filter_map(|url| OriginUrl::parse(url, Path::new("/")).ok());
    let urls = config.origins().map(|origin| origin.url.clone()).chain(endpoints);
    let hosts = urls.filter_map(|url| match url.target {
        Target::Host(host, _) => Some(names.watch(&host)),
        Target::Tcp(_) | Target::Unix(_) => None,
    });
    let held = hosts.collect();
    names.begin(PATIENCE)?;
    Ok(held)
}

/// The time that a name server may take to say that there is no such name.
const PATIENCE: Duration = Duration::from_secs(10);
