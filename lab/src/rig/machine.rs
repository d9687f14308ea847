//! The machine made ready: two CPUs, a network of our own, descriptors, priority.

use std::fs;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, nice, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity};

use super::network::FOR_LOAD;
use super::programs::{allowed_cpus, run};

/// Whose the network is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// That of the machine: we are not root.
    Shared,
    /// A private network namespace: no firewall rules, no other traffic, our own settings.
    Private,
    /// Servers run on hosts in network namespaces: see [`super::network`].
    Hosts,
}

/// The machine of the measurements.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) server_cpus: Vec<usize>,
    /// Other ones, or, where there are none, the same.
    pub(crate) client_cpus: Vec<usize>,
    pub(crate) isolation: Isolation,
}

impl Machine {
    /// With so many CPUs for the server, and perhaps hosts. Changes this process, and thereby all that it starts: call it while there is only
    /// one thread.
    pub(crate) fn prepare(has_hosts: bool, cpus: usize) -> Result<Self> {
        let mut server_cpus = allowed_cpus()?;
        ensure!(
            server_cpus.len() >= 2,
            "a comparison needs two CPUs: one for the server, one for the client"
        );
        ensure!((1..=server_cpus.len()).contains(&cpus), "there are {} CPUs, not {cpus}", server_cpus.len());
        let mut client_cpus = server_cpus.split_off(cpus);
        if client_cpus.is_empty() {
            client_cpus.clone_from(&server_cpus);
        }
        // One is enough for its one thread, and it does not move.
        client_cpus.truncate(if cpus == 1 { 1 } else { client_cpus.len() });
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
        let root = getuid().is_root();
        let isolation = match root {
            _ if has_hosts => Isolation::Hosts,
            true => Isolation::Private,
            false => Isolation::Shared,
        };
        if isolation == Isolation::Private {
            private_network().context("a private network namespace")?;
        }
        if root {
            // Above other processes; both settings, as schedulers with autogroups ignore the first.
            let _ = nice(PRIORITY);
            favour(std::process::id() as i32);
        }
        let machine = Self { server_cpus, client_cpus, isolation };
        machine.run_on(&machine.client_cpus)?;
        Ok(machine)
    }

    /// Binds this process, and its later children, to these CPUs.
    pub(crate) fn run_on(&self, cpus: &[usize]) -> Result<()> {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|&cpu| set.set(cpu));
        sched_setaffinity(None, &set).with_context(|| format!("binding to CPUs {cpus:?}"))
    }

    /// Whether the client takes CPU time from the server.
    pub(crate) fn has_client_beside_server(&self) -> bool {
        self.client_cpus == self.server_cpus
    }

    /// One line about the conditions.
    pub(crate) fn description(&self) -> String {
        format!(
            "{}, server on CPU {}, client on CPU {}, {}",
            platform(),
            list(&self.server_cpus),
            list(&self.client_cpus),
            match self.isolation {
                Isolation::Hosts => "each host in a network namespace",
                Isolation::Private => "private network namespace",
                Isolation::Shared => "shared network namespace",
            },
        )
    }
}

/// Processor and kernel.
pub(crate) fn platform() -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu_info = text("/proc/cpuinfo");
    let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    format!(
        "{}, Linux {}, {}",
        model.unwrap_or("unknown CPU"),
        text("/proc/sys/kernel/osrelease").trim(),
        text("/proc/sys/net/ipv4/tcp_congestion_control").trim()
    )
}

fn list(cpus: &[usize]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and ")
}

/// Sets the priority of a process's session, where the scheduler has one for sessions and we may.
pub(crate) fn favour(pid: i32) {
    let _ = fs::write(format!("/proc/{pid}/autogroup"), PRIORITY.to_string());
}

/// Priority of the measured processes and of the lab.
const PRIORITY: i32 = -15;

/// A network namespace with nothing in it but a loopback device, set for many short connections.
fn private_network() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    run("ip", &["link", "set", "lo", "up"])?;
    for (name, value) in FOR_LOAD.into_iter().chain([("ipv4/ip_local_port_range", "10100 65000")]) {
        fs::write(format!("/proc/sys/net/{name}"), value).with_context(|| format!("setting net/{name}"))?;
    }
    Ok(())
}

/// Ticks of the clock that CPUs were busy, and that they were there at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTicks {
    cpus: usize,
    busy: u64,
    all: u64,
}

impl CpuTicks {
    /// The account of these CPUs so far.
    pub(crate) fn of(cpus: &[usize]) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        let mut sum = Self { cpus: cpus.len(), busy: 0, all: 0 };
        for &cpu in cpus {
            let (busy, all) =
                Self::parse(&text, cpu).with_context(|| format!("no CPU {cpu} in /proc/stat"))?;
            sum.busy += busy;
            sum.all += all;
        }
        Ok(sum)
    }

    /// Ticks of one CPU: busy ones, and all.
    fn parse(text: &str, cpu: usize) -> Option<(u64, u64)> {
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user time.
        let all: u64 = ticks.iter().take(8).sum();
        Some((all - ticks.get(3)? - ticks.get(4)?, all))
    }

    /// How many CPUs were busy since `earlier`, on average.
    pub(crate) fn busy_since(self, earlier: Self) -> f64 {
        (self.busy - earlier.busy) as f64 / (self.all - earlier.all).max(1) as f64 * self.cpus as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_was_neither_idle_nor_waiting() {
        let text = |user, idle| {
            format!(
                "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 {user} 0 10 {idle} 5 0 5 0 7 0\n"
            )
        };
        let ticks = |text: &str| {
            let (busy, all) = CpuTicks::parse(text, 1).unwrap();
            CpuTicks { cpus: 2, busy, all }
        };
        let (before, after) = (ticks(&text(100, 1000)), ticks(&text(130, 1010)));
        assert!((after.busy_since(before) - 1.5).abs() < 1e-9, "three quarters of two CPUs");
        assert!(CpuTicks::parse(&text(1, 1), 2).is_none());
    }
}
