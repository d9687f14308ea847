//! What `baton check` says of the addresses of a cluster: nodes that take connections over have an address of the front-end (VIP),
//! so what is sent from or to that address may never get to another host.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::time::Duration;

use baton_config::{ClusterNode, Config, OriginUrl, Target};
use baton_dns::Names;
use baton_sys::interfaces::{InterfaceAddress, addresses};

use super::handoff_advice::front_addresses;

/// Warnings, with cause and remedy.
pub(super) fn lines(config: &Config, names: &Names) -> String {
    let here = addresses().unwrap_or_default();
    let mut warnings = of_routes(config, names, &here);
    warnings.extend(of_etcd(config, names, &here));
    warnings.into_iter().map(|warning| format!("  warning: {warning}\n")).collect()
}

/// Nodes to which the way of a packet begins at an address that clients connect to.
fn of_routes(config: &Config, names: &Names, here: &[InterfaceAddress]) -> Vec<String> {
    if config.agent_settings().is_none() {
        return Vec::new();
    }
    let vips = vips(config, here);
    let takes_over = config.cluster.nodes.iter().filter(|node| node.mover.is_some());
    takes_over.filter_map(|node| of_route(node, names, &vips, here)).collect()
}

fn of_route(
    node: &ClusterNode,
    names: &Names,
    vips: &BTreeSet<IpAddr>,
    here: &[InterfaceAddress],
) -> Option<String> {
    let mover = node.mover.map(|mover| mover.ip());
    let relayed = socket_addresses(&node.to.target, names).into_iter().map(|address| address.ip());
    let others = relayed.chain(mover).filter(|address| !is_here(*address, here));
    let source = others.filter_map(source_to).find(|source| vips.contains(source))?;
    Some(format!(
        "what this host sends to the node {} comes from {source}, to which clients connect\n      cause: nodes that take \
         connections over have that address, too: what they answer to it never leaves them\n      remedy: give this host an \
         address of its own in the network of the nodes, and {source} beside it: `ip addr add {source}/{} dev INTERFACE`",
        node.name(),
        if source.is_ipv4() { 32 } else { 128 }
    ))
}

/// The addresses that clients connect to. Where a site listens on all of them, the only one is meant, if there is only one.
fn vips(config: &Config, here: &[InterfaceAddress]) -> BTreeSet<IpAddr> {
    let only = |is_ipv4: bool| {
        let mut own = here.iter().filter(|one| !one.is_loopback && one.address.is_ipv4() == is_ipv4);
        own.next().filter(|_| own.next().is_none()).map(|one| one.address)
    };
    let meant =
        |address: IpAddr| if address.is_unspecified() { only(address.is_ipv4()) } else { Some(address) };
    front_addresses(config).filter_map(|address| meant(address.ip())).collect()
}

/// From which address the kernel sends to this one. Sends nothing.
fn source_to(address: IpAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((address, ANY_PORT)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// The way to an address does not depend on the port; 0 is none.
const ANY_PORT: u16 = 9;

/// Members of etcd that are said to be here, and are not.
fn of_etcd(config: &Config, names: &Names, here: &[InterfaceAddress]) -> Vec<String> {
    let endpoints = config.cluster.etcd.iter().flat_map(|etcd| &etcd.endpoints);
    let is_missing = |endpoint: &&String| {
        let Ok(url) = OriginUrl::parse(endpoint, Path::new("/")) else { return false };
        let addresses = socket_addresses(&url.target, names);
        let is_missing = |address: &SocketAddr| is_here(address.ip(), here) && is_refused(address);
        !addresses.is_empty() && addresses.iter().all(is_missing)
    };
    let told = |endpoint: &String| {
        format!(
            "etcd is not at {endpoint}: this is an address of this host, and nothing listens there\n      cause: etcd does not \
             run, or runs on another host: each host that has a common address (VIP) asks itself there\n      remedy: start it, \
             or name an address in `endpoints` that only the host of etcd has"
        )
    };
    endpoints.filter(is_missing).map(told).collect()
}

fn is_refused(address: &SocketAddr) -> bool {
    TcpStream::connect_timeout(address, PATIENCE)
        .is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

/// A host answers itself at once.
const PATIENCE: Duration = Duration::from_secs(1);

fn socket_addresses(target: &Target, names: &Names) -> Vec<SocketAddr> {
    match target {
        Target::Tcp(address) => vec![*address],
        Target::Host(host, port) => {
            names.watch(host).addresses().iter().map(|address| (*address, *port).into()).collect()
        }
        Target::Unix(_) => Vec::new(),
    }
}

fn is_here(address: IpAddr, here: &[InterfaceAddress]) -> bool {
    here.iter().any(|one| one.address == address)
}
