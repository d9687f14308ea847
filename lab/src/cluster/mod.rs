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
mod table;

use std::fs;

use anyhow::{Context, Result, bail};

use crate::rig::network::Network;
use crate::rig::processes::cpu_time;
use crate::rig::{Groups, Isolation, Machine, own_folder};
use content::Content;
pub use content::TraceKind;
use front::Front;
use nodes::Nodes;
use prediction::{Run, ServiceTimes};
use rack::{EMPTY, Rack, disk, hosts, load};
pub use settings::{ClusterBounds, ClusterSettings};
use table::{Conditions, Figures, Turn};

/// Measures, and returns tables as Markdown. The last line is about the last trace.
///
/// # Errors
/// If we are not root, the machine lacks a tool or a control group, or no front-end can be started.
pub fn run(settings: &ClusterSettings) -> Result<String> {
    if let Some(why) = Network::hindrance() {
        bail!(
            "a cluster of hosts {why}; control groups, loop devices and mounts, which bound a node's memory and disk, \
             also need root"
        );
    }
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    fs::create_dir_all(folder.join(EMPTY))?;
    let machine = Machine::prepare(Isolation::Hosts, 1)?;
    let groups = Groups::new()?;
    let hosts = hosts(settings.cluster.nodes)?;
    let rack = Rack {
        baton: &settings.baton,
        bounds: &settings.cluster,
        machine: &machine,
        groups: &groups,
        hosts: &hosts,
        folder: &folder,
    };
    let mut text = String::new();
    for kind in &settings.traces {
        text += &compare(settings, &rack, *kind).with_context(|| kind.to_string())?;
    }
    Ok(text)
}

/// All front-ends with one trace.
fn compare(settings: &ClusterSettings, rack: &Rack<'_>, kind: TraceKind) -> Result<String> {
    let content = Content::make(kind, settings.cluster.content_mb);
    let image = disk(&content, rack.folder)?;
    let times = ServiceTimes::measure(rack, &image, &content).context("measuring service times")?;
    eprintln!("a node takes {times}");
    let mut fronts = Front::ours(&settings.policies, &settings.ways)?;
    let ours: Vec<String> = fronts.iter().map(Front::name).collect();
    fronts.extend(settings.others.iter().cloned().map(Front::Other));
    let mut turns = Vec::new();
    let mut file_bytes = 0;
    for round in 0..settings.rounds {
        for position in 0..fronts.len() {
            let front = &fronts[(round + position) % fronts.len()];
            let turn = format!("{kind}-{round}-{position}");
            let nodes = Nodes::start(rack, &image, settings.cluster.nodes, &turn, front.way())?;
            let outcome = measure(settings, rack, &content, &nodes, front, round);
            file_bytes = file_bytes.max(nodes.file_bytes_max());
            nodes.stop(rack.groups)?;
            let turn =
                Turn { front: front.name(), round, outcome: outcome.map_err(|error| format!("{error:#}")) };
            eprintln!("{kind} {turn}");
            turns.push(turn);
        }
    }
    let profile = times.profile(&settings.cluster, file_bytes);
    for turn in &mut turns {
        let policy = fronts.iter().find(|front| front.name() == turn.front).and_then(Front::simulated_as);
        if let (Some(policy), Ok(figures)) = (policy, &mut turn.outcome) {
            let [warm_up, measured] = begins(turn.round);
            let trace = content.trace((warm_up, figures.warm_up_requests), (measured, figures.requests));
            let run = Run {
                policy,
                trace,
                warm_up: figures.warm_up_requests,
                front_us: figures.front_us_per_request,
            };
            let (rate, misses) = prediction::predict(&run, profile, &settings.cluster)?;
            (figures.simulated_per_second, figures.simulated_misses) = (Some(rate), Some(misses));
        }
    }
    let conditions = Conditions {
        trace: kind.to_string(),
        machine: rack.machine.description(),
        cluster: settings.cluster,
        files: content.files(),
        content_bytes: content.bytes(),
        file_bytes,
        times,
        seconds: settings.duration.as_secs_f64(),
        warm_up_seconds: settings.warm_up.as_secs_f64(),
    };
    Ok(table::markdown(&conditions, &turns, &ours, &settings.others))
}

/// One front-end before fresh nodes: warms up, then measures.
fn measure(
    settings: &ClusterSettings,
    rack: &Rack<'_>,
    content: &Content,
    nodes: &Nodes,
    front: &Front,
    round: usize,
) -> Result<Figures> {
    let hosts = rack.hosts;
    let entry = front.entry(rack.baton, rack.folder, &nodes.addresses())?;
    let server = rack.start_front(&entry)?;
    let address = server.address;
    let [warm_up, measured] = begins(round);
    let connections = settings.cluster.connections;
    let warmed = load(&hosts.client, address, connections, content.requests(warm_up), settings.warm_up)?;
    let before = (nodes.ledger(hosts)?, cpu_time(&server.processes()), hosts.front.traffic()?);
    let report = load(&hosts.client, address, connections, content.requests(measured), settings.duration)?;
    let done = nodes.ledger(hosts)?.since(&before.0);
    let cpu = cpu_time(&server.processes()).saturating_sub(before.1);
    let traffic = hosts.front.traffic()?.since(before.2);
    let figures = report.figures();
    Ok(Figures {
        warm_up_requests: warmed.requests,
        requests: figures.requests,
        requests_per_second: figures.requests_per_second,
        megabytes_per_second: figures.megabytes_per_second,
        disk_share: done.disk_bytes as f64 / report.bytes.max(1) as f64,
        imbalance: done.imbalance(),
        front_us_per_request: cpu.as_secs_f64() * 1e6 / report.answered().max(1) as f64,
        front_us_per_megabyte: cpu.as_secs_f64() * 1e6 / (report.bytes.max(1) as f64 / 1e6),
        front_share: (traffic.received_bytes + traffic.sent_bytes) as f64 / report.bytes.max(1) as f64,
        p50_ms: figures.latency_us.p50 / 1e3,
        p99_ms: figures.latency_us.p99 / 1e3,
        simulated_per_second: None,
        simulated_misses: None,
    })
}

/// The requests that warm-up and measurement begin with. Others are measured than those that warmed up.
fn begins(round: usize) -> [usize; 2] {
    [round * ROUND_STEP, round * ROUND_STEP + MEASURED_STEP]
}

/// Between the beginnings of two rounds, and of warm-up and measurement.
const ROUND_STEP: usize = 34_567;
const MEASURED_STEP: usize = 200_003;
