//! Compares servers with TLS and HTTP/2: requests, handshakes and the memory of idle connections.
//!
//! It measures as [`bench`](crate::bench) does, with one difference: other programs make the load, `h2load` and
//! `openssl s_time`. They read what they receive and sleep when there is nothing to read. All servers have the same
//! certificate (ECDSA, P-256), and all connections the same version, key exchange and cipher.

mod answers;
mod h2load;
mod handshakes;
mod idle;
mod program;
mod workload;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::comparison::{Cell, Contender, FOREIGN_MAX, Figures, Meter, interleave, markdown};
use crate::files;
use crate::rig::{Certificate, Entry, Isolation, Machine, OTHER_NAMES, Running, own_folder};
pub use workload::TlsWorkload;
use workload::{Kind, Protocol, SMALL};

/// What to compare and how long.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// The command of this project.
    pub baton: PathBuf,
    /// Under which architectures to measure it.
    pub architectures: Vec<String>,
    /// More settings for all of them, as `section.key=value`.
    pub baton_settings: Vec<String>,
    /// The other servers, by name; the first is the reference. Those that are not installed are left out.
    pub others: Vec<String>,
    /// What to measure.
    pub workloads: Vec<TlsWorkload>,
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
/// If there are fewer than two CPUs, the folder cannot be written, or no server can be started.
pub fn run(settings: &TlsSettings) -> Result<String> {
    for name in &settings.others {
        ensure!(OTHER_NAMES.contains(&name.as_str()), "{name} is none of {}", OTHER_NAMES.join(", "));
    }
    let folder = own_folder(&settings.folder).with_context(|| settings.folder.display().to_string())?;
    let machine = Machine::prepare(Isolation::WhenRoot, 1)?;
    let root = folder.join("root");
    files::write_all(&root, 0)?;
    let lab = Lab { settings, certificate: Certificate::make(&folder)?, machine, folder, root };
    let mut cells = Vec::new();
    for workload in &settings.workloads {
        let servers = lab.start(*workload);
        ensure!(!servers.is_empty(), "no server could be started");
        // The memory of an idle connection shows once only: servers seldom return it.
        let rounds = if *workload == TlsWorkload::Idle { 1 } else { settings.rounds };
        let measure = |contender: &Contender, round| {
            Cell::new(*workload, contender, round, lab.figures(contender, *workload, settings.duration))
        };
        for contender in servers.iter().filter(|_| *workload != TlsWorkload::Idle) {
            // Caches fill, and sessions are kept for the first time.
            let _ = lab.figures(contender, *workload, WARM_UP);
        }
        interleave(rounds, &servers, measure, |cell| {
            eprintln!("{cell}");
            cells.push(cell);
            Ok(())
        })?;
    }
    Ok(markdown(&cells, &lab.machine.description()))
}

/// What all cells have in common.
struct Lab<'a> {
    settings: &'a TlsSettings,
    certificate: Certificate,
    machine: Machine,
    folder: PathBuf,
    root: PathBuf,
}

impl Lab<'_> {
    /// The servers that answer rightly by the workload's protocol; a line says why another is left out.
    fn start(&self, workload: TlsWorkload) -> Vec<Contender> {
        let settings = self.settings;
        let others = settings.others.iter().filter_map(|name| Entry::other(name));
        let baton = settings.architectures.iter().map(|architecture| {
            Entry::baton(&settings.baton, architecture).workers(1).settings(&settings.baton_settings)
        });
        let mut servers = Vec::new();
        for entry in others.chain(baton) {
            let name = entry.name.clone();
            match self.start_one(entry, workload) {
                Ok(server) => servers.push(Contender { server, application: None }),
                Err(error) => eprintln!("{workload}: {name} is left out: {error:#}"),
            }
        }
        servers
    }

    fn start_one(&self, entry: Entry, workload: TlsWorkload) -> Result<Running> {
        let protocol = workload.protocol();
        let entry = match protocol {
            Protocol::Http1Tls | Protocol::Http2Tls => {
                entry.with_tls(&self.certificate).context("the lab has no configuration with TLS for it")?
            }
            Protocol::Http2Clear => entry.with_http2_in_clear(),
        };
        let server = Running::start(&entry, &self.machine, &self.folder, &self.root)?;
        let path = match workload.kind() {
            Kind::Requests(requests) => requests.path,
            Kind::Handshakes { .. } | Kind::IdleConnections(_) => SMALL.0,
        };
        answers::check(protocol, server.address.port(), &self.certificate, Path::new(&self.root), path)?;
        Ok(server)
    }

    fn figures(&self, contender: &Contender, workload: TlsWorkload, duration: Duration) -> Result<Figures> {
        let server = &contender.server;
        let meter = Meter::start(contender, &self.machine)?;
        let (made, idle_connection_bytes) = match workload.kind() {
            Kind::Requests(requests) => (h2load::load(&requests, server.address.port(), duration)?, None),
            Kind::Handshakes { resumed } => {
                (handshakes::load(resumed, server.address.port(), duration)?, None)
            }
            Kind::IdleConnections(count) => {
                let (made, bytes) = idle::load(server, &self.certificate, count)?;
                (made, Some(bytes))
            }
        };
        let used = meter.stop()?;
        let seconds = made.elapsed.as_secs_f64();
        let server_utilisation = used.all().as_secs_f64() / seconds;
        Ok(Figures {
            requests_per_second: made.requests as f64 / seconds,
            megabytes_per_second: made.bytes as f64 / 1e6 / seconds,
            cpu_us_per_request: used.all().as_secs_f64() * 1e6 / made.requests as f64,
            application_us_per_request: None,
            server_utilisation,
            client_utilisation: made.client_cpu.as_secs_f64() / seconds,
            cpu_busy: used.cpu_busy,
            p50_us: None,
            p99_us: None,
            idle_connection_bytes,
            disturbed: used.cpu_busy - server_utilisation > FOREIGN_MAX,
        })
    }
}

const WARM_UP: Duration = Duration::from_millis(300);
