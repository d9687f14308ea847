//! The machine made ready: two CPUs, a network of our own, descriptors, priority.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use rustix::process::{Resource, Rlimit, getrlimit, getuid, nice, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Whether the network is one of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A private network namespace when we are root: no firewall rules, no other traffic, our own settings.
    WhenRoot,
    /// The network as it is.
    None,
}

/// The machine of the measurements.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) server_cpu: usize,
    pub(crate) client_cpu: usize,
    /// Descriptors that one process may have.
    pub(crate) descriptors: u64,
    isolated: bool,
}

impl Machine {
    /// Changes this process, and thereby all that it starts: call it while there is only one thread.
    pub(crate) fn prepare(isolation: Isolation) -> Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
        let (Some(server_cpu), Some(client_cpu)) = (cpus.next(), cpus.next()) else {
            anyhow::bail!("a comparison needs two CPUs: one for the server, one for the client");
        };
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })?;
        let root = getuid().is_root();
        let isolated = root && isolation == Isolation::WhenRoot;
        if isolated {
            private_network().context("a private network namespace (--shared-network does without)")?;
        }
        if root {
            // Above other processes; both settings, as schedulers with autogroups ignore the first.
            let _ = nice(PRIORITY);
            favour("self");
        }
        let machine =
            Self { server_cpu, client_cpu, descriptors: limit.maximum.unwrap_or(1 << 20), isolated };
        machine.run_on(client_cpu)?;
        Ok(machine)
    }

    /// Binds this process, and its later children, to one CPU.
    pub(crate) fn run_on(&self, cpu: usize) -> Result<()> {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).with_context(|| format!("binding to CPU {cpu}"))
    }

    /// Raises the priority of processes that have begun a session of their own, like servers and php-fpm's master,
    /// and so left ours.
    pub(crate) fn favour(&self, processes: &[i32]) {
        if getuid().is_root() {
            processes.iter().for_each(|pid| favour(&pid.to_string()));
        }
    }

    /// Whether the network is one of our own.
    pub(crate) fn is_isolated(&self) -> bool {
        self.isolated
    }

    /// One line for the head of the tables.
    pub(crate) fn description(&self) -> String {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let cpu_info = text("/proc/cpuinfo");
        let model = cpu_info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
        format!(
            "{}, Linux {}, {}, server on CPU {}, client on CPU {}, {}",
            model.unwrap_or("unknown CPU"),
            text("/proc/sys/kernel/osrelease").trim(),
            text("/proc/sys/net/ipv4/tcp_congestion_control").trim(),
            self.server_cpu,
            self.client_cpu,
            if self.isolated { "private network namespace" } else { "shared network namespace" },
        )
    }
}

/// Sets the priority of a process's session, where the scheduler has one for sessions.
fn favour(process: &str) {
    let _ = fs::write(format!("/proc/{process}/autogroup"), PRIORITY.to_string());
}

/// Priority of the measured processes and of the lab.
const PRIORITY: i32 = -15;

/// A network namespace with nothing in it but a loopback device, set for many short connections.
fn private_network() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET)?;
    let status =
        Command::new("ip").args(["link", "set", "lo", "up"]).status().context("ip (package iproute2)")?;
    ensure!(status.success(), "ip link set lo up: {status}");
    for (name, value) in [
        ("ipv4/tcp_tw_reuse", "1"),
        ("ipv4/ip_local_port_range", "10100 65000"),
        ("ipv4/tcp_max_syn_backlog", "8192"),
        ("core/somaxconn", "4096"),
    ] {
        fs::write(format!("/proc/sys/net/{name}"), value).with_context(|| format!("setting net/{name}"))?;
    }
    Ok(())
}

/// Ticks of the clock that a CPU was busy, and that it was there at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CpuTicks {
    busy: u64,
    all: u64,
}

impl CpuTicks {
    /// The account of one CPU so far.
    pub(crate) fn of(cpu: usize) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat")?;
        Self::parse(&text, cpu).with_context(|| format!("no CPU {cpu} in /proc/stat"))
    }

    fn parse(text: &str, cpu: usize) -> Option<Self> {
        let name = format!("cpu{cpu} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&name))?;
        let ticks: Vec<u64> = line.split_ascii_whitespace().map_while(|field| field.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest time is part of user time.
        let all: u64 = ticks.iter().take(8).sum();
        Some(Self { busy: all - ticks.get(3)? - ticks.get(4)?, all })
    }

    /// The busy share since `earlier`.
    pub(crate) fn busy_since(self, earlier: Self) -> f64 {
        (self.busy - earlier.busy) as f64 / (self.all - earlier.all).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_share_is_what_was_neither_idle_nor_waiting() {
        let text = |user, idle| {
            format!(
                "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 {user} 0 10 {idle} 5 0 5 0 7 0\n"
            )
        };
        let before = CpuTicks::parse(&text(100, 1000), 1).unwrap();
        let after = CpuTicks::parse(&text(130, 1010), 1).unwrap();
        assert!((after.busy_since(before) - 0.75).abs() < 1e-9);
        assert!(CpuTicks::parse(&text(1, 1), 2).is_none());
    }
}
