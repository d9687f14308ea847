//! A contender, and what it uses during a load: the CPU clocks of its processes, and how busy its CPUs are.

use std::time::Duration;

use anyhow::Result;

use crate::rig::processes::cpu_time;
use crate::rig::{Application, CpuTicks, Machine, Running};

/// A contending server, with its application if there is one.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) server: Running,
    pub(crate) application: Option<Application>,
}

/// Clocks, read when a load begins.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    machine: &'a Machine,
    server: Vec<i32>,
    application: Vec<i32>,
    ticks: CpuTicks,
    server_cpu: Duration,
    application_cpu: Duration,
}

/// What was used between the two readings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Used {
    /// CPU time of all processes of the server.
    pub(crate) server: Duration,
    /// CPU time of its application, if there is one.
    pub(crate) application: Duration,
    /// How many of the server's CPUs were in use, by any process, on average.
    pub(crate) cpu_busy: f64,
}

impl<'a> Meter<'a> {
    /// Reads the clocks of the processes that the contender has now.
    pub(crate) fn start(contender: &Contender, machine: &'a Machine) -> Result<Self> {
        let server = contender.server.processes();
        let application = contender.application.as_ref().map(Application::processes).unwrap_or_default();
        Ok(Self {
            machine,
            ticks: CpuTicks::of(&machine.server_cpus)?,
            server_cpu: cpu_time(&server),
            application_cpu: cpu_time(&application),
            server,
            application,
        })
    }

    /// Reads the clocks again.
    pub(crate) fn stop(self) -> Result<Used> {
        Ok(Used {
            server: cpu_time(&self.server).saturating_sub(self.server_cpu),
            application: cpu_time(&self.application).saturating_sub(self.application_cpu),
            cpu_busy: CpuTicks::of(&self.machine.server_cpus)?.busy_since(self.ticks),
        })
    }
}

impl Used {
    /// CPU time of server and application.
    pub(crate) fn all(&self) -> Duration {
        self.server + self.application
    }
}
