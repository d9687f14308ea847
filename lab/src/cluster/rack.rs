//! What experiments with a cluster stand on: hosts, a disk with content, and the load of a client.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::content::Content;
use super::settings::ClusterBounds;
use crate::entry::Entry;
use crate::files;
use crate::load::{Load, LoadReport, LoadRequest, LoadSettings, RequestList};
use crate::rig::network::{ClusterHosts, Host};
use crate::rig::{Groups, Image, Machine};
use crate::servers::RunningServer;

/// Where nodes run and what they are made of.
#[derive(Clone, Copy)]
pub(super) struct Rack<'a> {
    pub(super) baton: &'a Path,
    pub(super) bounds: &'a ClusterBounds,
    pub(super) machine: &'a Machine,
    pub(super) groups: &'a Groups,
    pub(super) hosts: &'a ClusterHosts,
    pub(super) folder: &'a Path,
}

impl Rack<'_> {
    /// Starts a front-end at the VIP.
    pub(super) fn start_front(&self, entry: &Entry) -> Result<RunningServer> {
        let address = SocketAddr::new(IpAddr::V4(ClusterHosts::VIP_V4), PORT);
        entry.start_on(&self.hosts.front, address, self.machine, self.folder, &self.folder.join(EMPTY))
    }
}

/// A client, a front-end and so many nodes.
pub(super) fn hosts(nodes: usize) -> Result<ClusterHosts> {
    let hosts = ClusterHosts::new(nodes)?;
    for host in [&hosts.client, &hosts.front].into_iter().chain(&hosts.nodes) {
        for (name, value) in
            [("ipv4/tcp_tw_reuse", "1"), ("ipv4/tcp_max_syn_backlog", "8192"), ("core/somaxconn", "4096")]
        {
            host.set(name, value)?;
        }
    }
    Ok(hosts)
}

/// A disk with the content, and the files for measuring service times.
pub(super) fn disk(content: &Content, folder: &Path) -> Result<Image> {
    eprintln!("making a disk with {} files, {} MB", content.files(), content.bytes() / 1_000_000);
    let bytes = content.bytes() + content.files() as u64 * FILE_OVERHEAD_BYTES + IMAGE_SPARE_BYTES;
    Image::make(bytes, &folder.join("image"), |root| {
        files::write_all(root, 0)?;
        content.write(root)
    })
}

/// A front-end that answers wrongly even once has no figures.
pub(super) fn load(
    client: &Host,
    address: SocketAddr,
    connections: usize,
    requests: Vec<LoadRequest>,
    duration: Duration,
) -> Result<LoadReport> {
    let load = LoadSettings {
        address,
        connections,
        connection_per_request: false,
        idle_connections: 0,
        duration,
        requests_max: None,
        requests_per_second: None,
        // The nodes run on the same CPU.
        sleep: true,
        verify: false,
    };
    let requests = RequestList::new(load.address, false, requests);
    let report = client.run(|| Load::connect(&load, requests)?.run())?;
    let failure = report.first_failure.as_deref().unwrap_or("nothing was answered in time");
    ensure!(report.failed() == 0 && report.requests > 0, "{} requests failed: {failure}", report.failed());
    Ok(report)
}

/// The folder of front-ends, which have no files.
pub(super) const EMPTY: &str = "empty";
/// The overhead of a file system: for each file, and of the whole.
const FILE_OVERHEAD_BYTES: u64 = 8 << 10;
const IMAGE_SPARE_BYTES: u64 = 32 << 20;
/// Of nodes, as of the front-end: each has an address of its own.
pub(super) const PORT: u16 = 80;
