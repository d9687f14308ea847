//! One cell of the table: one server under one load in one round.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use super::workload::Workload;
use crate::load::{Load, LoadSettings, RequestList};
use crate::rig::processes::{cpu_time, memory_bytes};
use crate::rig::{CpuTicks, Machine, Running, loopback};

/// One server under one load in one round.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cell {
    pub(super) workload: Workload,
    pub(super) server: String,
    pub(super) round: usize,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Measured(Figures),
    /// The server answered wrongly, or not at all: its figures mean nothing.
    Failed(String),
}

/// What a cell says.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Figures {
    pub(super) requests_per_second: f64,
    pub(super) megabytes_per_second: f64,
    /// CPU time of all processes of the server per request.
    pub(super) cpu_us_per_request: f64,
    /// Share of its CPU that the server used, of all time.
    pub(super) server_utilisation: f64,
    pub(super) client_utilisation: f64,
    /// Share of the server's CPU that somebody used.
    pub(super) cpu_busy: f64,
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// Memory that each idle connection took, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) idle_connection_bytes: Option<f64>,
    /// Somebody else used the CPUs.
    pub(super) disturbed: bool,
}

impl Cell {
    /// Makes the load and reads the clocks around it.
    pub(super) fn measure(server: &Running, machine: &Machine, load: &CellLoad, round: usize) -> Self {
        let workload = load.workload;
        let outcome = match figures(server, machine, load) {
            Ok(figures) => Outcome::Measured(figures),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        Self { workload, server: server.name.clone(), round, outcome }
    }

    /// Whether somebody else used the CPUs.
    pub(super) fn is_disturbed(&self) -> bool {
        matches!(&self.outcome, Outcome::Measured(figures) if figures.disturbed)
    }

    /// This cell with the idle connections' memory as an earlier try found it: a second try finds it taken already.
    pub(super) fn with_memory_of(mut self, earlier: &Self) -> Self {
        if let (Outcome::Measured(now), Outcome::Measured(earlier)) = (&mut self.outcome, &earlier.outcome) {
            now.idle_connection_bytes = earlier.idle_connection_bytes;
        }
        self
    }
}

/// The load of a cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct CellLoad {
    pub(super) workload: Workload,
    pub(super) duration: Duration,
    /// The client sleeps when it has nothing to do.
    pub(super) sleep: bool,
    /// Silent connections beside.
    pub(super) idle_connections: usize,
}

fn figures(server: &Running, machine: &Machine, load: &CellLoad) -> Result<Figures> {
    let CellLoad { workload, duration, sleep, idle_connections } = *load;
    let settings = LoadSettings {
        address: loopback(server.port),
        connections: workload.connections(),
        connection_per_request: workload.connection_per_request(),
        idle_connections,
        duration,
        requests_per_second: None,
        requests_max: None,
        sleep,
        verify: false,
    };
    let requests = RequestList::new(settings.address, settings.connection_per_request, workload.requests());
    let memory_before = memory_bytes(&server.processes());
    let mut load = Load::connect(&settings, requests)?;

    let processes = server.processes();
    let idle_connection_bytes = (idle_connections > 0)
        .then(|| memory_bytes(&processes).saturating_sub(memory_before) as f64 / idle_connections as f64);
    let (ticks_before, cpu_before) = (CpuTicks::of(machine.server_cpu)?, cpu_time(&processes));
    let report = load.run()?;
    let cpu = cpu_time(&processes).saturating_sub(cpu_before);
    let cpu_busy = CpuTicks::of(machine.server_cpu)?.busy_since(ticks_before);

    if report.failed() > 0 || report.requests == 0 {
        bail!("{} requests failed: {}", report.failed(), report.first_failure.unwrap_or_default());
    }
    let load = report.figures();
    let server_utilisation = cpu.as_secs_f64() / load.seconds;
    let spoiled_client = !sleep && load.client_utilisation < SPINNING_CLIENT_MIN;
    Ok(Figures {
        requests_per_second: load.requests_per_second,
        megabytes_per_second: load.megabytes_per_second,
        cpu_us_per_request: cpu.as_secs_f64() * 1e6 / load.requests as f64,
        server_utilisation,
        client_utilisation: load.client_utilisation,
        cpu_busy,
        p50_us: load.latency_us.p50,
        p99_us: load.latency_us.p99,
        idle_connection_bytes,
        disturbed: cpu_busy - server_utilisation > FOREIGN_MAX || spoiled_client,
    })
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}: ", self.round + 1, self.workload, self.server)?;
        match &self.outcome {
            Outcome::Failed(why) => write!(f, "FAILED: {why}"),
            Outcome::Measured(figures) => write!(
                f,
                "{:.2} us CPU/request, {:.0} requests/s, server {:.0} %{}",
                figures.cpu_us_per_request,
                figures.requests_per_second,
                figures.server_utilisation * 100.0,
                if figures.disturbed { ", disturbed" } else { "" }
            ),
        }
    }
}

/// So much of the server's CPU may be used by others; the ticks of `/proc/stat` are no finer.
const FOREIGN_MAX: f64 = 0.06;
/// A client that spins uses its CPU whole, unless somebody took it away.
const SPINNING_CLIENT_MIN: f64 = 0.93;
