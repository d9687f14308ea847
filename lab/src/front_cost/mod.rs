//! What a front-end costs: hand-off against relaying by Baton, HAProxy and nginx, against none at all, and the mechanism of a
//! hand-off alone.
//!
//! Client, front-end and two nodes are hosts in network namespaces. Clients ask for one file of a node, over kept connections
//! or over a new one for each request. Kept ones move once, with their first request.
//!
//! *CPU time* is that of the whole exchange: client, front-end with its handoff agent, and nodes. What it is above that of clients
//! that ask a node directly is the front-end's doing, whichever process the kernel charged for it: received packets, for
//! example, are charged to their sender. For that all processes share one CPU, so that packets are received within the
//! system call that sends them.

mod plain;

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

use crate::contender::Contender;
use crate::entry::Entry;
use crate::files;
use crate::ground::{Finding, Ground, Keep};
use crate::load::{Load, LoadReport, LoadRequest, LoadSettings, RequestList};
use crate::quantity::Quantity;
use crate::rig::network::{ClusterHosts, Network};
use crate::rig::processes::cpu_time;
use crate::rig::{Groups, Isolation, Machine, own_folder};
use crate::servers::RunningServer;

/// What to compare.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FrontCostSettings {
    /// Front-ends: `handoff`, `moved`, `relay`, `haproxy`, `nginx`.
    fronts: Vec<String>,
    /// Lengths of responses in bytes.
    sizes: Vec<u64>,
}

/// Measures all sizes through all front-ends.
///
/// # Errors
/// If we are not root, the machine lacks a tool, or no front-end can be started.
pub(crate) fn run(settings: &FrontCostSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    if let Some(why) = Network::hindrance() {
        bail!("a cluster of hosts {why}");
    }
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    let root = folder.join("root");
    fs::create_dir_all(folder.join("empty"))?;
    for size in &settings.sizes {
        files::write_one(&root, &path_of(*size), *size)?;
    }
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    // Namespaces are removed on signals.
    let _groups = Groups::new()?;
    let hosts = ClusterHosts::new(NODES)?;
    for host in [&hosts.client, &hosts.front].into_iter().chain(&hosts.nodes) {
        host.set("ipv4/tcp_tw_reuse", "1")?;
        host.set("core/somaxconn", "4096")?;
    }
    let fronts: Vec<Contender> =
        ground.some(&settings.fronts, 2).iter().map(|name| name.parse()).collect::<Result<_>>()?;
    let mut contenders = Vec::new();
    for front in fronts.into_iter().flat_map(|front| [front.without_front(), front]) {
        if !contenders.contains(&front) {
            contenders.push(front);
        }
    }
    let rig = Rig { settings, ground, machine: &machine, hosts: &hosts, folder: &folder, root: &root };
    for round in 0..ground.rounds {
        for position in 0..contenders.len() {
            let contender = contenders[(round + position) % contenders.len()];
            rig.measure(contender, round, keep).with_context(|| contender.to_string())?;
        }
    }
    Ok(())
}

struct Rig<'a> {
    settings: &'a FrontCostSettings,
    ground: Ground<'a>,
    machine: &'a Machine,
    hosts: &'a ClusterHosts,
    folder: &'a Path,
    root: &'a Path,
}

