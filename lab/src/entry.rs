//! A server of a procedure, before it runs: which kind, on which host, with which settings.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::rig::Machine;
use crate::rig::network::Host;
use crate::servers::{Ability, RunningServer, ServerKind, ServerPlace, ServerSettings, set_of};

/// A server that takes part.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its folder's.
    pub(crate) name: String,
    /// As in `lab/servers`.
    kind: String,
    settings: ServerSettings,
    nodes: Vec<SocketAddr>,
    groups: Vec<PathBuf>,
    /// Whether it runs on the client's CPUs instead of the server's.
    beside_client: bool,
}

impl Entry {
    /// Baton with one worker, under an architecture.
    pub(crate) fn baton(program: &Path, architecture: &str) -> Self {
        let settings = ServerSettings::needing([Ability::Files])
            .set("server.architecture", architecture)
            .set("server.processes", 1);
        Self::new(&format!("baton@{}", program.display()), settings)
    }

    /// Another server in front of these nodes. It chooses by a consistent hash of the URL.
    pub(crate) fn other_before_nodes(name: &str, nodes: &[SocketAddr]) -> Self {
        Self { nodes: nodes.to_vec(), ..Self::new(name, ServerSettings::needing([Ability::Nodes])) }
    }

    fn new(kind: &str, settings: ServerSettings) -> Self {
        let name = kind.split('@').next().unwrap_or(kind).to_owned();
        Self {
            name,
            kind: kind.to_owned(),
            settings,
            nodes: Vec::new(),
            groups: Vec::new(),
            beside_client: false,
        }
    }

    /// On the client's CPUs: it takes none of the server's.
    pub(crate) fn beside_client(self) -> Self {
        Self { beside_client: true, ..self }
    }

    /// Under another name.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// With more settings of Baton's, as `section.key=value`.
    ///
    /// # Errors
    /// If one has no `=`.
    pub(crate) fn settings(mut self, more: &[String]) -> Result<Self> {
        self.settings.set.extend(set_of(more)?);
        Ok(self)
    }

    /// In these control groups, named by their folders.
    pub(crate) fn in_groups(self, groups: Vec<PathBuf>) -> Self {
        Self { groups, ..self }
    }

    /// Starts it on a host, and waits until it listens there at this address.
    ///
    /// # Errors
    /// If it is not installed or does not start.
    pub(crate) fn start_on(
        &self,
        host: &Host,
        address: SocketAddr,
        machine: &Machine,
        folder: &Path,
        root: &Path,
    ) -> Result<RunningServer> {
        let cpus = if self.beside_client { &machine.client_cpus } else { &machine.server_cpus };
        let place = ServerPlace {
            address: Some(address),
            host: Some(host),
            cpus: cpus.clone(),
            groups: self.groups.clone(),
            origins: self.nodes.clone(),
            ..ServerPlace::new(&folder.join(self.name.replace(' ', "-")), root)
        };
        ServerKind::load(&self.kind)?.start(&self.settings, &place)
    }
}
