//! Compares ways of distributing requests among nodes whose memory is too small for the content, each alone: the
//! experiment of the LARD study (Pai et al., ASPLOS 1998, section 6), with real servers.
//!
//! Each turn has one front-end, which relays, and fresh nodes. Memory of the nodes, page cache included, and the rate of
//! their disks are bounded, so that what a policy keeps apart decides how much is served. The front-end runs on the
//! server's CPU, nodes and client on the other.

mod nodes;
mod settings;
mod table;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use rustix::process::getuid;

use crate::files;
use crate::load::{Load, LoadReport, LoadSettings, Request, RequestList};
use crate::mix::{self, MixFile};
use crate::rig::processes::cpu_time;
use crate::rig::{Entry, Groups, Image, Isolation, Machine, Running, loopback, own_folder};
use nodes::Nodes;
pub use settings::ClusterSettings;
use table::{Conditions, Turn};

/// Measures, and returns a table as Markdown.
///
/// # Errors
/// If we are not root, the machine lacks a tool or a control group, or no front-end can be started.
pub fn run(settings: &ClusterSettings) -> Result<String> {
    ensure!(
        getuid().is_root(),
        "only root may bound the memory of a node and throttle its disk: control groups, loop devices and mounts are needed"
    );
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    fs::create_dir_all(folder.join(EMPTY))?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let groups = Groups::new()?;
    let bytes: u64 = MixFile::all(settings.directories).map(MixFile::bytes).sum();
    eprintln!("making a disk with {} MB", bytes / 1_000_000);
    let image = Image::make(bytes * 11 / 10 + IMAGE_SPARE_BYTES, &folder.join("image"), |root| {
        files::write_all(root, settings.directories).map_err(Into::into)
    })?;
    let names: Vec<_> = settings.policies.iter().chain(&settings.others).collect();
    let mut turns = Vec::new();
    for round in 0..settings.rounds {
        for position in 0..names.len() {
            let name = names[(round + position) % names.len()];
            let number = round * names.len() + position;
            let nodes = Nodes::start(settings, &machine, &groups, &image, &folder, number)?;
            let outcome = turn(settings, &machine, &nodes, name, &folder, round);
            nodes.stop()?;
            let turn =
                Turn { front: name.clone(), round, outcome: outcome.map_err(|error| format!("{error:#}")) };
            eprintln!("{turn}");
            turns.push(turn);
        }
    }
    let conditions = Conditions {
        machine: machine.description(),
        nodes: settings.nodes,
        memory_mib: settings.memory_mib,
        disk_mb_per_s: settings.disk_mb_per_s,
        content_bytes: bytes,
        connections: settings.connections,
        seconds: settings.duration.as_secs_f64(),
        warm_up_seconds: settings.warm_up.as_secs_f64(),
    };
    Ok(table::markdown(&conditions, &turns, &settings.policies, &settings.others))
}

/// One front-end before fresh nodes: warms up, then measures.
fn turn(
    settings: &ClusterSettings,
    machine: &Machine,
    nodes: &Nodes,
    name: &str,
    folder: &Path,
    round: usize,
) -> Result<table::Figures> {
    let ports = nodes.ports();
    let entry = match Entry::other_before_nodes(name, &ports)
        .filter(|_| settings.others.iter().any(|it| it == name))
    {
        Some(other) => other,
        None => before_nodes(&settings.baton, name, &ports),
    };
    let front = Running::start(&entry, machine, folder, &folder.join(EMPTY))?;
    let mut requests = requests(settings.directories);
    let length = requests.len();
    requests.rotate_left(round * ROUND_STEP % length);
    load(settings, &front, requests.clone(), settings.warm_up)?;
    // Other requests than those of the warm-up, of the same kind.
    requests.rotate_left(MEASURED_STEP);
    let (before, cpu) = (nodes.ledger()?, cpu_time(&front.processes()));
    let report = load(settings, &front, requests, settings.duration)?;
    let done = nodes.ledger()?.since(&before);
    let cpu = cpu_time(&front.processes()).saturating_sub(cpu);
    let figures = report.figures();
    Ok(table::Figures {
        requests_per_second: figures.requests_per_second,
        megabytes_per_second: figures.megabytes_per_second,
        disk_share: done.disk_bytes as f64 / report.bytes.max(1) as f64,
        imbalance: done.imbalance(),
        front_us_per_request: cpu.as_secs_f64() * 1e6 / figures.requests.max(1) as f64,
        p50_ms: figures.latency_us.p50 / 1e3,
        p99_ms: figures.latency_us.p99 / 1e3,
    })
}

fn before_nodes(baton: &Path, policy: &str, ports: &[u16]) -> Entry {
    let to: Vec<_> = ports.iter().map(|port| format!("\"http://127.0.0.1:{port}\"")).collect();
    let to = to.join(", ");
    let route = format!("site.route=[{{path=\"/\", proxy={{to=[{to}], policy=\"{policy}\"}}}}]");
    Entry::baton(baton, "auto").workers(1).settings(&[route]).named(policy)
}

fn requests(directories: usize) -> Vec<Request> {
    let files = mix::sequence(directories, MIX_LENGTH).into_iter();
    files.map(|file| Request { path: file.path(), bytes: Some(file.bytes()) }).collect()
}

/// A front-end that answers wrongly even once has no figures.
fn load(
    settings: &ClusterSettings,
    front: &Running,
    requests: Vec<Request>,
    duration: Duration,
) -> Result<LoadReport> {
    let load = LoadSettings {
        address: loopback(front.port),
        connections: settings.connections,
        connection_per_request: false,
        idle_connections: 0,
        duration,
        requests_max: None,
        requests_per_second: None,
        // The nodes run on the same CPU.
        sleep: true,
        verify: false,
    };
    let report = Load::connect(&load, RequestList::new(load.address, false, requests))?.run()?;
    let failure = report.first_failure.clone().unwrap_or_default();
    ensure!(report.failed() == 0 && report.requests > 0, "{} requests failed: {failure}", report.failed());
    Ok(report)
}

/// The folder of front-ends, which have no files.
const EMPTY: &str = "empty";
/// The overhead of a file system.
const IMAGE_SPARE_BYTES: u64 = 32 << 20;
/// Requests after which the mix repeats itself.
const MIX_LENGTH: usize = 400_000;
/// Between the beginnings of two rounds, and of warm-up and measurement.
const ROUND_STEP: usize = 34_567;
const MEASURED_STEP: usize = 200_003;
