//! What moving a connection costs: the mechanism of a hand-off alone, without messages between processes and hosts.
//!
//! A server of a thread for each connection answers at a node. Connections are opened there (`plain`), or at a front-end, which
//! moves them when their first request has come (`moved`). All of it runs in this process, and on one CPU, so that packets are
//! received within the system call that sends them. `front-cost` compares whole front-ends in the same way.

mod plain;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::files;
use crate::ground::{Ground, Keep};
use crate::load::{Load, LoadReport, LoadRequest, LoadSettings};
use crate::quantity::Quantity;
use crate::rig::network::{ClusterHosts, Network};
use crate::rig::processes::cpu_time;
use crate::rig::{Groups, Machine, own_folder};
use plain::{Files, Shared};

/// What to compare.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MovedSettings {
    /// Lengths of responses in bytes.
    sizes: Vec<u64>,
}

/// Measures all sizes, with connections that are kept and move once, and with a new one for each request.
///
/// # Errors
/// If we are not root, or the machine lacks a tool.
pub(crate) fn run(settings: &MovedSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    if let Some(why) = Network::hindrance() {
        bail!("a cluster of hosts {why}");
    }
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    let sizes = ground.some(&settings.sizes, 1);
    let mut files = Files::new();
    for size in sizes {
        let path = path_of(*size);
        files::write_one(&folder, &path, *size)?;
        let file = fs::File::open(folder.join(&path[1..]))?;
        files.insert(path, (file, *size));
    }
    let _machine = Machine::prepare(true, 1)?;
    // Namespaces are removed on signals.
    let _groups = Groups::new()?;
    let hosts = ClusterHosts::for_load(1)?;
    for round in 0..ground.rounds {
        for (contender, ip) in [("plain", hosts.nodes[0].v4()), ("moved", ClusterHosts::VIP_V4)] {
            let shared = Shared::default();
            let address = SocketAddr::from((ip, PORT));
            let server = TriedServer { hosts: &hosts, address, shared: &shared, duration: ground.duration };
            thread::scope(|scope| {
                let start = if contender == "moved" { plain::serve_moved } else { plain::serve_at_node };
                start(scope, &hosts, address, &files, &shared)?;
                let mut loads = sizes.iter().flat_map(|size| [(*size, true), (*size, false)]);
                let kept = loads.try_for_each(|(size, is_kept)| {
                    let load = format!("{size}, {} connections", if is_kept { "kept" } else { "new" });
                    keep(&load, contender, round, server.cell(size, is_kept))
                });
                shared.stop(&hosts, address);
                kept
            })?;
        }
    }
    Ok(())
}

/// A server that answers where it is, or moves its connections. It and its clients are this process.
struct TriedServer<'a> {
    hosts: &'a ClusterHosts,
    address: SocketAddr,
    shared: &'a Shared,
    duration: Duration,
}

impl TriedServer<'_> {
    fn cell(&self, size: u64, is_kept: bool) -> Result<BTreeMap<Quantity, f64>> {
        let load = |connections, duration| self.load(size, is_kept, connections, duration);
        load(CONNECTIONS, WARM_UP)?;
        let own = [std::process::id() as i32];
        let before = (self.shared.front_cpu(), cpu_time(&own));
        let report = load(CONNECTIONS, self.duration)?;
        let us = |now: Duration, before| {
            now.saturating_sub(before).as_secs_f64() * 1e6 / report.answered().max(1) as f64
        };
        let (front_us, added_us) = (us(self.shared.front_cpu(), before.0), us(cpu_time(&own), before.1));
        let alone = load(1, self.duration / 2)?;
        Ok([
            (Quantity::Rate, report.rate()),
            (Quantity::FrontUs, front_us),
            (Quantity::AddedUs, added_us),
            (Quantity::P50Us, alone.latencies.us(0.5)),
        ]
        .into())
    }

    fn load(&self, size: u64, is_kept: bool, connections: usize, duration: Duration) -> Result<LoadReport> {
        let load = LoadSettings {
            connections,
            connection_per_request: !is_kept,
            sleep: true,
            ..LoadSettings::new(self.address, duration)
        };
        let request = LoadRequest::file(path_of(size), size);
        Ok(self.hosts.client.run(|| Load::connect(&load, [request])?.run())?.judged()?)
    }
}

fn path_of(size: u64) -> String {
    format!("/{size}.html")
}

const PORT: u16 = 80;
const CONNECTIONS: usize = 8;
const WARM_UP: Duration = Duration::from_millis(300);
