//! A contender that is a cluster: a server before nodes, or with peers, each on a host of a network of its own.
//!
//! ```text
//!   client          front, front2 …        node1           node2
//!                   the contender's server  nodes, from the same files as any other server
//!                   VIP, CPU of the server  VIP silently, CPU of the client, a box each
//! ```
//!
//! A network for each contender: so clusters run at the same time, and take turns as other contenders do.

mod documents;
mod media;
mod prediction;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::turn::Values;
use crate::experiment::NodesText;
use crate::load::LoadReport;
use crate::quantity::Quantity;
use crate::rig::network::{ClusterHosts, Host};
use crate::rig::processes::cpu_time;
use crate::rig::{Boxes, ServerBox};
use crate::servers::{Ability, RunningServer, ServerKind, ServerPlace, ServerSettings};

pub(super) use documents::predict_documents;
pub(super) use media::predict_media;
pub(super) use prediction::predict;

/// What stands behind the server of a contender that is a cluster.
pub(super) struct Cluster {
    // Dropped in this order: servers before their hosts.
    pub(super) nodes: Vec<Node>,
    /// Front-ends beside the contender's server.
    pub(super) more_fronts: Vec<RunningServer>,
    pub(super) registry: Option<RunningServer>,
    pub(super) hosts: Arc<ClusterHosts>,
    place: ClusterPlace,
    front: Recipe,
    node: Recipe,
}

/// A server behind the front-end.
pub(super) struct Node {
    pub(super) server: RunningServer,
    pub(super) server_box: Option<ServerBox>,
}

/// Where the servers of a cluster run.
#[derive(Clone, Debug)]
pub(super) struct ClusterPlace {
    /// For files of the members.
    pub(super) folder: PathBuf,
    /// The site.
    pub(super) root: PathBuf,
    pub(super) front_cpus: Vec<usize>,
    pub(super) node_cpus: Vec<usize>,
}

/// What a server is made of.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) kind: ServerKind,
    pub(super) settings: ServerSettings,
}

/// What a cluster has done so far, or between two readings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ledger {
    /// Bytes from the disks of all nodes.
    pub(super) disk_bytes: u64,
    /// CPU time of all nodes.
    nodes_cpu: Duration,
    /// Bytes that each server sent: the one at the front first if it is a peer of the others.
    pub(super) sent_bytes: Vec<u64>,
}

impl Cluster {
    /// Starts the nodes, then the server before them. Each node has a box if there are any.
    pub(super) fn start(
        place: ClusterPlace,
        front: Recipe,
        node: Recipe,
        text: &NodesText,
        boxes: Option<&Boxes>,
    ) -> Result<(RunningServer, Self)> {
        let joins = front.settings.needs.contains(&Ability::Registry);
        let mut hosts = ClusterHosts::for_load(text.count + usize::from(joins))?;
        (1..text.front_ends).try_for_each(|_| hosts.another_front())?;
        let hosts = Arc::new(hosts);
        let mut cluster =
            Self { nodes: Vec::new(), more_fronts: Vec::new(), registry: None, hosts, place, front, node };
        if let Some(rate) = text.link_mbit {
            cluster.members().try_for_each(|host| host.bound_link(rate))?;
        }
        // No server knows of an earlier view, or has a cache of an earlier round.
        let _ = std::fs::remove_dir_all(&cluster.place.folder);
        if joins {
            let host = &cluster.hosts.front;
            let mut place = cluster.place_on(host, "etcd");
            place.address = Some((host.v4(), ETCD_PORT).into());
            let etcd = ServerKind::load("etcd")?.start(&ServerSettings::default(), &place);
            cluster.registry = Some(etcd.context("the registry of the cluster")?);
        }
        for number in 0..text.count {
            let name = format!("node{number}");
            let folder = cluster.place.folder.join(&name);
            let server_box = boxes.map(|boxes| boxes.make(&name, &folder, None)).transpose()?;
            let server = cluster.start_node(number, server_box.as_ref(), false)?;
            cluster.nodes.push(Node { server, server_box });
        }
        cluster.more_fronts =
            (1..text.front_ends).map(|number| cluster.start_front(number)).collect::<Result<_>>()?;
        Ok((cluster.start_front(0)?, cluster))
    }