impl Rig<'_> {
    /// All sizes through one front-end.
    fn measure(&self, contender: Contender, round: usize, keep: Keep<'_>) -> Result<()> {
        if contender.without_front() == Contender::Plain {
            return self.measure_plain(contender, round, keep);
        }
        let nodes = self.start_nodes(contender)?;
        let addresses: Vec<SocketAddr> = nodes.iter().map(|node| node.address).collect();
        let front = self.start_front(contender, &addresses)?;
        let address = front.as_ref().map_or(addresses[0], |front| front.address);
        let cpu = || {
            let front = cpu_time(&front.as_ref().map(RunningServer::processes).unwrap_or_default());
            let nodes = cpu_time(&nodes.iter().flat_map(RunningServer::processes).collect::<Vec<_>>());
            Spent { front, servers: front + nodes }
        };
        self.cells(contender, round, address, &cpu, keep)
    }

    /// All sizes with servers in this process.
    fn measure_plain(&self, contender: Contender, round: usize, keep: Keep<'_>) -> Result<()> {
        let open = |size: &u64| -> Result<_> {
            let path = path_of(*size);
            let file = fs::File::open(self.root.join(&path[1..]))?;
            Ok((path, (file, *size)))
        };
        let files = self.settings.sizes.iter().map(open).collect::<Result<plain::Files>>()?;
        let shared = plain::Shared::default();
        std::thread::scope(|scope| {
            let address = match contender {
                Contender::Moved => SocketAddr::new(IpAddr::V4(ClusterHosts::VIP_V4), PORT),
                _ => SocketAddr::from((self.hosts.nodes[0].v4(), PORT)),
            };
            match contender {
                Contender::Moved => plain::serve_moved(scope, self.hosts, address, &files, &shared)?,
                _ => plain::serve_at_node(scope, self.hosts, address, &files, &shared)?,
            }
            let cpu = || Spent { front: shared.front_cpu(), servers: process_cpu() };
            let done = self.cells(contender, round, address, &cpu, keep);
            shared.stop(self.hosts, address);
            done
        })
    }

    fn cells(
        &self,
        contender: Contender,
        round: usize,
        address: SocketAddr,
        cpu: &dyn Fn() -> Spent,
        keep: Keep<'_>,
    ) -> Result<()> {
        for &size in self.ground.some(&self.settings.sizes, 1) {
            self.check(address, size)?;
            for kept in [true, false] {
                let is_here = contender.without_front() == Contender::Plain;
                let figures = self.cell(address, size, kept, cpu, is_here);
                let values = figures.map_err(|error| format!("{error:#}"));
                let load = format!("{size}, {} connections", if kept { "kept" } else { "new" });
                keep(Finding { load, contender: contender.to_string(), round, values })?;
            }
        }
        Ok(())
    }

    fn start_nodes(&self, contender: Contender) -> Result<Vec<RunningServer>> {
        let start = |number: usize| {
            let host = &self.hosts.nodes[number];
            let address = SocketAddr::from((host.v4(), PORT));
            let entry = contender.node(self.ground.baton, self.folder, address)?.beside_client();
            let entry = entry.named(&format!("node{number}"));
            entry.start_on(host, address, self.machine, self.folder, self.root)
        };
        (0..NODES).map(start).collect()
    }

    fn start_front(&self, contender: Contender, nodes: &[SocketAddr]) -> Result<Option<RunningServer>> {
        let entry: Option<Entry> = contender.front(self.ground.baton, self.folder, nodes, &[])?;
        let Some(entry) = entry else { return Ok(None) };
        let address = SocketAddr::new(IpAddr::V4(ClusterHosts::VIP_V4), PORT);
        let entry = entry.beside_client();
        let empty = self.folder.join("empty");
        entry.start_on(&self.hosts.front, address, self.machine, self.folder, &empty).map(Some)
    }

    /// Compares a body with the file, byte for byte.
    fn check(&self, address: SocketAddr, size: u64) -> Result<()> {
        let path = path_of(size);
        let output = self
            .hosts
            .client
            .command("curl")
            .args(["-sS", "--max-time", "20", &format!("http://{address}{path}")])
            .output()
            .context("curl")?;
        let file = fs::read(self.root.join(&path[1..]))?;
        ensure!(output.status.success(), "curl: {}", String::from_utf8_lossy(&output.stderr));
        ensure!(output.stdout == file, "{path} has other bytes than the file");
        Ok(())
    }

    /// `is_here`: what servers spend is spent by this process.
    fn cell(
        &self,
        address: SocketAddr,
        size: u64,
        kept: bool,
        cpu: &dyn Fn() -> Spent,
        is_here: bool,
    ) -> Result<BTreeMap<Quantity, f64>> {
        self.load(address, size, kept, CONNECTIONS, WARM_UP)?;
        let before = (cpu(), self.hosts.front.traffic()?);
        let report = self.load(address, size, kept, CONNECTIONS, self.ground.duration)?;
        let now = cpu();
        let front_cpu = now.front.saturating_sub(before.0.front);
        let servers_cpu = now.servers.saturating_sub(before.0.servers);
        let all_cpu = if is_here { servers_cpu } else { servers_cpu + report.client_cpu };
        let traffic = self.hosts.front.traffic()?.since(before.1);
        let alone = self.load(address, size, kept, 1, self.ground.duration / 2)?;
        let requests = report.answered().max(1) as f64;
        let us = |time: Duration| time.as_secs_f64() * 1e6 / requests;
        Ok([
            (Quantity::Rate, report.figures().requests_per_second),
            (Quantity::FrontUs, us(front_cpu)),
            (Quantity::AddedUs, us(all_cpu)),
            (
                Quantity::FrontShare,
                (traffic.received_bytes + traffic.sent_bytes) as f64 / report.bytes.max(1) as f64,
            ),
            (Quantity::P50Us, alone.figures().latency_us.p50),
        ]
        .into())
    }

    fn load(
        &self,
        address: SocketAddr,
        size: u64,
        kept: bool,
        connections: usize,
        duration: Duration,
    ) -> Result<LoadReport> {
        let load = LoadSettings {
            address,
            connections,
            connection_per_request: !kept,
            idle_connections: 0,
            duration,
            requests_max: None,
            requests_per_second: None,
            sleep: true,
            verify: false,
        };
        let request = LoadRequest::file(path_of(size), size);
        let requests = RequestList::new(address, !kept, [request]);
        let report = self.hosts.client.run(|| Load::connect(&load, requests)?.run())?;
        let failure = report.first_failure.clone().unwrap_or_default();
        ensure!(
            report.failed() == 0 && report.requests > 0,
            "{} requests failed: {failure}",
            report.failed()
        );
        Ok(report)
    }
}

/// CPU time.
#[derive(Clone, Copy, Debug)]
struct Spent {
    front: Duration,
    /// Of the front-end and nodes.
    servers: Duration,
}

/// CPU time of this process so far.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn path_of(size: u64) -> String {
    format!("/{size}.html")
}

const NODES: usize = 2;
const PORT: u16 = 80;
const CONNECTIONS: usize = 8;
const WARM_UP: Duration = Duration::from_millis(300);
