//! A server that runs: started, signalled, replaced, and gone when its value is.

use std::fs::{self, File, Permissions};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::configuration::{CommandLine, socket};
use super::kind::{ListensOn, ServerKind};
use super::settings::{ServerPlace, ServerSettings};
use crate::rig::{allowed_cpus, favour, loopback, output_of, processes, search_path};

/// A server that runs. It is stopped when this is dropped.
#[derive(Debug)]
pub struct RunningServer {
    /// The name of its kind.
    pub name: String,
    /// Where it listens, unless its kind listens on a socket.
    pub address: SocketAddr,
    /// Where it listens, if its kind listens on a socket.
    pub socket: PathBuf,
    /// Its output, its configuration and its log.
    pub folder: PathBuf,
    /// The control groups that it is in.
    pub groups: Vec<PathBuf>,
    /// The CPUs that it may use.
    pub cpus: Vec<usize>,
    program: PathBuf,
    /// One, or the processes that share a socket on their standard input.
    children: Vec<Child>,
    /// Processes of the server before it, which live on.
    outlived: Vec<i32>,
}

impl ServerKind {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// If it is not installed, cannot do what is wanted, or does not start: with the end of its own output.
    pub fn start(&self, settings: &ServerSettings, place: &ServerPlace<'_>) -> Result<RunningServer> {
        let folder = &place.folder;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let address = match place.address {
            Some(address) => address,
            None => TcpListener::bind(loopback(0))?.local_addr()?,
        };
        let line = CommandLine::render(self, settings, place, address)?;
        let socket = socket(folder);
        // One of an earlier run may be there.
        let _ = fs::remove_file(&socket);
        let output = File::create(folder.join(OUTPUT)).context("creating its output file")?;
        let mut server = RunningServer {
            name: self.name.clone(),
            address,
            socket,
            folder: folder.clone(),
            groups: place.groups.clone(),
            cpus: if place.cpus.is_empty() { allowed_cpus()? } else { place.cpus.clone() },
            program: line.program.clone(),
            children: Vec::new(),
            outlived: Vec::new(),
        };
        let shared = match self.listens {
            ListensOn::StandardInput => Some(listen(&server.socket)?),
            ListensOn::Address | ListensOn::Socket => None,
        };
        for _ in 0..line.processes {
            let stdin = match &shared {
                Some(listener) => Stdio::from(listener.try_clone()?),
                None => Stdio::null(),
            };
            let mut command = command(&line, place);
            command.stdin(stdin).stdout(output.try_clone()?).stderr(output.try_clone()?);
            server.children.push(command.spawn().context("sh")?);
        }
        let listens = || match self.listens {
            ListensOn::Address => TcpStream::connect(address).is_ok(),
            ListensOn::Socket | ListensOn::StandardInput => UnixStream::connect(&server.socket).is_ok(),
        };
        let listens = || place.host.map_or_else(listens, |host| host.run(listens));
        wait_until(listens, &mut server.children)
            .with_context(|| format!("{}: {}", self.name, end_of(&folder.join(OUTPUT))))?;
        server.processes().into_iter().for_each(favour);
        Ok(server)
    }
}

impl RunningServer {
    /// Its processes, children included.
    pub fn processes(&self) -> Vec<i32> {
        let mut processes: Vec<i32> =
            self.children.iter().flat_map(|child| processes::tree(child.id() as i32)).collect();
        processes.extend(&self.outlived);
        processes
    }

    /// The process that it began with.
    pub fn pid(&self) -> u32 {
        self.children.first().map_or(0, Child::id)
    }

    /// Asks the master of a Baton; returns what it says.
    ///
    /// # Errors
    /// What `baton ctl` says.
    pub fn control(&self, words: &[&str]) -> Result<Vec<u8>> {
        let mut command = Command::new(&self.program);
        command.args(["ctl", "--control"]).arg(self.folder.join("control")).args(words);
        output_of(&mut command).with_context(|| format!("baton ctl {}", words.join(" ")))
    }

    /// Stops its clock: no process of it runs until [`resume`](Self::resume).
    pub fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    /// Kills its processes, which get no time to end.
    pub fn kill(&self) {
        self.signal_all(Signal::KILL);
    }

    /// The worker of a server that has one: a child of the first process, with its command line.
    pub fn worker(&self) -> Option<i32> {
        let command = |pid: i32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let first = command(self.pid() as i32);
        self.processes().into_iter().skip(1).filter(|pid| command(*pid) == first).max()
    }

