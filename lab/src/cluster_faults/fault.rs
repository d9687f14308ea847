//! What happens to a cluster: faults, each with its end, and planned changes.

use std::fmt;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;

use super::subject::Cluster;
use crate::rig::network::INTERFACE;
use crate::servers::RunningServer;

/// Something that happens to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Nothing,
    NodeKilled,
    NodeCutOff,
    NodeHangs,
    NodeSlow,
    NodeDrained,
    NodeJoins,
    WorkerKilled,
    Recycled,
    Upgraded,
    Restarted,
}

impl Fault {
    pub(super) const ALL: [Self; 11] = [
        Self::Nothing,
        Self::NodeKilled,
        Self::NodeCutOff,
        Self::NodeHangs,
        Self::NodeSlow,
        Self::NodeDrained,
        Self::NodeJoins,
        Self::WorkerKilled,
        Self::Recycled,
        Self::Upgraded,
        Self::Restarted,
    ];

    /// Whether nodes come by etcd.
    pub(super) fn needs_etcd(self) -> bool {
        self == Self::NodeJoins
    }

    /// Lets it happen. A fault of a node ends after [`LASTS`].
    ///
    /// # Errors
    /// If it cannot, or a node that has joined gets no request.
    pub(super) fn happen(self, cluster: &Cluster<'_>) -> Result<()> {
        let node = &cluster.place.hosts.nodes[0];
        match self {
            Self::Nothing => sleep(LASTS),
            Self::NodeKilled => {
                cluster.kill_node(0);
                sleep(LASTS);
                cluster.restart_node(0)?;
            }
            Self::NodeCutOff => {
                node.ip(&format!("link set {INTERFACE} down\n"))?;
                sleep(LASTS);
                node.ip(&format!("link set {INTERFACE} up\n"))?;
            }
            Self::NodeHangs => {
                cluster.with_node(0, RunningServer::pause);
                sleep(LASTS);
                cluster.with_node(0, RunningServer::resume);
            }
            Self::NodeSlow => {
                node.bound_link(4)?;
                sleep(LASTS);
                node.free_link()?;
            }
            Self::NodeDrained => {
                let url = cluster.with_node(0, |node| format!("http://{}", node.address));
                cluster.control(&["drain-origin", &url])?;
                sleep(LASTS);
                cluster.control(&["undrain-origin", &url])?;
            }
            Self::NodeJoins => {
                cluster.join_node()?;
                sleep(LASTS);
                cluster.check_joined()?;
            }
            Self::WorkerKilled => cluster.with_front(RunningServer::kill_worker),
            Self::Recycled => cluster.control(&["recycle"])?,
            Self::Upgraded => cluster.control(&["upgrade"])?,
            Self::Restarted => cluster.restart_front()?,
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Nothing => "nothing",
            Self::NodeKilled => "a node killed, started again",
            Self::NodeCutOff => "a node cut off, back again",
            Self::NodeHangs => "a node stopped, continued",
            Self::NodeSlow => "a node's link at 4 Mb/s",
            Self::NodeDrained => "a node drained, back again",
            Self::NodeJoins => "a node joins by etcd",
            Self::WorkerKilled => "the front-end's worker killed",
            Self::Recycled => "the front-end's workers replaced",
            Self::Upgraded => "the front-end upgraded",
            Self::Restarted => "the front-end ended, then started",
        })
    }
}

/// How long a node is ill.
pub(super) const LASTS: Duration = Duration::from_millis(2_500);
