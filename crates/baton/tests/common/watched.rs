//! A server whose metrics, log and descriptors are looked at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;

use super::agent::Agent;
use super::certificate;
use super::client::{Client, Response};
use super::folder::Folder;
use super::processes;
use super::protocol::Protocol;
use super::server::{Server, wait_until};

/// A running server with an admin listener and a log in JSON.
pub(crate) struct Watched {
    server: Server,
    log: PathBuf,
}

impl Watched {
    /// Serves the folder. `settings` are `section.key=value`, as `--set` takes them.
    pub(crate) fn start(folder: Folder, architecture: &str, settings: &[&str]) -> Self {
        let log = folder.base().join("access.log");
        Self::start_logging_to(&log, folder, architecture, settings)
    }

    /// The same for clients that speak a protocol.
    pub(crate) fn start_over(
        protocol: Protocol,
        folder: Folder,
        architecture: &str,
        settings: &[&str],
    ) -> Self {
        let log = folder.base().join("access.log");
        let mut command = Command::new(BATON);
        command.args(arguments(&log, &folder, architecture, settings));
        if protocol.is_secure() {
            certificate::install(folder.base());
            let file = |name: &str| folder.base().join(name).display().to_string();
            command.arg(format!("--tls={},{}", file("localhost.pem"), file("localhost.key")));
        }
        Self { server: Server::start(folder, command).over(protocol), log }
    }

    /// The same with the log elsewhere.
    pub(crate) fn start_logging_to(
        log: &Path,
        folder: Folder,
        architecture: &str,
        settings: &[&str],
    ) -> Self {
        let mut command = Command::new(BATON);
        command.args(arguments(log, &folder, architecture, settings));
        Self { server: Server::start(folder, command), log: log.to_owned() }
    }

    /// A server whose last address is the admin listener, and its log in JSON.
    pub(crate) fn of(server: Server, log: PathBuf) -> Self {
        Self { server, log }
    }

    /// Lowers each worker's limit of descriptors without its knowledge.
    pub(crate) fn take_descriptors_away(&self, left: u64) {
        for worker in self.server.workers() {
            let limit = Rlimit { current: Some(left), maximum: Some(left) };
            prlimit(Some(worker), Resource::Nofile, limit).expect("a limit");
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn folder(&self) -> &Folder {
        self.server.folder()
    }

    pub(crate) fn connect(&self) -> Client {
        self.server.connect()
    }

    pub(crate) fn agent(&self) -> Agent {
        self.server.agent()
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.server.get(path)
    }

    /// A sample of the metrics page, by its name and label.
    pub(crate) fn metric(&self, sample: &str) -> u64 {
        let admin = *self.server.addresses().last().expect("an admin listener");
        let page = Client::connect(admin).get("/metrics");
        let value = page.text().lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
        value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no sample {sample}"))
    }

    /// Requests with this outcome.
    pub(crate) fn ended(&self, outcome: &str) -> u64 {
        self.metric(&format!("baton_requests_total{{outcome=\"{outcome}\"}}"))
    }

    /// The log so far.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.log).expect("the log");
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
    }

    /// Waits for the line of a request for this path, and returns it.
    pub(crate) fn line_of(&self, path: &str) -> Value {
        let request = format!(" {path} ");
        let mut found = None;
        wait_until(&format!("a log line of {path}"), || {
            found = self
                .lines()
                .into_iter()
                .find(|line| line["request"].as_str().is_some_and(|text| text.contains(&request)));
            found.is_some()
        });
        found.expect("waited for")
    }

    /// Sockets that each worker holds.
    pub(crate) fn sockets(&self) -> Vec<usize> {
        let is_socket = |target: &Path| target.to_string_lossy().starts_with("socket:");
        self.server.workers().into_iter().map(|worker| descriptors(worker, is_socket)).collect()
    }

    /// Waits until no connection is open, sockets are at most `before`, and each served file has only the cache's
    /// descriptor.
    pub(crate) fn wait_until_nothing_is_left(&self, before: &[usize]) {
        wait_until("no connection is open", || self.metric("baton_connections_open") == 0);
        wait_until(&format!("as few sockets as before, {before:?}"), || self.sockets() == before);
        let root = self.folder().root();
        let files = fs::read_dir(&root).expect("the document root").count();
        for worker in self.server.workers() {
            let open = descriptors(worker, |target| target.starts_with(&root) && target != root);
            assert!(open <= files, "{open} descriptors of {files} files");
        }
    }
}

/// Descriptors of a process that lead to something in particular.
fn descriptors(process: Pid, leads_there: impl Fn(&Path) -> bool) -> usize {
    let open = fs::read_dir(format!("/proc/{}/fd", process.as_raw_nonzero())).expect("its descriptors");
    open.flatten()
        .filter(|entry| fs::read_link(entry.path()).is_ok_and(|target| leads_there(&target)))
        .count()
}

/// The arguments of `baton`. Architectures with several processes get two on any machine.
fn arguments(log: &Path, folder: &Folder, architecture: &str, settings: &[&str]) -> Vec<String> {
    let text = |path: &Path| path.to_str().expect("a path in UTF-8").to_owned();
    let several = ["auto", "symped", "n-copy"].contains(&architecture);
    let workers = processes(architecture, if several { 2 } else { 1 });
    let mut arguments = vec!["serve".to_owned(), text(&folder.root())];
    let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
    add("--listen", "127.0.0.1:0".to_owned());
    add("--admin", "127.0.0.1:0".to_owned());
    add("--control", text(&folder.base().join("control")));
    add("--architecture", architecture.to_owned());
    if !settings.iter().any(|setting| setting.starts_with("server.processes=")) {
        add("--workers", workers.to_string());
    }
    add("--log-format", "json".to_owned());
    add("--set", "log.flush_ms=20".to_owned());
    for setting in settings {
        add("--set", (*setting).to_owned());
    }
    arguments.push(format!("--access-log={}", text(log)));
    arguments
}

const BATON: &str = env!("CARGO_BIN_EXE_baton");
