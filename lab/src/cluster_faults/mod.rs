//! What clients of a cluster see of faults: a node that dies, is cut off, hangs or is slow, and returns; a front-end that
//! restarts; nodes that leave, come back, and join.
//!
//! Client, front-end and three nodes are hosts in network namespaces. Clients ask for small files over kept connections, read
//! every body and compare it. A second after they have begun, something happens. Each request that was not answered as it
//! should be is counted by what went wrong; all are `GET`, so safe to repeat.

mod etcd;
mod fault;
mod settings;
mod site;
mod subject;
mod table;

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::contender::Contender;
use crate::files;
use crate::load::{Load, LoadReport, LoadRequest, LoadSettings, RequestList};
use crate::rig::network::{ClusterHosts, Network};
use crate::rig::{Groups, Isolation, Machine, own_folder};
use fault::Fault;
pub use settings::FaultsSettings;
use site::{FILES, bytes_of, path_of};
use subject::{Cluster, NODES, Place};
use table::Seen;

/// Lets each fault happen, and returns a table as Markdown.
///
/// # Errors
/// If we are not root, the machine lacks a tool, or a cluster cannot be started.
pub fn run(settings: &FaultsSettings) -> Result<String> {
    if let Some(why) = Network::hindrance() {
        bail!("a cluster of hosts {why}");
    }
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let root = folder.join("root");
    fs::create_dir_all(folder.join("empty"))?;
    for number in 0..FILES {
        files::write_one(&root, &path_of(number), bytes_of(number))?;
    }
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    // Namespaces are removed on signals.
    let _groups = Groups::new()?;
    let ways: Vec<Contender> = settings.ways.iter().map(|name| name.parse()).collect::<Result<_>>()?;
    let mut seen = Vec::new();
    for round in 0..settings.rounds {
        for &way in &ways {
            for fault in Fault::ALL {
                // One more: it joins.
                let hosts = ClusterHosts::new(NODES + 1)?;
                let place =
                    Place { settings, machine: &machine, hosts: &hosts, folder: &folder, root: &root };
                let cluster = Cluster::start(place, way, fault.needs_etcd())?;
                let report = suffer(&cluster, fault).with_context(|| format!("{way}, {fault}"))?;
                let one = Seen { way, fault, round, report };
                eprintln!("{one}");
                seen.push(one);
            }
        }
    }
    Ok(table::markdown(&machine.description(), settings, &ways, &seen))
}

/// Lets something happen under load.
fn suffer(cluster: &Cluster<'_>, fault: Fault) -> Result<LoadReport> {
    std::thread::scope(|scope| {
        let load = scope.spawn(|| load(cluster));
        std::thread::sleep(BEFORE);
        let happened = fault.happen(cluster);
        let report = load.join().map_err(|_| anyhow!("the load generator failed"))?;
        happened.and(report)
    })
}

fn load(cluster: &Cluster<'_>) -> Result<LoadReport> {
    let load = LoadSettings {
        address: cluster.with_front(|front| front.address),
        connections: cluster.place.settings.connections,
        connection_per_request: false,
        idle_connections: 0,
        duration: BEFORE + fault::LASTS + AFTER,
        requests_max: None,
        requests_per_second: None,
        sleep: true,
        verify: true,
    };
    let request = |number| LoadRequest::file(path_of(number), bytes_of(number));
    let requests = RequestList::new(load.address, false, (0..FILES).map(request));
    cluster.place.hosts.client.run(|| Load::connect(&load, requests)?.run())
}

/// Of load, before and after the fault.
const BEFORE: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(2);
