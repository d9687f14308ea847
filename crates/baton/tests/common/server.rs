//! A real server process, started, awaited, and in any case killed with all its children.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_master::control;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::agent::Agent;
use super::certificate;
use super::client::{Client, Response};
use super::folder::Folder;
use super::protocol::Protocol;

/// Nothing that is waited for takes longer, unless it never comes, or only with the server's own limits: for the end of a
/// head, a body or a drain it waits 30 seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(25);

/// A running server and the folder that it serves, as clients of one protocol see them.
pub(crate) struct Server {
    process: Arc<Process>,
    protocol: Protocol,
}

struct Process {
    child: Mutex<Child>,
    pid: Pid,
    addresses: Vec<SocketAddr>,
    /// The first of them where it speaks TLS.
    secure: Option<SocketAddr>,
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
    /// the document root. Sites should listen on `127.0.0.1:0`; `{listen}` stands for the settings of a site that listens
    /// there in clear and, on another address, over TLS.
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
        let mut secure = None;
        loop {
            match announced.recv_timeout(PATIENCE) {
                Ok(Announced::Clear(address)) => addresses.push(address),
                Ok(Announced::Secure(address)) => {
                    secure = secure.or(Some(address));
                    addresses.push(address);
                }
                Ok(Announced::All) => break,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("the server did not start:\n{}", said.lock().expect("its words"))
                }
            }
        }
        let pid = Pid::from_child(&child);
        let process = Process { child: Mutex::new(child), pid, addresses, secure, said, folder };
        Self { process: Arc::new(process), protocol: Protocol::Http }
    }

    /// The same server as clients of this protocol see it.
    pub(crate) fn over(&self, protocol: Protocol) -> Self {
        Self { process: Arc::clone(&self.process), protocol }
    }

    /// What its clients speak.
    pub(crate) fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The first address where it speaks the protocol.
    pub(crate) fn address(&self) -> SocketAddr {
        let secure = self.process.secure.filter(|_| self.protocol.is_secure());
        secure.unwrap_or(self.process.addresses[0])
    }

    /// All addresses, those for monitoring last, in the order of the configuration.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.process.addresses
    }

    /// The folder that it serves.
    pub(crate) fn folder(&self) -> &Folder {
        &self.process.folder
    }

    /// The master process.
    pub(crate) fn pid(&self) -> Pid {
        self.process.pid
    }

    /// The worker processes: its children.
    pub(crate) fn workers(&self) -> Vec<Pid> {
        let pid = self.pid().as_raw_nonzero();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("its children");
        let number = |word: &str| Pid::from_raw(word.parse().expect("a process")).expect("not 0");
        children.split_whitespace().map(number).collect()
    }

    /// Its standard error so far.
    pub(crate) fn said(&self) -> String {
        self.process.said.lock().expect("its words").clone()
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
            if let Some(status) = self.process.child.lock().expect("it").try_wait().expect("its status") {
                return status;
            }
            assert!(Instant::now() < deadline, "it does not end:\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Its status, as `baton ctl status --json` prints it, but without a process: tests ask for it until it says what they
    /// wait for.
    pub(crate) fn status_text(&self) -> String {
        let answer = control::request(&control_socket(self.folder()), control::Command::Status);
        answer.unwrap_or_else(|error| panic!("no status: {error}"))
    }

    /// The same as data.
    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.status_text()).expect("JSON")
    }

    /// The output of `baton ctl` for this server.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        let output = self.ctl_output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// What `baton explain` says of a URL or a path, with the server's own configuration.
    pub(crate) fn explain(&self, url: &str) -> String {
        let mut command = Command::new(BATON);
        command.args(["explain", "--config"]).arg(self.folder().base().join("baton.toml")).arg(url);
        let output = command.output().expect("baton explain");
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// What `baton ctl` says when the server refuses.
    pub(crate) fn ctl_fails(&self, arguments: &[&str]) -> String {
        let output = self.ctl_output(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8(output.stderr).expect("text")
    }

    fn ctl_output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(BATON);
        command.args(["ctl", "--control"]).arg(control_socket(self.folder())).args(arguments);
        command.output().expect("baton ctl")
    }

    /// A connection on which a test sends bytes of HTTP/1, in clear or over TLS.
    pub(crate) fn connect(&self) -> Client {
        Client::connect_over(self.address(), self.protocol)
    }

    /// A client that speaks the protocol.
    pub(crate) fn agent(&self) -> Agent {
        Agent::connect(self.address(), self.protocol)
    }

    /// Requests a path on a new connection.
    pub(crate) fn get(&self, path: &str) -> Response {
        self.agent().get(path)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(child) = self.child.get_mut() {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking()
            && let Ok(said) = self.said.lock()
        {
            eprintln!("the server had said:\n{said}");
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
    Clear(SocketAddr),
    Secure(SocketAddr),
    All,
}

/// Reads the server's standard error; its first lines contain its addresses.
fn listen(stderr: ChildStderr, said: &Mutex<String>, announce: &Sender<Announced>) {
    for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        // The receiver is gone once it serves.
        if let Some(announced) = announced_address(&line) {
            let _ = announce.send(announced);
        } else if line.starts_with("  control socket: ") {
            let _ = announce.send(Announced::All);
        }
        if let Ok(mut said) = said.lock() {
            said.push_str(&line);
            said.push('\n');
        }
    }
}

fn announced_address(line: &str) -> Option<Announced> {
    let address = |rest: &str| rest.split('/').next()?.parse().ok();
    match line.strip_prefix("  http://") {
        Some(rest) => address(rest).map(Announced::Clear),
        None => address(line.strip_prefix("  https://")?).map(Announced::Secure),
    }
}

/// Short, since the path of a socket has 107 bytes at most.
fn control_socket(folder: &Folder) -> PathBuf {
    folder.base().join("control")
}

fn expand(folder: &Folder, configuration: &str) -> String {
    let text = |path: &OsStr| path.to_str().expect("a path in UTF-8").to_owned();
    let (base, root) = (text(folder.base().as_os_str()), text(folder.root().as_os_str()));
    let mut configuration = configuration.replace("{base}", &base).replace("{root}", &root);
    if configuration.contains("{listen}") {
        certificate::install(folder.base());
        let tls = format!("{{ certificate = \"{base}/localhost.pem\", key = \"{base}/localhost.key\" }}");
        let listen = format!("listen = [\"127.0.0.1:0\", \"127.0.0.2:0 tls\"]\ntls = {tls}");
        configuration = configuration.replace("{listen}", &listen);
    }
    if configuration.contains("{user}") { configuration.replace("{user}", &user()) } else { configuration }
}

/// The user of the tests.
fn user() -> String {
    let output = Command::new("id").arg("-un").output().expect("id");
    String::from_utf8(output.stdout).expect("a name").trim().to_owned()
}

/// The server under test.
pub(crate) const BATON: &str = env!("CARGO_BIN_EXE_baton");
