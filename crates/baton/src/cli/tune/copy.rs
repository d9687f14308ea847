//! A copy of the server: on a port that the kernel chooses, with a control socket of its own, gone when it is dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// A folder for configurations and sockets of copies, which only this user can enter. It goes when it is dropped.
pub(super) struct Workshop {
    folder: PathBuf,
}

/// A running copy.
pub(super) struct ServerCopy {
    child: Child,
    pub(super) address: SocketAddr,
}

/// A server that needs longer to start or to end hangs.
const PATIENCE: Duration = Duration::from_secs(20);

impl Workshop {
    pub(super) fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("baton-tune-{}", std::process::id()));
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self { folder })
    }

    /// Where copies have their control socket.
    pub(super) fn control_socket(&self) -> String {
        self.folder.join("control").display().to_string()
    }

    /// Starts a copy with this configuration.
    ///
    /// # Errors
    /// What the server says when it does not start.
    pub(super) fn start(&self, configuration: &str) -> Result<ServerCopy, String> {
        let file = self.folder.join("baton.toml");
        let problem = |error: std::io::Error| format!("cannot start a copy: {error}");
        fs::write(&file, configuration).map_err(problem)?;
        let executable = std::env::current_exe().map_err(problem)?;
        ServerCopy::start(&executable, &file).map_err(|said| format!("a copy did not start: {said}"))
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // What stays behind is a file in the system's temporary folder.
        drop(fs::remove_dir_all(&self.folder));
    }
}

enum Said {
    /// It listens here.
    Address(SocketAddr),
    /// It serves.
    Serving,
    Line(String),
}

impl ServerCopy {
    fn start(executable: &Path, configuration: &Path) -> Result<Self, String> {
        // In a process group of its own: an interrupt on the terminal is for us, who end the copy.
        let mut command = Command::new(executable);
        command.process_group(0);
        command.arg("run").arg("--config").arg(configuration);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let (tell, said) = mpsc::channel();
        if let Some(stderr) = child.stderr.take() {
            std::thread::spawn(move || listen(stderr, &tell));
        }
        let mut copy = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let mut words = Vec::new();
        loop {
            match said.recv_timeout(PATIENCE) {
                Ok(Said::Address(address)) => copy.address = address,
                Ok(Said::Serving) => return Ok(copy),
                Ok(Said::Line(line)) => words.push(line),
                Err(_) => return Err(words.join("\n")),
            }
        }
    }

    /// Memory of master and workers, shared pages in proportion.
    pub(super) fn memory_mib(&self) -> f64 {
        let master = self.child.id();
        let workers =
            fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap_or_default();
        let processes = workers.split_whitespace().filter_map(|pid| pid.parse().ok()).chain([master]);
        processes.filter_map(proportional_kib).sum::<f64>() / 1024.0
    }
}

fn proportional_kib(pid: u32) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

impl Drop for ServerCopy {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Reads what the server says, to its end: a full pipe would block it.
fn listen(stderr: ChildStderr, tell: &Sender<Said>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        let address = line.strip_prefix("  http://").and_then(|rest| rest.split('/').next()?.parse().ok());
        let said = match address {
            Some(address) => Said::Address(address),
            None if line.starts_with("  control socket: ") => Said::Serving,
            None => Said::Line(line),
        };
        // The receiver is gone once the copy serves.
        drop(tell.send(said));
    }
}
