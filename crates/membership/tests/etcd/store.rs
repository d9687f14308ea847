//! An etcd of the test's own, which ends with the test.

#![allow(dead_code, reason = "each suite uses a part of it")]

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use baton_membership::{Etcd, EtcdUser};

use crate::port::free_port;

/// Nothing that is waited for takes longer, unless it never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// An etcd of one member, on ports that were free, with its data in a folder.
pub(crate) struct Store {
    folder: tempfile::TempDir,
    flags: Vec<OsString>,
    scheme: &'static str,
    port: u16,
    peer_port: u16,
    child: Option<Child>,
    /// What proves that it is root, once users count.
    pub(crate) login: Option<EtcdUser>,
}

impl Store {
    /// Starts one; `None` where etcd is not installed: the test is left out, and says so.
    pub(crate) fn start() -> Option<Self> {
        Self::start_at("http")
    }

    /// The same over TLS, with a certificate of its own making.
    pub(crate) fn start_secure() -> Option<Self> {
        Self::start_at("https")
    }

    fn start_at(scheme: &'static str) -> Option<Self> {
        if Command::new("etcd").arg("--version").output().is_err() {
            eprintln!(
                "LEFT OUT of the tests: etcd is not installed (apt-get install etcd-server etcd-client)"
            );
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (ca, key) = (folder.path().join("ca.pem"), folder.path().join("key.pem"));
        let mut flags = Vec::new();
        if scheme == "https" {
            let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
            fs::write(&ca, made.cert.pem()).expect("written");
            fs::write(&key, made.signing_key.serialize_pem()).expect("written");
            flags = vec!["--cert-file".into(), ca.into(), "--key-file".into(), key.into()];
        }
        let (port, peer_port) = (free_port(), free_port());
        let mut store = Self { folder, flags, scheme, port, peer_port, child: None, login: None };
        store.run();
        Some(store)
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}", self.scheme, self.port)
    }

    /// Its address.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// A folder for what belongs to it.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Begins, or begins again with the data that there is.
    pub(crate) fn run(&mut self) {
        let (url, peer) = (self.url(), format!("http://127.0.0.1:{}", self.peer_port));
        let log = fs::File::create(self.folder.path().join("log")).expect("a log");
        let mut command = Command::new("etcd");
        command
            .args(["--name", "one", "--data-dir"])
            .arg(self.folder.path().join("data"))
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")])
            .args(["--heartbeat-interval", "50", "--election-timeout", "500"])
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log);
        self.child = Some(command.spawn().expect("etcd"));
        let answers = || std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.health();
        wait_until("etcd answers", answers);
    }

    /// Ends it, as an operator does.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            rustix::process::kill_process(
                rustix::process::Pid::from_child(&child),
                rustix::process::Signal::TERM,
            )
            .expect("a signal");
            child.wait().expect("its end");
        }
    }

    /// Loses everything.
    pub(crate) fn wipe(&self) {
        fs::remove_dir_all(self.folder.path().join("data")).expect("its data");
    }

    /// Another client of it than ours.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> String {
        let output = self.ctl_output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn ctl_output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &self.url()]);
        if self.scheme == "https" {
            command.args(["--cacert"]).arg(self.folder().join("ca.pem"));
        }
        if let Some(EtcdUser { user, password }) = &self.login {
            command.args(["--user", &format!("{user}:{password}")]);
        }
        command.args(arguments).output().expect("etcdctl")
    }

    fn health(&self) -> bool {
        self.ctl_output(&["get", "nothing"]).status.success()
    }

    /// What a client of it needs.
    pub(crate) fn settings(&self) -> Etcd {
        Etcd {
            endpoints: vec![self.url()],
            prefix: "/baton/".into(),
            ttl_s: 2,
            hold_s: 30,
            ca: (self.scheme == "https").then(|| self.folder().join("ca.pem")),
            login: self.login.clone(),
            register: None,
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits for something that comes by itself.
pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
