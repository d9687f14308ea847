//! One cell of a table: one server under one load in one round.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::Serialize;

use super::meter::{Contender, Meter};
use crate::load::{Load, LoadRequest, LoadSettings, RequestList};
use crate::rig::Machine;
use crate::rig::processes::memory_bytes;

/// A task for the servers: a column of a summary, or a table of its own.
pub(crate) trait Task: Copy + PartialEq + fmt::Display + Serialize {
    /// How many connections ask at the same time.
    fn connections(self) -> usize;

    /// The requests, in turn.
    fn requests(self) -> Vec<LoadRequest>;

    /// More fields of each request, each with its line's end.
    fn fields(self) -> &'static str {
        ""
    }

    /// Whether each request opens a connection.
    fn connection_per_request(self) -> bool {
        false
    }

    /// How many more connections are silent.
    fn idle_connections(self) -> usize {
        0
    }
}

/// One server under one load in one round.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Cell<T> {
    #[serde(rename = "workload")]
    pub(crate) task: T,
    pub(crate) server: String,
    pub(crate) round: usize,
    #[serde(flatten)]
    pub(crate) outcome: Outcome,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Outcome {
    Measured(Figures),
    /// The server answered wrongly, or not at all: its figures mean nothing.
    Failed(String),
}

/// The figures of a cell.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) requests_per_second: f64,
    pub(crate) megabytes_per_second: f64,
    /// CPU time of all processes of the server, and of its application, per request.
    pub(crate) cpu_us_per_request: f64,
    /// The application's part of it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) application_us_per_request: Option<f64>,
    /// How many CPUs the server used, with its application, on average.
    pub(crate) server_utilisation: f64,
    pub(crate) client_utilisation: f64,
    /// How many of the server's CPUs were in use, on average.
    pub(crate) cpu_busy: f64,
    /// The median of the latency, where the client tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p50_us: Option<f64>,
    /// 99 in a hundred requests were faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) p99_us: Option<f64>,
    /// Memory that each idle connection took, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle_connection_bytes: Option<f64>,
    /// Other processes used the CPUs.
    pub(crate) disturbed: bool,
}

impl<T: Task> Cell<T> {
    /// Makes the load and reads the clocks around it.
    pub(crate) fn measure(
        contender: &Contender,
        machine: &Machine,
        load: &CellLoad<T>,
        round: usize,
    ) -> Self {
        Self::new(load.task, contender, round, figures(contender, machine, load))
    }
}

impl<T> Cell<T> {
    pub(crate) fn new(task: T, contender: &Contender, round: usize, figures: Result<Figures>) -> Self {
        let outcome = match figures {
            Ok(figures) => Outcome::Measured(figures),
            Err(error) => Outcome::Failed(format!("{error:#}")),
        };
        Self { task, server: contender.server.name.clone(), round, outcome }
    }

    /// Whether other processes used the CPUs.
    pub(crate) fn is_disturbed(&self) -> bool {
        matches!(&self.outcome, Outcome::Measured(figures) if figures.disturbed)
    }

    /// This cell with the idle connections' memory as an earlier try found it: a second try finds it taken already.
    pub(crate) fn with_memory_of(mut self, earlier: &Self) -> Self {
        if let (Outcome::Measured(now), Outcome::Measured(earlier)) = (&mut self.outcome, &earlier.outcome) {
            now.idle_connection_bytes = earlier.idle_connection_bytes;
        }
        self
    }
}

/// The load of a cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellLoad<T> {
    pub(crate) task: T,
    pub(crate) duration: Duration,
    /// The client sleeps when it has nothing to do.
    pub(crate) sleep: bool,
    /// Additional silent connections.
    pub(crate) idle_connections: usize,
}

fn figures<T: Task>(contender: &Contender, machine: &Machine, load: &CellLoad<T>) -> Result<Figures> {
    let CellLoad { task, duration, sleep, idle_connections } = *load;
    let server = &contender.server;
    let settings = LoadSettings {
        address: server.address,
        connections: task.connections(),
        connection_per_request: task.connection_per_request(),
        idle_connections,
        duration,
        requests_per_second: None,
        requests_max: None,
        sleep,
        verify: false,
    };
    let requests = RequestList::new(settings.address, settings.connection_per_request, task.requests());
    let requests = requests.with_fields(task.fields());
    let memory_before = memory_bytes(&server.processes());
    let mut load = Load::connect(&settings, requests)?;

    let idle_connection_bytes = (idle_connections > 0).then(|| {
        let memory = memory_bytes(&server.processes());
        memory.saturating_sub(memory_before) as f64 / idle_connections as f64
    });
    let meter = Meter::start(contender, machine)?;
    let report = load.run()?;
    let used = meter.stop()?;

    if report.failed() > 0 || report.requests == 0 {
        bail!("{} requests failed: {}", report.failed(), report.first_failure.unwrap_or_default());
    }
    let load = report.figures();
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / report.answered() as f64;
    let server_utilisation = used.all().as_secs_f64() / report.span.as_secs_f64();
    let foreign = used.cpu_busy - server_utilisation - machine.beside_server(load.client_utilisation);
    let spoiled_client = !sleep && load.client_utilisation < SPINNING_CLIENT_MIN;
    Ok(Figures {
        requests_per_second: load.requests_per_second,
        megabytes_per_second: load.megabytes_per_second,
        cpu_us_per_request: per_request(used.all()),
        application_us_per_request: contender.application.as_ref().map(|_| per_request(used.application)),
        server_utilisation,
        client_utilisation: load.client_utilisation,
        cpu_busy: used.cpu_busy,
        p50_us: Some(load.latency_us.p50),
        p99_us: Some(load.latency_us.p99),
        idle_connection_bytes,
        disturbed: foreign > FOREIGN_MAX || spoiled_client,
    })
}

impl<T: fmt::Display> fmt::Display for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}, {}: ", self.round + 1, self.task, self.server)?;
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
pub(crate) const FOREIGN_MAX: f64 = 0.06;
/// A spinning client uses all of its CPU, unless another process takes it.
const SPINNING_CLIENT_MIN: f64 = 0.93;
