//! The nodes: servers of files, each on a host of its own, with a disk, a memory and a part of a CPU.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use super::rack::{PORT, Rack};
use crate::contender::Contender;
use crate::entry::Entry;
use crate::rig::network::ClusterHosts;
use crate::rig::processes::cpu_time;
use crate::rig::{Bounds, DiskBound, Groups, Image, Volume};
use crate::servers::RunningServer;

/// One node; all are alike.
#[derive(Debug)]
struct Node {
    server: RunningServer,
    volume: Volume,
    groups: Vec<PathBuf>,
}

/// Nodes with nothing in memory yet.
#[derive(Debug)]
pub(super) struct Nodes(Vec<Node>);

/// What the nodes have done so far.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Bytes from all disks.
    pub(super) disk_bytes: u64,
    /// CPU time of each node.
    pub(super) cpu: Vec<Duration>,
    /// Bytes that each node sent.
    pub(super) sent_bytes: Vec<u64>,
}

impl Nodes {
    /// Starts so many, to which requests come by this way. `turn` tells their control groups from earlier ones.
    pub(super) fn start(
        rack: &Rack<'_>,
        image: &Image,
        count: usize,
        turn: &str,
        way: Contender,
    ) -> Result<Self> {
        let start = |number: usize| {
            let name = format!("node{number}");
            let volume = image.mount(&rack.folder.join(format!("{name}-root")), rack.bounds.read_ahead_kb)?;
            let bounds = Bounds {
                memory_bytes: Some((rack.bounds.memory_mib << 20) + own_bytes(way)),
                disk: Some(DiskBound {
                    device: volume.device,
                    read_bytes_per_s: (rack.bounds.disk_mb_per_s * 1e6) as u64,
                }),
                cpus: Some(rack.bounds.node_cpus),
            };
            let groups = rack.groups.make(&format!("{turn}-{name}"), &bounds)?;
            // Threads read from the disk, so that files in memory do not wait for others. All memory is page cache: a
            // second copy of hot files in the process would make it smaller.
            let entry = Entry::baton(rack.baton, "amped").beside_client().named(&name);
            let host = &rack.hosts.nodes[number];
            let address = SocketAddr::from((host.v4(), PORT));
            // A connection that was handed over goes on where its next file is.
            let alone = ["cache.memory_bytes_max=0".to_owned(), "cluster.kept=\"return\"".to_owned()];
            let member = way.node_settings(rack.baton, rack.folder, address)?;
            let entry = entry.settings(&alone)?.settings(&member)?.in_groups(groups.clone());
            let server = entry.start_on(host, address, rack.machine, rack.folder, &volume.folder)?;
            Ok(Node { server, volume, groups })
        };
        let nodes: Result<_> = (0..count).map(start).collect();
        nodes.map(Self).context("the nodes")
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.0.iter().map(|node| node.server.address).collect()
    }

    /// The process that each node began with.
    pub(super) fn pids(&self) -> Vec<u32> {
        self.0.iter().map(|node| node.server.pid()).collect()
    }

    pub(super) fn ledger(&self, hosts: &ClusterHosts) -> Result<Ledger> {
        let mut ledger = Ledger { disk_bytes: 0, cpu: Vec::new(), sent_bytes: Vec::new() };
        for (node, host) in self.0.iter().zip(&hosts.nodes) {
            ledger.disk_bytes += node.volume.bytes_read()?;
            ledger.cpu.push(cpu_time(&node.server.processes()));
            ledger.sent_bytes.push(host.traffic()?.sent_bytes);
        }
        Ok(ledger)
    }

    /// Bytes of files in memory, of the node that has most.
    pub(super) fn file_bytes_max(&self) -> u64 {
        self.0.iter().map(|node| Groups::file_bytes(&node.groups)).max().unwrap_or_default()
    }

    /// Stops them; the next ones begin with an empty memory.
    pub(super) fn stop(self, groups: &Groups) -> Result<()> {
        for Node { server, volume, groups: own } in self.0 {
            drop(server);
            volume.unmount()?;
            groups.remove(&own)?;
        }
        Ok(())
    }
}

impl Ledger {
    /// What has been done since then.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let cpu = self.cpu.iter().zip(&earlier.cpu).map(|(now, before)| now.saturating_sub(*before));
        let sent = self.sent_bytes.iter().zip(&earlier.sent_bytes).map(|(now, before)| now - before);
        Self {
            disk_bytes: self.disk_bytes - earlier.disk_bytes,
            cpu: cpu.collect(),
            sent_bytes: sent.collect(),
        }
    }

    /// What the node sent that sent most, as a multiple of the mean. `None`: no node sent anything.
    pub(super) fn imbalance(&self) -> Option<f64> {
        let most = *self.sent_bytes.iter().max()? as f64;
        let mean = self.sent_bytes.iter().sum::<u64>() as f64 / self.sent_bytes.len() as f64;
        (mean > 0.0).then(|| most / mean)
    }
}

/// Memory that a node needs besides, which files shall not lack: the table of flows of its handoff agent.
fn own_bytes(way: Contender) -> u64 {
    if way == Contender::Handoff { AGENT_BYTES } else { 0 }
}

const AGENT_BYTES: u64 = 28 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_that_sends_most_is_compared_with_the_mean() {
        let ledger = |disk_bytes, ms: [u64; 3], sent: [u64; 3]| Ledger {
            disk_bytes,
            cpu: ms.map(Duration::from_millis).into(),
            sent_bytes: sent.into(),
        };
        let done = ledger(500, [20, 30, 70], [20, 30, 70]).since(&ledger(200, [10, 20, 30], [10, 20, 30]));
        assert_eq!((done.disk_bytes, done.imbalance()), (300, Some(2.0)));
        assert_eq!(done.cpu[2], Duration::from_millis(40));
        assert_eq!(ledger(0, [0; 3], [0; 3]).imbalance(), None);
    }
}
