//! A real server process, started, awaited, and in any case killed with all its children.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::client::{Client, Response};
use super::folder::Folder;

/// Nothing that is waited for takes longer, unless it never comes, or only with the server's own limits: for the end of a
/// head, a body or a drain it waits 30 seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(25);

/// A running server and the folder that it serves.
pub(crate) struct Server {
    child: Child,
    addresses: Vec<SocketAddr>,
    said: Arc<Mutex<String>>,
    folder: Folder,
}

impl Server {
    /// `baton serve` on the document root, on a port that the kernel chooses.
    pub(crate) fn serve(folder: Folder, flags: &[&str]) -> Self {
        let root = folder.root();
        let control = control_socket(&folder);
        let mut command = Command::new(BATON);
        command
            .arg("serve")
            .arg(root)
            .args(["--listen", "127.0.0.1:0", "--control"])
            .arg(control)
            .args(flags);
        Self::start(folder, command)
    }

    /// `baton run` with this configuration, which begins within `[server]`. `{base}` and `{root}` are the folder and
    /// the document root. Sites should listen on `127.0.0.1:0`.
    pub(crate) fn run(folder: Folder, configuration: &str) -> Self {
        let file = folder.base().join("baton.toml");
        let text = format!("[server]\ncontrol_socket = \"{{base}}/control\"\n{configuration}\n");
        fs::write(&file, expand(&folder, &text)).expect("a configuration");
        let mut command = Command::new(BATON);
        command.arg("run").arg("--config").arg(file);
        Self::start(folder, command)
    }

    /// Runs the command, which makes a server of this package, until that serves.
    pub(crate) fn start(folder: Folder, mut command: Command) -> Self {
        command
            .process_group(folder.group())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let stderr = child.stderr.take().expect("standard error");
        let said = Arc::new(Mutex::new(String::new()));
        let (announce, announced) = mpsc::channel();
        let written = Arc::clone(&said);
        std::thread::spawn(move || listen(stderr, &written, &announce));
        let mut addresses = Vec::new();
        loop {
            match announced.recv_timeout(PATIENCE) {
                Ok(Announced::Address(address)) => addresses.push(address),
                Ok(Announced::All) => break,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("the server did not start:\n{}", said.lock().expect("its words"))
                }
            }
        }
        Self { child, addresses, said, folder }
    }

    /// The first address that it serves.
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses, those for monitoring last, in the order of the configuration.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The folder that it serves.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The master process.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// The worker processes: its children.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        let pid = self.child.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its children");
        let number = |word: &str| Pid::from_raw(word.parse().expect("a process")).expect("not 0");
        children.split_whitespace().map(number).collect()
    }

    /// Its standard error so far.
    pub(crate) fn said(&self) -> String {
        self.said.lock().expect("its words").clone()
    }

    /// Waits for a text on standard error, which may follow its event with a delay.
    pub(crate) fn wait_until_said(&self, text: &str) {
        wait_until(&format!("it says `{text}`"), || self.said().contains(text));
    }

    /// Sends the master process a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a signal");
    }

    /// Waits for its end, without a signal.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("its status") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The output of `baton ctl` for this server.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(BATON);
        command.args(["ctl", "--control"]).arg(control_socket(&self.folder)).args(arguments);
        let output = command.output().expect("baton ctl");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// A connection to the first address.
    pub(crate) fn connect(&self) -> Client {
        Client::connect(self.address())
    }

    /// Requests a path on a new connection.
    pub(crate) fn get(&self, path: &str) -> Response {
        self.connect().get(path)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the server had said:\n{}", self.said());
        }
    }
}

/// Waits for a condition that comes true soon.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

enum Announced {
    Address(SocketAddr),
    All,
}

/// Reads the server's standard error; its first lines contain its addresses.
fn listen(stderr: ChildStderr, said: &Mutex<String>, announce: &Sender<Announced>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let url = line.strip_prefix("  http://").or_else(|| line.strip_prefix("  https://"));
        let url = url.and_then(|rest| rest.split('/').next());
        // The receiver is gone once it serves.
        if let Some(address) = url.and_then(|address| address.parse().ok()) {
            let _ = announce.send(Announced::Address(address));
        } else if line.starts_with("  control socket: ") {
            let _ = announce.send(Announced::All);
        }
        if let Ok(mut said) = said.lock() {
            said.push_str(&line);
            said.push('\n');
        }
    }
}

/// Short, since the path of a socket has 107 bytes at most.
fn control_socket(folder: &Folder) -> PathBuf {
    folder.base().join("control")
}

fn expand(folder: &Folder, configuration: &str) -> String {
    let text = |path: &OsStr| path.to_str().expect("a path in UTF-8").to_owned();
    let (base, root) = (text(folder.base().as_os_str()), text(folder.root().as_os_str()));
    let configuration = configuration.replace("{base}", &base).replace("{root}", &root);
    if configuration.contains("{user}") { configuration.replace("{user}", &user()) } else { configuration }
}

/// The user of the tests.
fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("id");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

/// The server under test.
const BATON: &str = env!("CARGO_BIN_EXE_baton");
