//! The nodes: servers of files, each with a disk and a memory of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use super::settings::ClusterSettings;
use crate::rig::processes::cpu_time;
use crate::rig::{Bounds, Entry, Groups, Image, Machine, Running, Volume};

/// One node; all are alike.
#[derive(Debug)]
struct Node {
    server: Running,
    volume: Volume,
}

/// All nodes, with nothing in memory yet.
#[derive(Debug)]
pub(super) struct Nodes(Vec<Node>);

/// What the nodes have done so far.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// Bytes from all disks.
    pub(super) disk_bytes: u64,
    /// CPU time of each node.
    pub(super) cpu: Vec<Duration>,
}

impl Nodes {
    /// Starts them. `turn` tells their control groups from earlier ones.
    pub(super) fn start(
        settings: &ClusterSettings,
        machine: &Machine,
        groups: &Groups,
        image: &Image,
        folder: &Path,
        turn: usize,
    ) -> Result<Self> {
        let start = |number: usize| {
            let name = format!("node{number}");
            let volume = image.mount(&folder.join(format!("{name}-root")), settings.read_ahead_kb)?;
            let bounds = Bounds {
                memory_bytes: settings.memory_mib << 20,
                device: volume.device,
                read_bytes_per_s: (settings.disk_mb_per_s * 1e6) as u64,
            };
            let own = groups.make(&format!("{turn}-{name}"), &bounds)?;
            // Threads read from the disk, so that files in memory do not wait for others.
            let entry = Entry::baton(&settings.baton, "amped").workers(1).beside_client().named(&name);
            let server = Running::start(&entry.in_groups(own), machine, folder, &volume.folder)?;
            Ok(Node { server, volume })
        };
        let nodes: Result<_> = (0..settings.nodes).map(start).collect();
        nodes.map(Self).context("the nodes")
    }

    pub(super) fn ports(&self) -> Vec<u16> {
        self.0.iter().map(|node| node.server.port).collect()
    }

    pub(super) fn ledger(&self) -> Result<Ledger> {
        let mut ledger = Ledger { disk_bytes: 0, cpu: Vec::new() };
        for node in &self.0 {
            ledger.disk_bytes += node.volume.bytes_read()?;
            ledger.cpu.push(cpu_time(&node.server.processes()));
        }
        Ok(ledger)
    }

    /// Stops them; the next ones begin with an empty memory.
    pub(super) fn stop(self) -> Result<()> {
        for Node { server, volume } in self.0 {
            drop(server);
            volume.unmount()?;
        }
        Ok(())
    }
}

impl Ledger {
    /// What has been done since then.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        let cpu = self.cpu.iter().zip(&earlier.cpu).map(|(now, before)| now.saturating_sub(*before));
        Self { disk_bytes: self.disk_bytes - earlier.disk_bytes, cpu: cpu.collect() }
    }

    /// The busiest node's CPU time, as a multiple of the mean. `None`: no node did anything.
    pub(super) fn imbalance(&self) -> Option<f64> {
        let busiest = self.cpu.iter().max()?.as_secs_f64();
        let mean = self.cpu.iter().sum::<Duration>().as_secs_f64() / self.cpu.len() as f64;
        (mean > 0.0).then(|| busiest / mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_node_is_compared_with_the_mean() {
        let ledger =
            |disk_bytes, ms: [u64; 3]| Ledger { disk_bytes, cpu: ms.map(Duration::from_millis).into() };
        let done = ledger(500, [20, 30, 70]).since(&ledger(200, [10, 20, 30]));
        assert_eq!((done.disk_bytes, done.imbalance()), (300, Some(2.0)));
        assert_eq!(ledger(0, [0; 3]).imbalance(), None);
    }
}
