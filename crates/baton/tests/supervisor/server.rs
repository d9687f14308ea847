//! A server under test.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long something that must happen is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder with a site and a configuration.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    /// With `site/index.html`, readable by the user that workers run as.
    pub(crate) fn new() -> Self {
        let folder = Self { dir: tempfile::tempdir().expect("folder") };
        fs::set_permissions(folder.path(""), Permissions::from_mode(0o755)).expect("permissions");
        folder.write("site/index.html", b"first");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("in the folder")).expect("folder");
        fs::write(path, contents).expect("write");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes the configuration: a site at `listen` with `root`, and whatever else a test needs.
    pub(crate) fn configure(&self, listen: &str, root: &str, rest: &str) {
        let text = format!(
            "[[site]]\nlisten = [{listen}]\nroot = \"{root}\"\n\n[server]\ncontrol_socket = \"control.sock\"\n{rest}\n"
        );
        self.write("baton.toml", text.as_bytes());
    }

    /// The command that runs the configuration.
    pub(crate) fn command(&self) -> Command {
        let mut command = baton();
        command.args(["run", "-c"]).arg(self.path("baton.toml"));
        command
    }

    /// Runs a server that is not to come to serve.
    pub(crate) fn run_in_vain(&self) -> Output {
        self.command().output().expect("run")
    }
}

pub(crate) fn baton() -> Command {
    Command::new(env!("CARGO_BIN_EXE_baton"))
}

/// A running server.
pub(crate) struct Server {
    pub(crate) folder: Folder,
    child: Child,
    said: Arc<Mutex<String>>,
}

pub(crate) const ANY_PORT: &str = "\"127.0.0.1:0\"";

impl Server {
    /// Starts a server on any port that serves `site`, configured as `rest` says, which continues `[server]`.
    pub(crate) fn start(rest: &str) -> Self {
        let folder = Folder::new();
        folder.configure(ANY_PORT, "site", rest);
        Self::start_in(folder)
    }

    /// Starts what the folder's configuration says, and waits until it serves.
    pub(crate) fn start_in(folder: Folder) -> Self {
        let command = folder.command();
        Self::start_with(folder, command)
    }

    /// The same with a command of the test's own.
    pub(crate) fn start_with(folder: Folder, mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("start");
        let said = Arc::new(Mutex::new(String::new()));
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let into = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *into.lock().expect("not poisoned") += &(line + "\n");
            }
        });
        let server = Self { folder, child, said };
        server.wait_until("the server says that it serves", || server.said().contains("control socket:"));
        server
    }

    /// What it has said so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("not poisoned").clone()
    }

    /// Waits for something that must happen.
    pub(crate) fn wait_until(&self, what: &str, happened: impl Fn() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !happened() {
            assert!(Instant::now() < until, "in vain until {what}; the server said:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The n-th address in what it said when it began.
    fn announced(&self, n: usize) -> SocketAddr {
        let said = self.said();
        let url = said
            .split_whitespace()
            .filter_map(|word| word.strip_prefix("http://"))
            .nth(n)
            .expect("an address");
        url.split('/').next().and_then(|address| address.parse().ok()).expect("an address")
    }

    /// Where its first site is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.announced(0)
    }

    /// Where its admin listener is, after one site.
    pub(crate) fn admin_address(&self) -> SocketAddr {
        self.announced(1)
    }

    pub(crate) fn control_socket(&self) -> PathBuf {
        self.folder.path("control.sock")
    }

    /// Runs `baton ctl`.
    pub(crate) fn ctl(&self, command: &[&str]) -> Output {
        ctl(&self.control_socket(), command)
    }

    /// Runs `baton ctl` for something that must work, and returns what it prints.
    pub(crate) fn ctl_ok(&self, command: &[&str]) -> String {
        let output = self.ctl(command);
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.ctl_ok(&["status", "--json"])).expect("JSON")
    }

    /// The processes of its workers that serve.
    pub(crate) fn workers(&self) -> Vec<i32> {
        let status = self.status();
        let workers = status["workers"].as_array().expect("workers").iter();
        workers
            .filter(|worker| worker["serves"] == true)
            .filter_map(|worker| worker["pid"].as_i64())
            .map(|pid| pid as i32)
            .collect()
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send_signal(self.pid(), signal);
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status;
            }
            assert!(Instant::now() < until, "the server does not end; it said:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its workers follow it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn ctl(socket: &Path, command: &[&str]) -> Output {
    baton().arg("ctl").args(command).arg("--control").arg(socket).output().expect("run")
}

pub(crate) fn send_signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a pid"), signal).expect("signal");
}

/// Whether a process runs: it is there, and no zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}
