//! Loads on a contender, with the clocks read around them.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::cluster::{Cluster, Ledger};
use super::programs::{self, Made};
use super::stage::{Contestant, Stage};
use super::turn::{Turn, Values};
use crate::experiment::{Beside, ClosedText, LoadText, PacedText, accepts_codings};
use crate::load::{Expects, Load, LoadReport, LoadSettings};
use crate::meters::{Meters, Reading};
use crate::quantity::Quantity;
use crate::rig::CpuTicks;
use crate::rig::processes::{cpu_time, memory_bytes};

/// A contestant that is measured in a turn.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) stage: &'a Stage,
    pub(super) contestant: &'a Contestant,
    pub(super) turn: Turn,
}

impl Attempt<'_> {
    /// A closed loop, with idle connections beside it if there are any.
    pub(super) fn closed(&self, load: &ClosedText) -> Result<(Values, bool)> {
        let Self { stage, contestant, turn } = *self;
        let server = &contestant.server;
        let idle_connections = if turn.is_first { turn.effort.idle_connections(load.idle) } else { 0 };
        // A client that spins would take a CPU from the server, or from an origin; of a disk it waits.
        let sleep = load.sleep || stage.machine.has_client_beside_server() || contestant.has_disk();
        let settings = LoadSettings {
            connections: turn.effort.connections(load.connections),
            connection_per_request: load.close,
            idle_connections,
            sleep,
            verify: load.verify,
            ..LoadSettings::new(server.address, turn.duration)
        };
        let mut requests = match load.set_mib {
            Some(mib) => stage.site.in_script(mib, turn.number)?,
            None => stage.site.requests(&load.ask, turn.number)?,
        };
        for request in &mut requests {
            request.fields.extend(load.fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")));
            if accepts_codings(&load.fields) {
                request.expects = Expects::Coded;
            }
            if let Some(upload) = &load.upload {
                upload.add_to(request);
            }
        }
        let memory_before = memory_bytes(&server.processes());
        let mut client = contestant.on_client(|| Load::connect(&settings, requests))?;
        let memory = memory_bytes(&server.processes());
        let watch = Watch::begin(*self)?;
        let report = contestant.on_client(|| client.run())?.judged()?;
        let used = watch.end()?;
        let client_cpus = report.client_utilisation();
        let mut values = of_report(&report);
        used.tell_of(&report, &mut values);
        if contestant.cluster.is_some() {
            return Ok((values, false));
        }
        if idle_connections > 0 {
            let bytes = memory.saturating_sub(memory_before) as f64;
            values.insert(Quantity::IdleBytes, bytes / idle_connections as f64);
        }
        let beside = if stage.machine.has_client_beside_server() { client_cpus } else { 0.0 };
        let foreign = used.foreign(report.span) - beside;
        let spoiled_client = !sleep && client_cpus < SPINNING_CLIENT_MIN;
        let foreign_max = if contestant.has_disk() { FOREIGN_BESIDE_DISK_MAX } else { FOREIGN_MAX };
        Ok((values, foreign > foreign_max || spoiled_client))
    }

    /// Requests at a steady rate: alone, then beside another load.
    pub(super) fn paced(&self, load: &PacedText) -> Result<(Values, bool)> {
        let Self { stage, contestant, turn } = *self;
        let address = contestant.server.address;
        let connect = |duration| {
            let settings = LoadSettings {
                connections: load.connections,
                requests_per_second: Some(load.requests_per_second),
                sleep: true,
                ..LoadSettings::new(address, duration)
            };
            Load::connect(&settings, stage.site.requests(&load.ask, 0)?)
        };
        // The first request for each file is not measured.
        connect(LEAD)?.run()?.judged()?;
        let alone = connect(turn.duration / 2)?.run()?.judged()?;
        let mut values = Values::new();
        let alone_p99_us = alone.latencies.us(0.99);
        let report = match &load.beside {
            None => {
                let watch = Watch::begin(*self)?;
                let report = connect(turn.duration)?.run()?.judged()?;
                watch.end()?.tell(&mut values, report.answered(), report.span);
                report
            }
            Some(beside) => self.with_another(beside, connect(turn.duration)?)?,
        };
        values.extend(of_report(&report));
        // A CPU that is taken away shows in the latency without others waiting, too.
        Ok((values, alone_p99_us > ALONE_P99_US_MAX))
    }

    fn with_another(&self, beside: &Beside, mut load: Load) -> Result<LoadReport> {
        let Self { stage, contestant, turn } = *self;
        let settings = LoadSettings {
            connections: beside.connections,
            sleep: true,
            ..LoadSettings::new(contestant.server.address, turn.duration + LEAD)
        };
        let mut other = Load::connect(&settings, stage.site.requests(&beside.ask, turn.number)?)?;
        let (other, report) = thread::scope(|scope| {
            let other = scope.spawn(move || other.run());
            thread::sleep(LEAD);
            let report = load.run();
            (other.join(), report)
        });
        let other = other.map_err(|_| anyhow!("the load beside has failed"))?;
        other?.judged().context("the load beside")?;
        Ok(report?.judged()?)
    }

    /// A load that another program makes.
    pub(super) fn by_program(&self, load: &LoadText) -> Result<(Values, bool)> {
        let watch = Watch::begin(*self)?;
        let made = programs::load(load, &self.contestant.server, &self.stage.certificate, self.turn)?;
        let used = watch.end()?;
        let Made { requests, bytes, elapsed, client_cpu, idle_bytes } = made;
        let seconds = elapsed.as_secs_f64();
        let mut values = Values::from([
            (Quantity::Rate, requests as f64 / seconds),
            (Quantity::Megabytes, bytes as f64 / 1e6 / seconds),
            (Quantity::ClientCpus, client_cpu.as_secs_f64() / seconds),
        ]);
        values.extend(idle_bytes.map(|bytes| (Quantity::IdleBytes, bytes)));
        used.tell(&mut values, requests, elapsed);
        Ok((values, used.foreign(elapsed) > FOREIGN_MAX))
    }
}

