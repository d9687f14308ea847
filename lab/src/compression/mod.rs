//! Compares Baton and nginx where both compress: a page from a file, and the same page from an origin.
//!
//! It measures as [`bench`](crate::bench) does. Levels differ among servers, so nginx takes part with several, and a second
//! table has the sizes: what compares is CPU time at equal size. The origin, an nginx, runs on the client's CPU.

mod page;
mod workload;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::workload::{PASSED, Workload};
use crate::comparison::{Contender, Rounds, Task as _, markdown};
use crate::load::{Load, LoadSettings, RequestList};
use crate::markdown::{begin_table, row};
use crate::rig::{Entry, Isolation, Machine, Running, own_folder};

/// What to compare and how long.
#[derive(Clone, Debug)]
pub struct CompressionSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// How often each contender is measured.
    pub rounds: usize,
    /// How long each time.
    pub duration: Duration,
    /// Where files, configurations and logs are put; kept for the next run.
    pub folder: PathBuf,
}

/// Measures, and returns the tables as Markdown.
///
/// # Errors
/// If there are fewer than two CPUs, the folder cannot be written, or one of the servers cannot be started.
pub fn run(settings: &CompressionSettings) -> Result<String> {
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let root = folder.join("root");
    fs::create_dir_all(&root)?;
    fs::write(root.join(workload::PAGE.trim_start_matches('/')), page::text())?;
    let origin = Entry::other("nginx").context("the lab knows no nginx")?.named("origin").beside_client();
    let origin = Running::start(&origin, &machine, &folder, &root).context("the origin, an nginx")?;
    let mut cells = Vec::new();
    let mut sizes = String::from("\n## Bytes of a body\n\n");
    begin_table(&mut sizes, "server", &Workload::ALL.map(|workload| workload.to_string()));
    let mut servers = Vec::new();
    for entry in entries(&settings.baton, origin.address.port()) {
        let server = Running::start(&entry, &machine, &folder, &root).context(entry.name)?;
        let bodies = Workload::ALL.map(|workload| body_bytes(server.address, workload));
        let bodies: Vec<_> = bodies.into_iter().collect::<Result<_>>()?;
        row(&mut sizes, &server.name, &bodies.iter().map(ToString::to_string).collect::<Vec<_>>());
        servers.push(Contender { server, application: None });
    }
    for workload in Workload::ALL {
        let sleep = workload.asks_the_origin();
        let rounds = Rounds { count: settings.rounds, duration: settings.duration, sleep };
        rounds.measure(workload, &servers, &machine, |cell| {
            eprintln!("{cell}");
            cells.push(cell);
            Ok(())
        })?;
    }
    Ok(markdown(&cells, &machine.description()) + &sizes)
}

/// The contenders, the reference first.
fn entries(baton: &Path, origin: u16) -> Vec<Entry> {
    let compressing = |coding: &str| {
        let settings = [
            format!("site.route=[{{path=\"{PASSED}\", proxy=\"http://127.0.0.1:{origin}/\"}}]"),
            format!("site.compress={{codings=[\"{coding}\"]}}"),
        ];
        Entry::baton(baton, "auto").workers(1).settings(&settings).named(&format!("baton, {coding}"))
    };
    let nginx = LEVELS.iter().filter_map(|level| Entry::nginx_with_gzip(origin, *level));
    nginx.chain(["gzip", "br", "zstd"].map(compressing)).collect()
}

/// Of the second response: a server may keep what it has compressed for the first.
fn body_bytes(address: SocketAddr, workload: Workload) -> Result<u64> {
    let settings = LoadSettings {
        address,
        connections: 1,
        connection_per_request: false,
        idle_connections: 0,
        requests_per_second: None,
        duration: PATIENCE,
        requests_max: Some(1),
        sleep: true,
        verify: false,
    };
    let load = || -> Result<u64> {
        let requests = RequestList::new(address, false, workload.requests()).with_fields(workload.fields());
        let report = Load::connect(&settings, requests)?.run()?;
        ensure!(report.failed() == 0, "{workload}: {}", report.first_failure.unwrap_or_default());
        Ok(report.bytes)
    };
    load()?;
    load()
}

/// Levels of nginx: its default, and two in common use.
const LEVELS: [u8; 3] = [1, 4, 6];

/// More than a response takes.
const PATIENCE: Duration = Duration::from_secs(10);
