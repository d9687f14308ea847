//! What clients of a cluster see of faults: a node that dies, is cut off, hangs or is slow, and returns; a front-end that
//! restarts; nodes that leave, come back, and join.
//!
//! Client, front-end and three nodes are hosts in network namespaces. Clients ask for small files over kept connections, read
//! every body and compare it. A second after they have begun, something happens. Each request that was not answered as it
//! should be is counted by what went wrong; all are `GET`, so safe to repeat.

mod etcd;
mod fault;
mod site;
mod subject;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

use crate::contender::Contender;
use crate::files;
use crate::ground::{Finding, Ground, Keep};
use crate::load::{Load, LoadReport, LoadRequest, LoadSettings, RequestList};
use crate::quantity::Quantity;
use crate::rig::network::{ClusterHosts, Network};
use crate::rig::{Groups, Isolation, Machine, own_folder};
use fault::Fault;
use site::{FILES, bytes_of, path_of};
use subject::{Cluster, NODES, Place};

/// What to compare.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultsSettings {
    /// Ways to the nodes: `relay`, `handoff`.
    ways: Vec<String>,
    /// Of clients.
    connections: usize,
}

/// Lets each fault happen.
///
/// # Errors
/// If we are not root, the machine lacks a tool, or a cluster cannot be started.
pub(crate) fn run(settings: &FaultsSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    if let Some(why) = Network::hindrance() {
        bail!("a cluster of hosts {why}");
    }
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    let root = folder.join("root");
    fs::create_dir_all(folder.join("empty"))?;
    for number in 0..FILES {
        files::write_one(&root, &path_of(number), bytes_of(number))?;
    }
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    // Namespaces are removed on signals.
    let _groups = Groups::new()?;
    let ways: Vec<Contender> = settings.ways.iter().map(|name| name.parse()).collect::<Result<_>>()?;
    for round in 0..ground.rounds {
        for &way in ground.some(&ways, 1) {
            for &fault in ground.some(&Fault::ALL, 2) {
                // One more: it joins.
                let hosts = ClusterHosts::new(NODES + 1)?;
                let place = Place {
                    baton: ground.baton,
                    connections: settings.connections,
                    machine: &machine,
                    hosts: &hosts,
                    folder: &folder,
                    root: &root,
                };
                let cluster = Cluster::start(place, way, fault.needs_etcd())?;
                let values =
                    suffer(&cluster, fault).map(|report| seen(&report)).map_err(|error| format!("{error:#}"));
                keep(Finding { load: fault.to_string(), contender: way.to_string(), round, values })?;
            }
        }
    }
    Ok(())
}

/// What clients saw: requests that were answered wrongly, with an error, in part or not at all count as lost.
fn seen(report: &LoadReport) -> BTreeMap<Quantity, f64> {
    [
        (Quantity::Rate, report.figures().requests_per_second),
        (Quantity::LostRequests, (report.failed() + report.unanswered) as f64),
        (Quantity::EndedConnections, report.reconnects as f64),
        (Quantity::MaxUs, report.latency_ns.max() as f64 / 1e3),
    ]
    .into()
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
        connections: cluster.place.connections,
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
