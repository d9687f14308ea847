//! Compares servers: the same files, load and CPUs, in many interleaved rounds.
//!
//! The server runs on the first CPU and the client on the second, unless the server is given more. What decides is the server's CPU time per request,
//! read from the CPU clocks of all its processes; requests per second only mean something when the server's CPU is
//! saturated.

mod workload;

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::comparison::{Contender, Rounds, Task, markdown};
pub use crate::rig::Isolation;
use crate::rig::{Entry, Machine, OTHER_NAMES, Running, own_folder};
use crate::{files, mix};
pub use workload::Workload;

/// What to compare and how long.
#[derive(Clone, Debug)]
pub struct BenchSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// Under which architectures to measure it.
    pub architectures: Vec<String>,
    /// More settings for all of them, as `section.key=value`.
    pub baton_settings: Vec<String>,
    /// CPUs of each server. With one, Baton has one worker; with more, as many as the architecture chooses for them.
    pub cpus: usize,
    /// The other servers, by name; those that are not installed are left out.
    pub others: Vec<String>,
    /// What to measure.
    pub workloads: Vec<Workload>,
    /// How often each server is measured per workload.
    pub rounds: usize,
    /// How long each time.
    pub duration: Duration,
    /// Where files, configurations and logs are put; kept for the next run.
    pub folder: PathBuf,
    /// Every cell is appended to this file as a line of JSON.
    pub output: Option<PathBuf>,
    /// Whether the network is one of our own.
    pub isolation: Isolation,
    /// The client sleeps when it has nothing to do (and falsifies the figures of large files in virtual machines).
    pub sleep: bool,
}

/// Measures, and returns the tables as Markdown.
///
/// # Errors
/// If there are fewer than two CPUs, the folder cannot be written, or no server can be started.
pub fn run(settings: &BenchSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(settings.isolation, settings.cpus)?;
    let root = folder.join("root");
    files::write_all(&root, mix::DIRECTORIES)?;
    let mut output = match &settings.output {
        Some(path) => {
            Some(File::options().append(true).create(true).open(path).context(path.display().to_string())?)
        }
        None => None,
    };

    let mut cells = Vec::new();
    for workload in &settings.workloads {
        let entries = entries(settings, *workload);
        let mut servers = Vec::new();
        for entry in entries {
            match Running::start(&entry, &machine, &folder, &root) {
                Ok(server) => servers.push(Contender { server, application: None }),
                Err(error) => eprintln!("{workload}: {} is left out: {error:#}", entry.name),
            }
        }
        ensure!(!servers.is_empty(), "no server could be started");
        // A client that spins would take a CPU from the servers.
        let sleep = settings.sleep || machine.has_client_beside_server();
        let rounds = Rounds { count: settings.rounds, duration: settings.duration, sleep };
        rounds.measure(*workload, &servers, &machine, |cell| {
            eprintln!("{cell}");
            if let Some(file) = &mut output {
                writeln!(file, "{}", serde_json::to_string(&cell)?)?;
            }
            cells.push(cell);
            Ok(())
        })?;
    }
    Ok(markdown(&cells, &machine.description()))
}

/// The contenders of this workload; the reference (the first of the others) comes first.
fn entries(settings: &BenchSettings, workload: Workload) -> Vec<Entry> {
    let others = OTHER_NAMES.iter().filter(|name| settings.others.iter().any(|wanted| wanted == *name));
    let baton = settings.architectures.iter().map(|architecture| {
        let entry = Entry::baton(&settings.baton, architecture).settings(&settings.baton_settings);
        match &**architecture {
            // Its processes serve one connection each.
            "mp" => entry.workers(workload.connections()),
            _ if settings.cpus == 1 => entry.workers(1),
            _ => entry,
        }
    });
    let all = others.filter_map(|name| Entry::other(name)).chain(baton);
    if workload == Workload::Log {
        all.filter_map(|entry| entry.logging().map(|logging| [entry, logging])).flatten().collect()
    } else {
        all.collect()
    }
}
