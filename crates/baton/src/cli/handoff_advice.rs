//! What `baton check` says of connections that move between hosts: what this host lacks for that. Requests are relayed until
//! it has it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use baton_config::{Config, Site};
use baton_engine::listen::ListenAddress;
use baton_site::plan::ClusterWay;
use baton_sys::handoff::{Lack, front_end_lacks, node_lacks};
use baton_sys::interfaces::addresses;

/// A line for what is there, or lines for what is missing; nothing where no connection is to move.
pub(super) fn lines(config: &Config) -> String {
    let Some(settings) = config.agent_settings() else { return String::new() };
    let nodes: Vec<_> = settings.nodes.iter().map(|node| node.next_hop).collect();
    let mut missing = Missing::default();
    if !nodes.is_empty() {
        for listen in front_addresses(config) {
            let vip = if listen.ip().is_unspecified() { own_address(false) } else { Some(listen.ip()) };
            let lacks = vip.map(|vip| front_end_lacks(vip, listen.port(), &nodes));
            missing.add("hand connections over", &lacks.unwrap_or_default());
        }
    }
    if settings.listen.is_some() {
        for listen in config.sites.iter().flat_map(clear_addresses) {
            let vip = if listen.ip().is_unspecified() { own_address(true) } else { Some(listen.ip()) };
            match vip {
                Some(vip) => missing.add("take connections over", &node_lacks(vip, listen.port())),
                None => missing.add_line(format!("take connections over: {NO_VIP}")),
            }
        }
    }
    missing.told()
}

/// Lacks, each once.
#[derive(Default)]
struct Missing(BTreeSet<String>);

impl Missing {
    fn add(&mut self, what: &str, lacks: &[Lack]) {
        for lack in lacks {
            self.add_line(format!(
                "{what}: {lack}\n      cause: {}\n      remedy: {}",
                lack.cause(),
                lack.remedy()
            ));
        }
    }

    fn add_line(&mut self, line: String) {
        self.0.insert(line);
    }

    fn told(self) -> String {
        match self.0.is_empty() {
            true => "  connections move between hosts: this host has what that needs\n".to_owned(),
            false => self.0.into_iter().map(|line| format!("  warning: this host cannot {line}\n")).collect(),
        }
    }
}

/// Where clients connect whose connections may go to nodes.
pub(super) fn front_addresses(config: &Config) -> impl Iterator<Item = SocketAddr> {
    config.sites.iter().filter(|site| hands_over(config, site)).flat_map(clear_addresses)
}

/// Whether requests of a site may go to nodes with their connections.
fn hands_over(config: &Config, site: &Site) -> bool {
    site.routes.iter().filter_map(|route| route.settings.cluster.as_ref()).any(|cluster| {
        let way = cluster.way.unwrap_or(config.cluster.way);
        matches!(way, ClusterWay::Auto | ClusterWay::HandOff)
    })
}

/// Where a site listens without TLS.
fn clear_addresses(site: &Site) -> impl Iterator<Item = SocketAddr> {
    site.settings.listen.iter().filter(|listen| !listen.tls).filter_map(|listen| match listen.address {
        ListenAddress::Tcp(address) => Some(address),
        ListenAddress::Unix(_) => None,
    })
}

/// An address of this host by which clients may come: one of its networks, or on the loopback interface, where nodes have it.
fn own_address(on_loopback: bool) -> Option<IpAddr> {
    let here = addresses().ok()?;
    let may_be = |address: &IpAddr| !address.is_loopback();
    here.iter().find(|one| one.is_loopback == on_loopback && may_be(&one.address)).map(|one| one.address)
}

const NO_VIP: &str = "it has no address of the front-end\n      cause: nodes answer clients with the front-end's address, \
                      which has to be an address of theirs, too\n      remedy: ip addr add ADDRESS/32 dev lo, and set \
                      net.ipv4.conf.all.arp_ignore=1 and net.ipv4.conf.all.arp_announce=2";
