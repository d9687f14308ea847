//! One server measured once, for one of the two questions.

use std::fmt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::workload::Content;
use crate::load::{Load, LoadReport, LoadRequest, LoadSettings, RequestList};
use crate::rig::processes::cpu_time;
use crate::rig::{CpuTicks, Groups, Machine, Running, Volume};

/// A server with its disk and its bounds.
#[derive(Debug)]
pub(super) struct Contestant {
    pub(super) server: Running,
    pub(super) volume: Volume,
    pub(super) groups: Vec<PathBuf>,
    /// Its control socket, if it is a Baton.
    pub(super) control: PathBuf,
}

impl Contestant {
    /// How many of its processes were killed for want of memory.
    pub(super) fn out_of_memory(&self) -> u64 {
        Groups::out_of_memory(&self.groups)
    }

    fn load(
        &self,
        requests: Vec<LoadRequest>,
        connections: usize,
        pace: Option<f64>,
        duration: Duration,
    ) -> Result<Load> {
        let settings = LoadSettings {
            address: self.server.address,
            connections,
            connection_per_request: false,
            idle_connections: 0,
            duration,
            requests_max: None,
            requests_per_second: pace,
            // The disk is the bottleneck, and both loads of the second question need the CPU.
            sleep: true,
            verify: false,
        };
        let list = RequestList::new(settings.address, false, requests);
        Load::connect(&settings, list)
    }
}

/// The result of one turn.
#[derive(Clone, Debug)]
pub(super) struct Turn<F> {
    pub(super) server: String,
    pub(super) round: usize,
    pub(super) outcome: Result<F, String>,
}

/// The figures of a turn.
pub(super) trait Figures: fmt::Display {
    /// Whether other processes took so much CPU that the turn is unreliable.
    fn is_disturbed(&self) -> bool;
}

/// How much is served of what does not fit the memory.
#[derive(Clone, Debug)]
pub(super) struct Throughput {
    pub(super) requests_per_second: f64,
    pub(super) megabytes_per_second: f64,
    /// Read from the disk.
    pub(super) disk_megabytes_per_second: f64,
    pub(super) cpu_us_per_request: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// How much of the server's CPUs others used.
    foreign: f64,
}

impl Throughput {
    /// One turn of the mix.
    pub(super) fn measure(
        contestant: &Contestant,
        machine: &Machine,
        content: Content,
        turn: usize,
        duration: Duration,
    ) -> Result<Self> {
        let mut load = contestant.load(content.mix(turn), MIX_CONNECTIONS, None, duration)?;
        let processes = contestant.server.processes();
        let (cpu, ticks) = (cpu_time(&processes), CpuTicks::of(&machine.server_cpus)?);
        let disk = contestant.volume.bytes_read()?;
        let report = without_failures(load.run()?)?;
        let disk = contestant.volume.bytes_read()? - disk;
        let cpu = cpu_time(&processes).saturating_sub(cpu).as_secs_f64();
        let busy = CpuTicks::of(&machine.server_cpus)?.busy_since(ticks);
        let figures = report.figures();
        Ok(Self {
            requests_per_second: figures.requests_per_second,
            megabytes_per_second: figures.megabytes_per_second,
            disk_megabytes_per_second: disk as f64 / 1e6 / report.span.as_secs_f64(),
            cpu_us_per_request: cpu * 1e6 / report.answered() as f64,
            p50_ms: figures.latency_us.p50 / 1e3,
            p99_ms: figures.latency_us.p99 / 1e3,
            foreign: busy
                - cpu / report.span.as_secs_f64()
                - machine.beside_server(figures.client_utilisation),
        })
    }
}

impl Figures for Throughput {
    fn is_disturbed(&self) -> bool {
        self.foreign > FOREIGN_MAX
    }
}

impl fmt::Display for Throughput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.0} requests/s, {:.1} MB/s, of it {:.1} from the disk, {:.0} us CPU/request{}",
            self.requests_per_second,
            self.megabytes_per_second,
            self.disk_megabytes_per_second,
            self.cpu_us_per_request,
            if self.is_disturbed() { ", disturbed" } else { "" }
        )
    }
}

