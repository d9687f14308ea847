//! Additions to the common harness: a changing configuration, the status as data, and refusals.

use std::fs;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::common::certificate;
use crate::common::client::Client;
use crate::common::folder::{Folder, install_program};
use crate::common::server::{PATIENCE, Server};

pub(crate) const ANY_PORT: &str = "\"127.0.0.1:0\"";

/// In clear and over TLS.
pub(crate) const ANY_PORTS: &str = "\"127.0.0.1:0\", \"127.0.0.2:0 tls\"";

/// A folder whose document root has an index that says `first`.
pub(crate) fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("index.html", "first");
    folder
}

/// Writes a file beside the document root.
pub(crate) fn write(folder: &Folder, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.base().join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
    fs::write(path, content).expect("a file");
}

/// Reads a file beside the document root; empty if it is missing.
pub(crate) fn read(server: &Server, name: &str) -> String {
    fs::read_to_string(server.folder().base().join(name)).unwrap_or_default()
}

/// Writes the configuration: a site at `listen` with the given root, and further text, which continues `[server]`.
pub(crate) fn configure(folder: &Folder, listen: &str, root: &str, rest: &str) {
    let tls = if listen.contains(" tls") {
        certificate::install(folder.base());
        "tls = { certificate = \"localhost.pem\", key = \"localhost.key\" }\n"
    } else {
        ""
    };
    let text = format!(
        "[[site]]\nlisten = [{listen}]\n{tls}root = \"{root}\"\n\n[server]\ncontrol_socket = \"control\"\n{rest}\n"
    );
    write(folder, "baton.toml", text);
}

pub(crate) fn baton() -> Command {
    Command::new(env!("CARGO_BIN_EXE_baton"))
}

/// The command that runs the folder's configuration.
pub(crate) fn run(folder: &Folder) -> Command {
    let mut command = baton();
    command.args(["run", "-c"]).arg(folder.base().join("baton.toml"));
    command
}

/// Starts what the folder's configuration says.
pub(crate) fn start_in(folder: Folder) -> Server {
    let command = run(&folder);
    Server::start(folder, command)
}

/// Starts a server on any port that is configured as `rest` says, which continues `[server]`.
pub(crate) fn start(rest: &str) -> Server {
    let folder = folder();
    configure(&folder, ANY_PORT, "root", rest);
    start_in(folder)
}

/// Starts the folder's configuration with an executable of its own, which can be replaced.
pub(crate) fn start_own_executable(folder: Folder) -> (PathBuf, Server) {
    let executable = folder.base().join("baton");
    install_program(&executable, fs::read(env!("CARGO_BIN_EXE_baton")).expect("the executable"));
    let mut command = Command::new(&executable);
    command.args(["run", "-c"]).arg(folder.base().join("baton.toml"));
    (executable, Server::start(folder, command))
}

/// Receives the server's notifications, like systemd.
pub(crate) struct ServiceManager(UnixDatagram);

impl ServiceManager {
    /// Starts what the folder's configuration says.
    pub(crate) fn start(folder: Folder) -> (Self, Server) {
        let place = folder.base().join("notify");
        let socket = UnixDatagram::bind(&place).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut command = run(&folder);
        command.env("NOTIFY_SOCKET", place);
        (Self(socket), Server::start(folder, command))
    }

    /// The next notification.
    pub(crate) fn told(&self) -> String {
        let mut text = [0; 256];
        let len = self.0.recv(&mut text).expect("a message");
        String::from_utf8_lossy(&text[..len]).into_owned()
    }
}

/// Where its admin listener is.
pub(crate) fn admin_address(server: &Server) -> SocketAddr {
    *server.addresses().last().expect("an address")
}

/// Runs `baton ctl` for a server in this folder.
pub(crate) fn ctl(folder: &Folder, command: &[&str]) -> Output {
    baton()
        .arg("ctl")
        .args(command)
        .arg("--control")
        .arg(folder.base().join("control"))
        .output()
        .expect("baton ctl")
}

/// The error message of a failing command.
pub(crate) fn complaint(output: Output) -> String {
    let told = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(1), "{told}");
    told
}

/// What `baton ctl` says when the server refuses.
pub(crate) fn refusal(server: &Server, command: &str) -> String {
    complaint(ctl(server.folder(), &[command]))
}

pub(crate) fn status(server: &Server) -> Value {
    server.status()
}

/// The processes of its workers that serve.
pub(crate) fn serving(server: &Server) -> Vec<Pid> {
    let status = status(server);
    let workers = status["workers"].as_array().expect("workers").iter();
    workers.filter(|worker| worker["serves"] == true).map(|worker| pid(&worker["pid"])).collect()
}

pub(crate) fn pid(number: &Value) -> Pid {
    number.as_i64().and_then(|number| Pid::from_raw(number.try_into().ok()?)).expect("a process")
}

pub(crate) fn send_signal(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("a signal");
}

/// Whether a process runs: it exists, and is no zombie.
pub(crate) fn is_alive(pid: Pid) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
        .is_ok_and(|stat| !stat.contains(") Z "))
}

/// Asks for `/big`, and reads the head of the response only.
pub(crate) fn begin_download(client: &mut Client, bytes: usize) {
    client.send("GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.head();
    assert_eq!((head.status, head.field("content-length")), (200, Some(&*bytes.to_string())));
}

/// How many bytes still come before the connection ends, in order or not.
pub(crate) fn remaining(client: &Client) -> usize {
    let mut bytes = Vec::new();
    // How it ends does not matter, only that it does, and that is not by the timeout.
    if let Err(error) = client.stream().read_to_end(&mut bytes) {
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
    }
    bytes.len()
}
