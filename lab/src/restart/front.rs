//! The server whose cache is filled, killed and started again.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::rig::processes;

pub(super) struct Front {
    child: Child,
    program: PathBuf,
    control: PathBuf,
    /// When it was started.
    pub(super) started: Instant,
}

impl Front {
    /// Starts it; it may not listen yet.
    pub(super) fn start(program: &Path, folder: &Path, configuration: &str) -> Result<Self> {
        let (file, control) = (folder.join("baton.toml"), folder.join("control"));
        fs::write(&file, configuration)?;
        let output = File::create(folder.join("output"))?;
        let started = Instant::now();
        // A server that outlived a killed lab would spoil the next measurement.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(program).arg("run").arg("--config").arg(&file);
        let child = command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn();
        let child = child.with_context(|| program.display().to_string())?;
        Ok(Self { child, program: program.to_owned(), control, started })
    }

    /// Waits until it accepts connections.
    pub(super) fn wait_until_it_listens(&mut self, address: SocketAddr) -> Result<()> {
        self.wait("it listens", || TcpStream::connect(address).is_ok())
    }

    /// Waits for values of its status. It is renewed once a second.
    pub(super) fn wait_for_disk(&mut self, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Value::Null;
        let (program, control) = (self.program.clone(), self.control.clone());
        self.wait("the cache is ready", || {
            last = cache_status(&program, &control).unwrap_or_default();
            last["disk"].is_object() && is_so(&last["disk"])
        })?;
        Ok(last)
    }

    fn wait(&mut self, what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
        while !is_so() {
            if let Some(status) = self.child.try_wait()? {
                bail!("{} has ended: {status}; see its output", self.program.display());
            }
            ensure!(self.started.elapsed() < PATIENCE, "waited in vain until {what}");
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Ends all of its processes at once, as a crash does.
    pub(super) fn kill(mut self) {
        self.kill_all();
    }

    fn kill_all(&mut self) {
        for pid in processes::tree(self.child.id() as i32) {
            let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, Signal::KILL));
        }
        let _ = self.child.wait();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.kill_all();
    }
}

/// The status of the cache in the first loop: all share one.
fn cache_status(program: &Path, control: &Path) -> Option<Value> {
    let mut command = Command::new(program);
    command.args(["ctl", "--json", "status", "--control"]).arg(control);
    let output = command.stderr(Stdio::null()).output().ok()?;
    let status: Value = serde_json::from_slice(&output.stdout).ok()?;
    with_disk(&status).cloned()
}

/// The first `shared_cache` that has a disk, wherever it is: counters of sites have the same name.
fn with_disk(value: &Value) -> Option<&Value> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("shared_cache").filter(|cache| cache["disk"].is_object());
            own.or_else(|| fields.values().find_map(with_disk))
        }
        Value::Array(values) => values.iter().find_map(with_disk),
        _ => None,
    }
}

const PATIENCE: Duration = Duration::from_secs(600);
