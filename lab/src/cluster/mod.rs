//! Compares ways of distributing requests among nodes whose memory is too small for the content, each alone: the
//! experiment of the LARD study (Pai et al., ASPLOS 1998, section 6), with real servers.
//!
//! Client, front-end and nodes are hosts in network namespaces. Each turn has one front-end and fresh nodes. Memory of the
//! nodes, page cache included, their part of a CPU and the rate of their disks are bounded, so that what a policy keeps
//! apart decides how much is served. The front-end runs on the server's CPU, nodes and client on the other.
//!
//! Beside each measured rate the table has that of the simulator, for the same requests.

mod content;
pub mod demo;
mod front;
mod nodes;
mod prediction;
mod rack;
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::ground::{Finding, Ground, Keep};
use crate::quantity::Quantity;
use crate::rig::network::Network;
use crate::rig::processes::cpu_time;
use crate::rig::{Groups, Isolation, Machine, own_folder};
use content::{Content, TraceKind};
use front::Front;
use nodes::Nodes;
use prediction::{Run, ServiceTimes};
use rack::{EMPTY, Rack, disk, hosts, load};
pub(crate) use settings::ClusterSettings;

/// Measures all front-ends with each trace.
///
/// # Errors
/// If we are not root, the machine lacks a tool or a control group, or no front-end can be started.
pub(crate) fn run(settings: &ClusterSettings, ground: Ground<'_>, keep: Keep<'_>) -> Result<()> {
    if let Some(why) = Network::hindrance() {
        bail!(
            "a cluster of hosts {why}; control groups, loop devices and mounts, which bound a node's memory and disk, \
             also need root"
        );
    }
    let folder = own_folder(ground.folder).with_context(|| ground.folder.display().to_string())?;
    fs::create_dir_all(folder.join(EMPTY))?;
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    let groups = Groups::new()?;
    let hosts = hosts(settings.cluster.nodes)?;
    let rack = Rack {
        baton: ground.baton,
        bounds: &settings.cluster,
        machine: &machine,
        groups: &groups,
        hosts: &hosts,
        folder: &folder,
    };
    for kind in ground.some(&settings.traces, 1) {
        compare(settings, ground, &rack, *kind, keep).with_context(|| kind.to_string())?;
    }
    Ok(())
}

/// All front-ends with one trace. The simulator runs the same requests as soon as all is known that it needs.
fn compare(
    settings: &ClusterSettings,
    ground: Ground<'_>,
    rack: &Rack<'_>,
    kind: TraceKind,
    keep: Keep<'_>,
) -> Result<()> {
    let content = Content::make(kind, settings.cluster.content_mb);
    let image = disk(&content, rack.folder)?;
    let times = ServiceTimes::measure(rack, &image, &content).context("measuring service times")?;
    eprintln!("a node takes {times}");
    let mut fronts = Front::ours(ground.some(&settings.policies, 2), &settings.ways)?;
    fronts.extend(ground.some(&settings.others, 1).iter().cloned().map(Front::Other));
    for round in 0..ground.rounds {
        for position in 0..fronts.len() {
            let front = &fronts[(round + position) % fronts.len()];
            let turn = format!("{kind}-{round}-{position}");
            let nodes = Nodes::start(rack, &image, settings.cluster.nodes, &turn, front.way())?;
            let measured = measure(settings, ground, rack, &content, &nodes, front, round);
            let profile = times.profile(&settings.cluster, nodes.file_bytes_max());
            nodes.stop(rack.groups)?;
            let values = match (measured, front.simulated_as()) {
                (Ok(measured), Some(policy)) => {
                    let [warm_up, begin] = begins(round);
                    let run = Run {
                        policy,
                        trace: content
                            .trace((warm_up, measured.warm_up_requests), (begin, measured.requests)),
                        warm_up: measured.warm_up_requests,
                        front_us: measured.values.get(&Quantity::FrontUs).copied().unwrap_or_default(),
                    };
                    let (rate, _) = prediction::predict(&run, profile, &settings.cluster)?;
                    let mut values = measured.values;
                    values.insert(Quantity::SimulatedRate, rate);
                    Ok(values)
                }
                (measured, _) => {
                    measured.map(|measured| measured.values).map_err(|error| format!("{error:#}"))
                }
            };
            keep(Finding { load: kind.to_string(), contender: front.name(), round, values })?;
        }
    }
    Ok(())
}

/// What one front-end did.
struct Measured {
    warm_up_requests: u64,
    requests: u64,
    values: BTreeMap<Quantity, f64>,
}

/// One front-end before fresh nodes: warms up, then measures.
fn measure(
    settings: &ClusterSettings,
    ground: Ground<'_>,
    rack: &Rack<'_>,
    content: &Content,
    nodes: &Nodes,
    front: &Front,
    round: usize,
) -> Result<Measured> {
    let hosts = rack.hosts;
    let entry = front.entry(rack.baton, rack.folder, &nodes.addresses())?;
    let server = rack.start_front(&entry)?;
    let address = server.address;
    let [warm_up, measured] = begins(round);
    let connections = settings.cluster.connections;
    let warming =
        if ground.is_tiny { ground.duration } else { Duration::from_secs_f64(settings.warm_up_seconds) };
    let warmed = load(&hosts.client, address, connections, content.requests(warm_up), warming)?;
    let before = (nodes.ledger(hosts)?, cpu_time(&server.processes()), hosts.front.traffic()?);
    let report = load(&hosts.client, address, connections, content.requests(measured), ground.duration)?;
    let done = nodes.ledger(hosts)?.since(&before.0);
    let cpu = cpu_time(&server.processes()).saturating_sub(before.1);
    let traffic = hosts.front.traffic()?.since(before.2);
    let figures = report.figures();
    let per_byte = |bytes: u64| bytes as f64 / report.bytes.max(1) as f64;
    let mut values = BTreeMap::from([
        (Quantity::Rate, figures.requests_per_second),
        (Quantity::Megabytes, figures.megabytes_per_second),
        (Quantity::DiskShare, per_byte(done.disk_bytes)),
        (Quantity::FrontUs, cpu.as_secs_f64() * 1e6 / report.answered().max(1) as f64),
        (Quantity::FrontShare, per_byte(traffic.received_bytes + traffic.sent_bytes)),
        (Quantity::P50Us, figures.latency_us.p50),
        (Quantity::P99Us, figures.latency_us.p99),
    ]);
    values.extend(done.imbalance().map(|most| (Quantity::Imbalance, most)));
    Ok(Measured { warm_up_requests: warmed.requests, requests: figures.requests, values })
}

/// The requests that warm-up and measurement begin with. Others are measured than those that warmed up.
fn begins(round: usize) -> [usize; 2] {
    [round * ROUND_STEP, round * ROUND_STEP + MEASURED_STEP]
}

/// Between the beginnings of two rounds, and of warm-up and measurement.
const ROUND_STEP: usize = 34_567;
const MEASURED_STEP: usize = 200_003;
