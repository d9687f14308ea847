//! What an experiment wants of a server, and the place where it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::ability::Ability;
use crate::rig::Certificate;
use crate::rig::network::Host;

/// Settings by name.
pub type SettingTable = BTreeMap<String, toml::Value>;

/// What an experiment wants of a server.
#[derive(Clone, Debug, Default)]
pub struct ServerSettings {
    /// What it must do; its configuration contains nothing else.
    pub needs: BTreeSet<Ability>,
    /// Settings by name: those that the kind's file declares, and for Baton any `section.key` of its reference.
    pub set: SettingTable,
}

impl ServerSettings {
    /// No settings, and these needs.
    pub fn needing(needs: impl IntoIterator<Item = Ability>) -> Self {
        Self { needs: needs.into_iter().collect(), ..Self::default() }
    }

    /// With one more setting.
    pub fn set(mut self, name: &str, value: impl Into<toml::Value>) -> Self {
        self.set.insert(name.to_owned(), value.into());
        self
    }
}

/// Where a server runs, and what stands behind it.
#[derive(Clone, Debug, Default)]
pub struct ServerPlace<'a> {
    /// For its configuration, logs and sockets. Two servers that run at a time have different ones.
    pub folder: PathBuf,
    /// The files that it serves.
    pub root: PathBuf,
    /// Where it listens; `None`: on a free port of the loopback device.
    pub address: Option<SocketAddr>,
    /// The CPUs that it may use; empty: those of this process.
    pub cpus: Vec<usize>,
    /// Folders of the control groups that it enters before its first page: see [`crate::rig::Groups`].
    pub groups: Vec<PathBuf>,
    /// The host that it runs on; `None`: this one.
    pub host: Option<&'a Host>,
    /// For `tls` and `h2`.
    pub certificate: Option<&'a Certificate>,
    /// For `proxy` and `cache`, which use the first, `nodes` and `cluster`; the peers for `documents`.
    pub origins: Vec<SocketAddr>,
    /// For `registry`: where etcd listens.
    pub registry: Option<SocketAddr>,
    /// For `fastcgi`: the application's socket.
    pub fastcgi: Option<PathBuf>,
    /// For `php`: the socket of php-fpm.
    pub php: Option<PathBuf>,
}

impl ServerPlace<'_> {
    /// This host, a free port, any CPU, nothing behind it.
    pub fn new(folder: &Path, root: &Path) -> Self {
        Self { folder: folder.to_owned(), root: root.to_owned(), ..Self::default() }
    }

    /// What this place lacks for the ability.
    pub(super) fn lacks(&self, ability: Ability) -> Option<&'static str> {
        let (present, what) = match ability {
            Ability::Tls | Ability::H2 => (self.certificate.is_some(), "a certificate"),
            Ability::Fastcgi => (self.fastcgi.is_some(), "an application's socket"),
            Ability::Php => (self.php.is_some(), "a socket of php-fpm"),
            Ability::Proxy | Ability::Cache => (!self.origins.is_empty(), "an origin"),
            Ability::Nodes => (!self.origins.is_empty(), "origins"),
            Ability::Cluster => (!self.origins.is_empty(), "nodes"),
            Ability::Registry => (self.registry.is_some(), "an etcd"),
            _ => return None,
        };
        (!present).then_some(what)
    }
}

/// Settings as they are given on a command line, `section.key=value`.
///
/// # Errors
/// If one has no `=`.
pub(crate) fn set_of(settings: &[String]) -> Result<SettingTable> {
    let one = |setting: &String| {
        let Some((name, value)) = setting.split_once('=') else {
            bail!("`{setting}` is no setting: --set server.processes=2");
        };
        let value = match toml::from_str::<toml::Table>(&format!("value = {value}")) {
            Ok(mut table) => table.remove("value").unwrap_or_else(|| value.into()),
            Err(_) => value.into(),
        };
        Ok((name.to_owned(), value))
    };
    settings.iter().map(one).collect()
}