/// How long resident files take while others are waited for.
#[derive(Clone, Debug)]
pub(super) struct Latency {
    /// Without requests that wait for the disk.
    pub(super) alone: Quantiles,
    /// Beside requests that do.
    pub(super) beside: Quantiles,
    pub(super) cold_megabytes_per_second: f64,
}

/// Of the latency, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantiles {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) max_ms: f64,
}

impl Latency {
    /// One turn: resident files alone, then beside cold ones.
    pub(super) fn measure(
        contestant: &Contestant,
        content: Content,
        turn: usize,
        duration: Duration,
    ) -> Result<Self> {
        let resident = |duration| {
            contestant.load(
                content.resident(),
                RESIDENT_CONNECTIONS,
                Some(RESIDENT_REQUESTS_PER_SECOND),
                duration,
            )
        };
        // The first request for each file is not measured.
        without_failures(resident(LEAD)?.run()?)?;
        let alone = without_failures(resident(duration / 2)?.run()?)?;
        let mut cold = contestant.load(content.cold(turn), COLD_CONNECTIONS, None, duration + LEAD)?;
        let mut resident = resident(duration)?;
        let (cold, beside) = thread::scope(|scope| {
            let cold = scope.spawn(move || cold.run());
            thread::sleep(LEAD);
            let beside = resident.run();
            (cold.join(), beside)
        });
        let Ok(cold) = cold else { bail!("the load of cold files panicked") };
        let cold = without_failures(cold?).context("cold files")?.figures();
        let beside = without_failures(beside?).context("resident files")?;
        Ok(Self {
            alone: Quantiles::of(&alone),
            beside: Quantiles::of(&beside),
            cold_megabytes_per_second: cold.megabytes_per_second,
        })
    }
}

impl Quantiles {
    fn of(report: &LoadReport) -> Self {
        let latency = report.figures().latency_us;
        Self { p50_ms: latency.p50 / 1e3, p99_ms: latency.p99 / 1e3, max_ms: latency.max / 1e3 }
    }
}

impl Figures for Latency {
    /// A CPU that is taken away shows in the latency without others waiting, too.
    fn is_disturbed(&self) -> bool {
        self.alone.p99_ms > ALONE_P99_MS_MAX
    }
}

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Quantiles { p50_ms, p99_ms, max_ms } = self.beside;
        write!(
            f,
            "alone p99 {:.2} ms; beside p50 {p50_ms:.2}, p99 {p99_ms:.2}, worst {max_ms:.1} ms; cold {:.1} MB/s{}",
            self.alone.p99_ms,
            self.cold_megabytes_per_second,
            if self.is_disturbed() { ", disturbed" } else { "" }
        )
    }
}

impl<F: fmt::Display> fmt::Display for Turn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.round + 1, self.server)?;
        match &self.outcome {
            Ok(figures) => figures.fmt(f),
            Err(why) => write!(f, "FAILED: {why}"),
        }
    }
}

/// A server that answered wrongly even once has no figures.
fn without_failures(report: LoadReport) -> Result<LoadReport> {
    if report.failed() > 0 || report.requests == 0 {
        bail!("{} requests failed: {}", report.failed(), report.first_failure.unwrap_or_default());
    }
    Ok(report)
}

/// Connections that request the mix.
pub(super) const MIX_CONNECTIONS: usize = 64;
/// Connections that request cold files.
pub(super) const COLD_CONNECTIONS: usize = 16;
/// Connections that share the requests for resident files.
pub(super) const RESIDENT_CONNECTIONS: usize = 32;
/// Requests for resident files.
pub(super) const RESIDENT_REQUESTS_PER_SECOND: f64 = 200.0;
/// Load before a measurement, to reach a steady state.
const LEAD: Duration = Duration::from_millis(300);
/// A server whose CPU others used so much was not measured but hindered: the disk leaves it idle most of the time.
const FOREIGN_MAX: f64 = 0.6;
/// Resident files of an idle server take a fraction of a millisecond.
const ALONE_P99_MS_MAX: f64 = 5.0;