    /// Kills that worker.
    pub fn kill_worker(&self) {
        if let Some(pid) = self.worker() {
            signal(pid, Signal::KILL);
        }
    }

    /// Ends its first process, as a service manager does, and puts another server in its place.
    ///
    /// Processes that outlive theirs, as a handoff agent does, end with that one.
    ///
    /// # Errors
    /// If the next one does not start.
    pub fn restart(&mut self, start: impl FnOnce() -> Result<Self>) -> Result<()> {
        let processes = self.processes();
        self.end();
        let mut next = start()?;
        next.outlived = processes;
        next.outlived.retain(|pid| Path::new(&format!("/proc/{pid}")).exists());
        *self = next;
        Ok(())
    }

    /// Asks its first processes to end, and waits.
    fn end(&mut self) {
        self.children.iter().for_each(|child| signal(child.id() as i32, Signal::TERM));
        let limit = Instant::now() + STOP_MAX;
        for child in &mut self.children {
            while Instant::now() < limit && matches!(child.try_wait(), Ok(None)) {
                sleep(POLL);
            }
        }
    }

    fn signal_all(&self, signalled: Signal) {
        self.processes().into_iter().for_each(|pid| signal(pid, signalled));
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.resume();
        let processes = self.processes();
        self.end();
        processes.into_iter().rev().for_each(|pid| signal(pid, Signal::KILL));
        for child in &mut self.children {
            let _ = child.wait();
        }
        let _ = fs::remove_file(&self.socket);
    }
}

/// The words in front of the program put it where it belongs.
///
/// The server has a session of its own, like a daemon: schedulers with autogroups share CPUs among sessions first. It
/// ends with the lab: a server that outlived a killed lab would spoil the next measurement.
fn command(line: &CommandLine, place: &ServerPlace<'_>) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", JOIN_AND_RUN, "sh", &place.groups.len().to_string()]).args(&place.groups);
    command.args(["setsid", "setpriv", "--pdeathsig", "TERM", "--"]);
    if !place.cpus.is_empty() {
        let list: Vec<_> = place.cpus.iter().map(ToString::to_string).collect();
        command.args(["taskset", "--cpu-list", &list.join(",")]);
    }
    match place.host {
        Some(host) => {
            let program = line.program.display().to_string();
            let entering = host.command(&program);
            command.arg(entering.get_program()).args(entering.get_args());
        }
        None => {
            command.arg(&line.program);
        }
    }
    command.args(&line.arguments).envs(line.environment.iter().cloned()).env("PATH", search_path());
    command
}

/// A listening socket that the server's workers may use, which may be another user's.
fn listen(socket: &Path) -> Result<OwnedFd> {
    let listener = UnixListener::bind(socket).with_context(|| socket.display().to_string())?;
    fs::set_permissions(socket, Permissions::from_mode(0o666))?;
    Ok(OwnedFd::from(listener))
}

fn wait_until(listens: impl Fn() -> bool, children: &mut [Child]) -> Result<()> {
    let limit = Instant::now() + START_MAX;
    while !listens() {
        ended(children)?;
        if Instant::now() > limit {
            bail!("it does not listen after {} s", START_MAX.as_secs());
        }
        sleep(POLL);
    }
    ended(children)
}

/// An error if a process has ended.
fn ended(children: &mut [Child]) -> Result<()> {
    for child in children {
        if let Some(status) = child.try_wait()? {
            bail!("it ended: {status}");
        }
    }
    Ok(())
}

/// The last lines that a server wrote, for the error that it did not start.
fn end_of(output: &Path) -> String {
    let text = fs::read(output).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(OUTPUT_LINES)..];
    format!("{}\n(from {})", last.join("\n"), output.display())
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Shell: enters so many control groups, then becomes the command, which is in them from its first page on.
const JOIN_AND_RUN: &str = r#"n=$1; shift
while [ "$n" -gt 0 ]; do echo $$ >"$1/cgroup.procs" || exit 1; shift; n=$((n - 1)); done
exec "$@""#;
const OUTPUT: &str = "output";
/// Enough for the mistake in a configuration and what surrounds it.
const OUTPUT_LINES: usize = 8;
const START_MAX: Duration = Duration::from_secs(30);
const STOP_MAX: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);