    /// A place for a server of this name.
    fn place_on<'a>(&self, host: &'a Host, name: &str) -> ServerPlace<'a> {
        ServerPlace {
            host: Some(host),
            cpus: self.place.node_cpus.clone(),
            ..ServerPlace::new(&self.place.folder.join(name), &self.place.root)
        }
    }

    /// The addresses of peers, or of nodes: those that the server at the front knows.
    fn addresses(&self, registered: usize) -> Vec<SocketAddr> {
        let nodes = self.hosts.nodes.iter().take(self.hosts.nodes.len() - registered);
        let front = self.are_peers().then_some(&self.hosts.front);
        front.into_iter().chain(nodes).map(|host| (host.v4(), PORT).into()).collect()
    }

    /// Whether clients may come to any server.
    fn are_peers(&self) -> bool {
        self.front.settings.needs.contains(&Ability::Documents)
    }

    /// Starts the contender's server, number 0, or one of the front-ends beside it.
    pub(super) fn start_front(&self, number: usize) -> Result<RunningServer> {
        let host = self.hosts.fronts().nth(number).context("a host for each front-end")?;
        let address = match self.are_peers() {
            true => IpAddr::V4(self.hosts.front.v4()),
            false => IpAddr::V4(ClusterHosts::VIP_V4),
        };
        let place = ServerPlace {
            address: Some((address, PORT).into()),
            cpus: self.place.front_cpus.clone(),
            origins: self.addresses(self.registry.iter().count()),
            registry: self.registry.as_ref().map(|etcd| etcd.address),
            ..self.place_on(host, &format!("front{number}"))
        };
        self.front.kind.start(&self.front.settings, &place).context("the front-end")
    }

    /// `registers`: the front-end learns of it by etcd.
    pub(super) fn start_node(
        &self,
        number: usize,
        server_box: Option<&ServerBox>,
        registers: bool,
    ) -> Result<RunningServer> {
        let host = &self.hosts.nodes[number];
        let mut place = self.place_on(host, &format!("node{number}"));
        place.address = Some((host.v4(), PORT).into());
        // A node may ask the others.
        place.origins = self.addresses(self.registry.iter().count());
        let mut settings = self.node.settings.clone();
        if registers {
            settings.needs.insert(Ability::Registry);
            place.registry = self.registry.as_ref().map(|etcd| etcd.address);
        }
        if self.are_peers() {
            place.origins = self.addresses(0);
            // Only one has the site.
            place.root = self.place.folder.join("empty");
            std::fs::create_dir_all(&place.root)?;
        }
        if let Some(server_box) = server_box {
            server_box.groups().clone_into(&mut place.groups);
            place.root = server_box.root().unwrap_or(&self.place.root).to_owned();
        }
        self.node.kind.start(&settings, &place).with_context(|| format!("node {number}"))
    }

    /// The hosts of peers, or of nodes.
    fn members(&self) -> impl Iterator<Item = &Host> {
        self.are_peers().then_some(&self.hosts.front).into_iter().chain(&self.hosts.nodes)
    }

    /// What has been done so far.
    pub(super) fn ledger(&self) -> Result<Ledger> {
        let hosts = self.members();
        let mut ledger = Ledger {
            disk_bytes: 0,
            nodes_cpu: Duration::ZERO,
            sent_bytes: hosts.map(Host::sent_bytes).collect::<Result<_>>()?,
        };
        for node in &self.nodes {
            ledger.nodes_cpu += cpu_time(&node.server.processes());
            let disk = node.server_box.as_ref().map_or(Ok(None), ServerBox::disk_bytes)?;
            ledger.disk_bytes += disk.unwrap_or_default();
        }
        Ok(ledger)
    }

    /// Stops all servers of it; returns their boxes.
    pub(super) fn stop(self) -> Vec<ServerBox> {
        self.nodes.into_iter().filter_map(|node| node.server_box).collect()
    }

    /// Bytes of files in memory, of the node that has most.
    fn file_bytes_max(&self) -> Option<u64> {
        self.nodes.iter().filter_map(|node| node.server_box.as_ref()).map(ServerBox::file_bytes).max()
    }

    /// What a load has cost: `front_cpu` is the CPU time of the servers at the front.
    pub(super) fn tell(&self, done: &Ledger, front_cpu: Duration, report: &LoadReport, values: &mut Values) {
        let us = |time: Duration| time.as_secs_f64() * 1e6 / report.answered().max(1) as f64;
        let per_byte = |bytes: u64| bytes as f64 / report.bytes.max(1) as f64;
        // A server alone is no front-end.
        let (front_cpu, nodes_cpu) = match self.nodes.is_empty() {
            true => (Duration::ZERO, front_cpu),
            false => (front_cpu, done.nodes_cpu),
        };
        values.extend([
            (Quantity::FrontUs, us(front_cpu)),
            (Quantity::NodesUs, us(nodes_cpu)),
            (Quantity::AddedUs, us(front_cpu + nodes_cpu + report.client_cpu)),
            (Quantity::DiskShare, per_byte(done.disk_bytes)),
            (Quantity::OriginShare, per_byte(done.sent_bytes.iter().sum())),
        ]);
        values.extend(self.file_bytes_max().map(|bytes| (Quantity::FileCacheBytes, bytes as f64)));
    }
}

impl Ledger {
    /// What has been done since then.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let sent = self.sent_bytes.iter().zip(&earlier.sent_bytes).map(|(now, before)| now - before);
        Self {
            disk_bytes: self.disk_bytes - earlier.disk_bytes,
            nodes_cpu: self.nodes_cpu.saturating_sub(earlier.nodes_cpu),
            sent_bytes: sent.collect(),
        }
    }
}

/// Each server has an address of its own.
const PORT: u16 = 80;
const ETCD_PORT: u16 = 2379;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_does_not_count() {
        let ledger = |disk_bytes, ms, sent: [u64; 3]| Ledger {
            disk_bytes,
            nodes_cpu: Duration::from_millis(ms),
            sent_bytes: sent.into(),
        };
        let done = ledger(500, 120, [20, 30, 70]).since(&ledger(200, 60, [10, 20, 30]));
        assert_eq!(done, ledger(300, 60, [10, 10, 40]));
    }
}