pub(super) fn of_report(report: &LoadReport) -> Values {
    [
        (Quantity::Rate, report.rate()),
        (Quantity::Megabytes, report.megabytes_per_second()),
        (Quantity::ClientCpus, report.client_utilisation()),
        (Quantity::P50Us, report.latencies.us(0.5)),
        (Quantity::P99Us, report.latencies.us(0.99)),
        (Quantity::MaxUs, report.latencies.us(1.0)),
        (Quantity::BodyBytes, report.bytes as f64 / report.requests.max(1) as f64),
    ]
    .into()
}

/// Clocks, read when a load begins: CPU time of the contender's processes, how busy its CPUs are, what a cluster has done.
pub(super) struct Watch<'a> {
    attempt: Attempt<'a>,
    processes: Vec<i32>,
    cpu: Duration,
    ticks: CpuTicks,
    cluster: Option<Ledger>,
    meters: Meters,
}

/// What was used between the two readings.
pub(super) struct Used<'a> {
    attempt: Attempt<'a>,
    cpu: Duration,
    /// How many of the server's CPUs were in use, by any process, on average.
    cpus_busy: f64,
    cluster: Option<Ledger>,
    readings: Vec<Reading>,
}

impl<'a> Watch<'a> {
    pub(super) fn begin(attempt: Attempt<'a>) -> Result<Self> {
        let Attempt { stage, contestant, .. } = attempt;
        let watched = contestant.watched();
        Ok(Self {
            // First, and read last: what it costs to begin belongs to no contender.
            meters: Meters::begin(&contestant.meters, &watched),
            attempt,
            cluster: contestant.cluster.as_ref().map(Cluster::ledger).transpose()?,
            ticks: CpuTicks::of(&stage.machine.server_cpus)?,
            cpu: cpu_time(&watched.processes),
            processes: watched.processes,
        })
    }

    pub(super) fn end(self) -> Result<Used<'a>> {
        let Attempt { stage, contestant, .. } = self.attempt;
        let cluster = contestant.cluster.as_ref().zip(self.cluster);
        let cluster = cluster.map(|(cluster, before)| anyhow::Ok(cluster.ledger()?.since(&before)));
        Ok(Used {
            cluster: cluster.transpose()?,
            attempt: self.attempt,
            cpu: cpu_time(&self.processes).saturating_sub(self.cpu),
            cpus_busy: CpuTicks::of(&stage.machine.server_cpus)?.busy_since(self.ticks),
            readings: self.meters.end(&contestant.watched()),
        })
    }
}

impl Used<'_> {
    pub(super) fn tell(&self, values: &mut Values, requests: u64, span: Duration) {
        let cpu_us = self.cpu.as_secs_f64() * 1e6 / requests.max(1) as f64;
        values.insert(Quantity::CpuUs, cpu_us);
        self.attempt.stage.not_here.or_tell(&self.readings, requests, span, values);
        let share = |name| values.get(&name).copied();
        let copies = share(Quantity::KernelCopyShare).zip(share(Quantity::UserCopyShare));
        if let Some((kernel, user)) = copies {
            values.insert(Quantity::CopyUs, (kernel + user) / 100.0 * cpu_us);
        }
    }

    /// The same for a load, with what a cluster has done for it.
    pub(super) fn tell_of(&self, report: &LoadReport, values: &mut Values) {
        self.tell(values, report.answered(), report.span);
        if let Some((cluster, done)) = self.attempt.contestant.cluster.as_ref().zip(self.cluster.as_ref()) {
            cluster.tell(done, self.cpu, report, values);
        }
    }

    /// How many of the server's CPUs other processes used, and a hypervisor.
    fn foreign(&self, span: Duration) -> f64 {
        self.cpus_busy - self.cpu.as_secs_f64() / span.as_secs_f64()
    }
}

/// Load before a measurement, to reach a steady state.
const LEAD: Duration = Duration::from_millis(300);
/// So much of the server's CPU may be used by others; the ticks of `/proc/stat` are no finer.
const FOREIGN_MAX: f64 = 0.06;
/// The disk leaves the CPU idle most of the time.
const FOREIGN_BESIDE_DISK_MAX: f64 = 0.6;
/// A spinning client uses all of its CPU, unless another process takes it.
const SPINNING_CLIENT_MIN: f64 = 0.93;
/// Resident files of an idle server take a fraction of a millisecond.
const ALONE_P99_US_MAX: f64 = 5_000.0;
