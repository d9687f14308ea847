//! The servers that take part, and one of them running.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getuid, kill_process};

use super::machine::Machine;
use super::processes;
use super::workload::Workload;
use super::{BenchSettings, loopback};

/// A server as it takes part: which program with which arguments, and whether it logs.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// As in the tables: `nginx`, `baton auto`, `nginx +log`.
    pub(super) name: String,
    kind: Kind,
    log: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Baton { program: PathBuf, architecture: String },
    Other(&'static Other),
}

/// A server of the distribution. In arguments and configuration `@PORT@`, `@ROOT@`, `@RUN@`, `@USER@`, `@ACCESS_LOG@`
/// and `@DESCRIPTORS@` are replaced.
#[derive(Debug)]
struct Other {
    name: &'static str,
    arguments: &'static [&'static str],
    configuration: &'static str,
    logs: bool,
}

/// The others that are known, the reference first.
static OTHERS: [Other; 4] = [
    Other {
        name: "nginx",
        arguments: &["-c", "@RUN@/conf", "-p", "@RUN@"],
        configuration: include_str!("../../conf/nginx.conf"),
        logs: true,
    },
    Other {
        name: "lighttpd",
        arguments: &["-D", "-f", "@RUN@/conf"],
        configuration: include_str!("../../conf/lighttpd.conf"),
        logs: false,
    },
    Other {
        name: "h2o",
        arguments: &["-m", "worker", "-c", "@RUN@/conf"],
        configuration: include_str!("../../conf/h2o.conf"),
        logs: false,
    },
    Other {
        name: "apache2",
        arguments: &["-DFOREGROUND", "-f", "@RUN@/conf"],
        configuration: include_str!("../../conf/apache.conf"),
        logs: false,
    },
];

/// Who takes part in this workload, the reference (the first of the others) first.
pub(super) fn entries(settings: &BenchSettings, workload: Workload) -> Vec<Entry> {
    let others = OTHERS.iter().filter(|other| settings.others.iter().any(|name| name == other.name));
    let kinds = others.map(|other| (other.name.to_owned(), Kind::Other(other), other.logs)).chain(
        settings.architectures.iter().map(|architecture| {
            let kind = Kind::Baton { program: settings.baton.clone(), architecture: architecture.clone() };
            (format!("baton {architecture}"), kind, true)
        }),
    );
    let mut entries = Vec::new();
    for (name, kind, logs) in kinds {
        if workload != Workload::Log {
            entries.push(Entry { name, kind, log: false });
        } else if logs {
            entries.push(Entry { name: name.clone(), kind: kind.clone(), log: false });
            entries.push(Entry { name: format!("{name} +log"), kind, log: true });
        }
    }
    entries
}

/// A server that runs on the server's CPU. It is stopped when this is dropped.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) name: String,
    pub(super) port: u16,
    child: Child,
}

impl Running {
    /// Starts a server and waits until it listens.
    pub(super) fn start(entry: &Entry, machine: &Machine, folder: &Path, root: &Path) -> Result<Self> {
        let port = TcpListener::bind(loopback(0))?.local_addr()?.port();
        let run = folder.join(entry.name.replace(' ', "-"));
        fs::create_dir_all(&run).with_context(|| run.display().to_string())?;
        let (program, arguments) = entry.command(machine, &run, root, port)?;
        let output = File::create(run.join("output")).context("creating its output file")?;
        // The affinity and the priority of this process are inherited; a server that outlived a killed lab would spoil
        // the next measurement.
        machine.run_on(machine.server_cpu)?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--"])
            .arg(program)
            .args(arguments)
            .env("PATH", search_path())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn();
        machine.run_on(machine.client_cpu)?;
        let mut running =
            Self { name: entry.name.clone(), port, child: child.context("setpriv (package util-linux)")? };
        running.wait_until_it_listens().with_context(|| format!("see {}", run.join("output").display()))?;
        Ok(running)
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let limit = Instant::now() + START_MAX;
        while TcpStream::connect(loopback(self.port)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended: {status}");
            }
            if Instant::now() > limit {
                bail!("it does not listen on port {}", self.port);
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its processes.
    pub(super) fn processes(&self) -> Vec<i32> {
        processes::tree(self.child.id() as i32)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let processes = self.processes();
        let signal = |pid: i32, signal| Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
        signal(self.child.id() as i32, Signal::TERM);
        let limit = Instant::now() + STOP_MAX;
        while Instant::now() < limit && matches!(self.child.try_wait(), Ok(None)) {
            sleep(Duration::from_millis(20));
        }
        for pid in processes.into_iter().rev() {
            signal(pid, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

impl Entry {
    /// Program and arguments; writes the configuration where one is needed.
    fn command(
        &self,
        machine: &Machine,
        run: &Path,
        root: &Path,
        port: u16,
    ) -> Result<(PathBuf, Vec<String>)> {
        let log_file = run.join("access.log");
        match &self.kind {
            Kind::Baton { program, architecture } => {
                let mut arguments = vec!["serve".to_owned(), root.display().to_string()];
                arguments.extend(["--listen".to_owned(), loopback(port).to_string()]);
                arguments.extend(["--workers", "1", "--architecture", architecture].map(str::to_owned));
                if self.log {
                    arguments.push(format!("--access-log={}", log_file.display()));
                }
                let program = program.canonicalize().with_context(|| program.display().to_string())?;
                Ok((program, arguments))
            }
            Kind::Other(other) => {
                let program = find_program(other.name).context("it is not installed")?;
                let access_log = match self.log {
                    true => format!("{} combined buffer=64k flush=1s", log_file.display()),
                    false => "off".to_owned(),
                };
                let replace = |text: &str| {
                    text.replace("@PORT@", &port.to_string())
                        .replace("@ROOT@", &root.display().to_string())
                        .replace("@RUN@", &run.display().to_string())
                        .replace("@USER@", if getuid().is_root() { "root" } else { "nobody" })
                        .replace("@ACCESS_LOG@", &access_log)
                        .replace("@DESCRIPTORS@", &machine.descriptors.min(DESCRIPTORS_MAX).to_string())
                };
                fs::write(run.join("conf"), replace(other.configuration))?;
                Ok((program, other.arguments.iter().map(|argument| replace(argument)).collect()))
            }
        }
    }
}

/// Where programs are looked for: servers live in folders that are not in every user's path.
fn search_path() -> String {
    format!("{}:/usr/local/sbin:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default())
}

fn find_program(name: &str) -> Option<PathBuf> {
    search_path().split(':').map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

const START_MAX: Duration = Duration::from_secs(5);
const STOP_MAX: Duration = Duration::from_secs(3);
/// Some servers allocate a table for every descriptor that they might get.
const DESCRIPTORS_MAX: u64 = 19_900;
