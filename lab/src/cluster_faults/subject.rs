//! The cluster that suffers: three nodes and a front-end that distributes by content.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use super::settings::FaultsSettings;
use crate::front_cost::Contender;
use crate::rig::network::ClusterHosts;
use crate::rig::{Machine, Running};

/// A cluster that runs.
pub(super) struct Cluster<'a> {
    pub(super) settings: &'a FaultsSettings,
    machine: &'a Machine,
    pub(super) hosts: &'a ClusterHosts,
    folder: &'a Path,
    root: &'a Path,
    way: Contender,
    nodes: Mutex<Vec<Running>>,
    pub(super) front: Running,
}

impl<'a> Cluster<'a> {
    pub(super) fn start(
        settings: &'a FaultsSettings,
        machine: &'a Machine,
        hosts: &'a ClusterHosts,
        folder: &'a Path,
        root: &'a Path,
        way: Contender,
    ) -> Result<Self> {
        let baton = &settings.baton;
        let start = |number| start_node(baton, machine, hosts, folder, root, (way, number));
        let nodes = (0..NODES).map(start).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<_> = nodes.iter().map(|node| node.address).collect();
        let front = way.front(baton, folder, &addresses, PATIENCE)?.context("no front-end, no cluster")?;
        let address = SocketAddr::new(IpAddr::V4(ClusterHosts::VIP_V4), PORT);
        let front = Running::start_on(&hosts.front, address, &front, machine, folder, &folder.join("empty"))?;
        Ok(Self { settings, machine, hosts, folder, root, way, nodes: Mutex::new(nodes), front })
    }

    /// Kills a node, processes and all.
    pub(super) fn kill_node(&self, number: usize) {
        self.with_node(number, Running::kill);
    }

    pub(super) fn restart_node(&self, number: usize) -> Result<()> {
        let node = start_node(
            &self.settings.baton,
            self.machine,
            self.hosts,
            self.folder,
            self.root,
            (self.way, number),
        )?;
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)[number] = node;
        Ok(())
    }

    pub(super) fn with_node<R>(&self, number: usize, with: impl FnOnce(&Running) -> R) -> R {
        with(&self.nodes.lock().unwrap_or_else(PoisonError::into_inner)[number])
    }

    /// Asks the front-end's master.
    pub(super) fn control(&self, words: &[&str]) -> Result<()> {
        let socket = self.folder.join(self.way.to_string()).join("control");
        let mut command = std::process::Command::new(&self.settings.baton);
        let output =
            command.arg("ctl").arg("--control").arg(socket).args(words).output().context("baton ctl")?;
        match output.status.success() {
            true => Ok(()),
            false => bail!("baton ctl {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)),
        }
    }
}

fn start_node(
    baton: &Path,
    machine: &Machine,
    hosts: &ClusterHosts,
    folder: &Path,
    root: &Path,
    (way, number): (Contender, usize),
) -> Result<Running> {
    let host = &hosts.nodes[number];
    let address = SocketAddr::from((host.v4(), PORT));
    let entry = way.node(baton, folder, address)?.beside_client().named(&format!("node{number}"));
    Running::start_on(host, address, &entry, machine, folder, root)
}

/// A front-end that soon knows that a node is ill.
const PATIENCE: &str =
    "connect_ms=300, head_ms=1000, health={path=\"/0.html\", interval_ms=200, timeout_ms=300, fall=2}";
pub(super) const NODES: usize = 3;
const PORT: u16 = 80;
