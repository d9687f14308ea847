//! The cluster that suffers: three nodes and a front-end that distributes by content.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, bail, ensure};

use super::etcd::Etcd;
use super::site::{FILES, path_of};
use crate::contender::Contender;
use crate::entry::Entry;
use crate::rig::Machine;
use crate::rig::network::ClusterHosts;
use crate::servers::RunningServer;

/// Where it runs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) baton: &'a Path,
    pub(super) connections: usize,
    pub(super) machine: &'a Machine,
    pub(super) hosts: &'a ClusterHosts,
    pub(super) folder: &'a Path,
    pub(super) root: &'a Path,
}

/// A cluster that runs.
pub(super) struct Cluster<'a> {
    pub(super) place: Place<'a>,
    way: Contender,
    nodes: Mutex<Vec<RunningServer>>,
    entry: Entry,
    front: Mutex<RunningServer>,
    etcd: Option<Etcd>,
}

impl<'a> Cluster<'a> {
    pub(super) fn start(place: Place<'a>, way: Contender, with_etcd: bool) -> Result<Self> {
        let etcd = match with_etcd {
            true => Some(Etcd::start(&place.hosts.front, place.folder)?),
            false => None,
        };
        let nodes =
            (0..NODES).map(|number| place.start_node(way, number, &[])).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<_> = nodes.iter().map(|node| node.address).collect();
        let mut more = vec![PATIENCE.to_owned()];
        if let Some(etcd) = &etcd {
            more.extend(etcd.settings("front", None));
            // `lard-h` leaves paths where they are while loads are even. A hash gives a new node its part at once.
            more.push("cluster.policy=\"bounded-hash\"".to_owned());
        }
        let entry = way.front(place.baton, place.folder, &addresses, &more)?;
        let entry = entry.context("no front-end, no cluster")?;
        let front = Mutex::new(place.start_front(&entry)?);
        Ok(Self { place, way, nodes: Mutex::new(nodes), entry, front, etcd })
    }

    /// Kills a node, processes and all.
    pub(super) fn kill_node(&self, number: usize) {
        self.with_node(number, RunningServer::kill);
    }

    pub(super) fn restart_node(&self, number: usize) -> Result<()> {
        let node = self.place.start_node(self.way, number, &[])?;
        self.nodes()[number] = node;
        Ok(())
    }

    /// Starts another node, which registers itself.
    pub(super) fn join_node(&self) -> Result<()> {
        let etcd = self.etcd.as_ref().context("this cluster has no etcd")?;
        let host = &self.place.hosts.nodes[NODES];
        let mover = match self.way {
            Contender::Handoff => format!(", mover=\"{}\"", Contender::agent_of(host.v4())),
            _ => String::new(),
        };
        let register = format!("to=\"http://{}:{PORT}\", name=\"node{NODES}\"{mover}", host.v4());
        let settings = etcd.settings("joined", Some(&register));
        let node = self.place.start_node(self.way, NODES, &settings)?;
        self.nodes().push(node);
        Ok(())
    }

    /// Whether the node that has joined gets its part of requests on new connections: those that were handed over stay where they
    /// are.
    pub(super) fn check_joined(&self) -> Result<()> {
        let sent = || anyhow::Ok(self.place.hosts.nodes[NODES].traffic()?.sent_bytes);
        let before = sent()?;
        let address = self.with_front(|front| front.address);
        let mut curl = self.place.hosts.client.command("curl");
        curl.args(["-sf", "--max-time", "20", "-H", "Connection: close"]);
        for number in 0..FILES {
            curl.args(["-o", "/dev/null", &format!("http://{address}{}", path_of(number))]);
        }
        ensure!(curl.status().context("curl")?.success(), "requests on new connections fail");
        let sent = sent()? - before;
        ensure!(sent > JOINED_BYTES_MIN, "the node that has joined sends {sent} bytes of all files");
        Ok(())
    }

    pub(super) fn with_node<R>(&self, number: usize, with: impl FnOnce(&RunningServer) -> R) -> R {
        with(&self.nodes()[number])
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<RunningServer>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_front<R>(&self, with: impl FnOnce(&RunningServer) -> R) -> R {
        with(&self.front.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the front-end, all but its handoff agent, and starts it again.
    pub(super) fn restart_front(&self) -> Result<()> {
        let mut front = self.front.lock().unwrap_or_else(PoisonError::into_inner);
        front.restart(|| self.place.start_front(&self.entry))
    }

    /// Asks the front-end's master.
    pub(super) fn control(&self, words: &[&str]) -> Result<()> {
        let socket = self.place.folder.join(self.way.to_string()).join("control");
        let mut command = std::process::Command::new(self.place.baton);
        let output =
            command.arg("ctl").arg("--control").arg(socket).args(words).output().context("baton ctl")?;
        match output.status.success() {
            true => Ok(()),
            false => bail!("baton ctl {}: {}", words.join(" "), String::from_utf8_lossy(&output.stderr)),
        }
    }
}

impl Place<'_> {
    fn start_front(&self, entry: &Entry) -> Result<RunningServer> {
        let address = SocketAddr::new(IpAddr::V4(ClusterHosts::VIP_V4), PORT);
        let empty = self.folder.join("empty");
        entry.start_on(&self.hosts.front, address, self.machine, self.folder, &empty)
    }

    /// `more`: settings of this node.
    fn start_node(&self, way: Contender, number: usize, more: &[String]) -> Result<RunningServer> {
        let host = &self.hosts.nodes[number];
        let address = SocketAddr::from((host.v4(), PORT));
        let entry = way.node(self.baton, self.folder, address)?.settings(more)?;
        let entry = entry.beside_client().named(&format!("node{number}"));
        entry.start_on(host, address, self.machine, self.folder, self.root)
    }
}

/// A front-end that soon knows that a node is ill.
const PATIENCE: &str = "cluster.relay={connect_ms=300, head_ms=1000, \
                        health={path=\"/0.html\", interval_ms=200, timeout_ms=300, fall=2}}";
pub(super) const NODES: usize = 3;
const PORT: u16 = 80;
/// An eighth of what it would send if each node sent as much.
const JOINED_BYTES_MIN: u64 = 300 << 10;
