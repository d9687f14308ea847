//! Compares proxies and caches: the same origin behind each, over kept connections.
//!
//! It measures as [`bench`](crate::bench) does. The origin, an nginx with files, runs on the client's CPU: where it takes
//! part, the client sleeps when it has nothing to read, so that the origin can run. What decides is the CPU time of the
//! server in between, per request.

mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::comparison::{Contender, Rounds, markdown};
use crate::files;
use crate::rig::{Entry, Isolation, Machine, Running, own_folder};
pub use workload::ProxyWorkload;
use workload::{CACHED, PASSED};

/// What to compare and how long.
#[derive(Clone, Debug)]
pub struct ProxySettings {
    /// Commands of this project. Each but the first has the name of its folder in the tables: two builds can be compared.
    pub batons: Vec<PathBuf>,
    /// More settings for all of them, as `section.key=value`.
    pub baton_settings: Vec<String>,
    /// The other servers, by name; the first that is installed is the reference.
    pub others: Vec<String>,
    /// What to measure.
    pub workloads: Vec<ProxyWorkload>,
    /// How often each server is measured per workload.
    pub rounds: usize,
    /// How long each time.
    pub duration: Duration,
    /// Where files, configurations and logs are put; kept for the next run.
    pub folder: PathBuf,
}

/// Measures, and returns the tables as Markdown.
///
/// # Errors
/// If there are fewer than two CPUs, the folder cannot be written, or the origin or all of the servers cannot be started.
pub fn run(settings: &ProxySettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let root = folder.join("root");
    files::write_all(&root, 0)?;
    // The same files where a server that has no origin finds what caches have.
    files::write_all(&folder.join(FILES).join(CACHED.trim_start_matches('/')), 0)?;
    fs::create_dir_all(folder.join(EMPTY))?;
    let origin = Entry::other("nginx").context("the lab knows no nginx")?.named("origin").beside_client();
    let origin = Running::start(&origin, &machine, &folder, &root).context("the origin, an nginx")?;

    let mut cells = Vec::new();
    for workload in &settings.workloads {
        let mut servers = Vec::new();
        for (entry, root) in entries(settings, *workload, origin.address.port(), &folder) {
            match Running::start(&entry, &machine, &folder, &root) {
                Ok(server) => servers.push(Contender { server, application: None }),
                Err(error) => eprintln!("{workload}: {} is left out: {error:#}", entry.name),
            }
        }
        ensure!(!servers.is_empty(), "no server could be started");
        let sleep = workload.asks_the_origin();
        let rounds = Rounds { count: settings.rounds, duration: settings.duration, sleep };
        rounds.measure(*workload, &servers, &machine, |cell| {
            eprintln!("{cell}");
            cells.push(cell);
            Ok(())
        })?;
    }
    Ok(markdown(&cells, &machine.description()))
}

/// The contenders of this workload with their roots, the reference first.
fn entries(
    settings: &ProxySettings,
    workload: ProxyWorkload,
    origin: u16,
    folder: &Path,
) -> Vec<(Entry, PathBuf)> {
    let empty = folder.join(EMPTY);
    let others = settings.others.iter().filter_map(|name| Entry::other_before_origin(name, origin));
    let others = others.filter(|entry| workload.asks_the_origin() || entry.caches());
    let mut entries: Vec<_> = others.map(|entry| (entry, empty.clone())).collect();
    for (index, baton) in settings.batons.iter().enumerate() {
        let entry = || Entry::baton(baton, "auto").workers(1).settings(&settings.baton_settings);
        let name = match baton.parent().and_then(Path::file_name).filter(|_| index > 0) {
            Some(name) => format!("baton {}", name.display()),
            None => "baton".to_owned(),
        };
        let route = |path: &str, rest: &str| {
            format!("site.route=[{{path=\"{path}\", proxy=\"http://127.0.0.1:{origin}/\"{rest}}}]")
        };
        let route = match workload.asks_the_origin() {
            true => route(PASSED, ""),
            false => route(CACHED, ", cache={default_s=3600}"),
        };
        entries.push((entry().settings(&[route]).named(&name), empty.clone()));
        if !workload.asks_the_origin() {
            let name = format!("{name}, a file");
            entries.push((entry().named(&name), folder.join(FILES)));
        }
    }
    entries
}

/// The folder of servers that have no files, and of one that has those of the cache.
const EMPTY: &str = "empty";
const FILES: &str = "files";
