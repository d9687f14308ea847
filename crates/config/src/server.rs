//! `[server]`: processes, privileges, and how the server is steered.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use baton_confine::Calls;
use baton_engine::arch::ArchitectureName;

use super::duration::Milliseconds;
use super::kind::{Flag, Integer, Kind, ListOf, Or, Reading};
use super::raw::{Node, Value};
use super::setting::settings;
use super::shown::Shown;
use super::system::{GROUP_NAME, USER_NAME};
use super::text::FilePath;
use super::words::{Word, Words, words};

impl Words for ArchitectureName {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        Self::ALL.into_iter().map(|name| (name.name(), name, name.summary())).collect()
    }
}

words! {
    for Calls {
        /// it fails, as on a kernel that does not have it
        Enforce = "enforce",
        /// it is done, and the kernel's log names it; those that would help an intruder most fail
        Log = "log",
        /// it is done
        Off = "off",
    }
}

/// Where `baton ctl` reaches the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlSocket {
    /// The usual path for the user who started it.
    Auto,
    /// Nowhere.
    Off,
    /// At this path.
    Path(PathBuf),
}

struct ControlSocketKind;

impl Kind for ControlSocketKind {
    type Value = ControlSocket;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"auto\", \"off\" or a path".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<ControlSocket> {
        match node.get_ref() {
            Value::String(text) if text == "auto" => Some(ControlSocket::Auto),
            Value::String(text) if text == "off" => Some(ControlSocket::Off),
            Value::String(_) => FilePath.read(node, reading).map(ControlSocket::Path),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &ControlSocket) -> toml::Value {
        match value {
            ControlSocket::Auto => "auto".into(),
            ControlSocket::Off => "off".into(),
            ControlSocket::Path(path) => FilePath.write(path),
        }
    }
}

/// The address of a DNS server, with a port or without.
struct DnsServer;

impl Kind for DnsServer {
    type Value = SocketAddr;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "an IP address such as \"10.0.0.2\" or \"127.0.0.1:5353\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<SocketAddr> {
        let text = node.get_ref().as_str();
        let address = text.and_then(|text| {
            let without_port = text.parse::<IpAddr>().map(|address| (address, DNS_PORT).into());
            without_port.or_else(|_| text.parse()).ok()
        });
        address.or_else(|| reading.mismatch(node, &self.accepted()))
    }

    fn write(&self, value: &SocketAddr) -> toml::Value {
        value.to_string().into()
    }
}

const DNS_PORT: u16 = 53;

settings! {
    /// How the server runs: architecture, processes and control. Needs a restart, except for `drain_timeout_ms`, `drain_tunnels_ms`,
    /// `watchdog_ms`, `dns_servers` and `server_header`.
    Server in "server" {
        /// Which thread or process runs which step of a request, and what may block.
        architecture: ArchitectureName = ArchitectureName::Auto, Word::<ArchitectureName>::new();
        /// Worker processes. `auto`: the architecture's number, mostly one per CPU.
        processes: Option<u64> = None, Or("auto", Integer(1, 1024));
        /// Kernel threads per process, for architectures with several. `auto`: the architecture's number.
        threads: Option<u64> = None, Or("auto", Integer(1, 1024));
        /// Binds each worker process to a CPU where the architecture has one per CPU.
        cpu_affinity: bool = true, Flag;
        /// User of the workers if root starts the server. `auto`: `baton`, or `nobody` if it does not exist;
        /// without `baton`, a server that obtains certificates does not start. Workers stay root only with `root`.
        user: Option<String> = None, Or("auto", USER_NAME);
        /// Group of the workers. `auto`: the user's own.
        group: Option<String> = None, Or("auto", GROUP_NAME);
        /// File that holds the number of the master process while it runs.
        pid_file: Option<PathBuf> = None, Or("off", FilePath);
        /// Unix socket for `baton ctl`, open to the user who started the server. `auto`: `/run/baton/control.sock` for
        /// root, `$XDG_RUNTIME_DIR/baton/control.sock` for others.
        control_socket: ControlSocket = ControlSocket::Auto, ControlSocketKind;
        /// Milliseconds that a drain waits for requests in flight before it closes their connections.
        drain_timeout_ms: u64 = 30_000, Milliseconds(0, 86_400_000);
        /// Milliseconds that a drain waits for tunnels (WebSocket), which have no end of their own. If that is longer than
        /// `drain_timeout_ms`, nothing but tunnels is left by then.
        drain_tunnels_ms: u64 = 30_000, Milliseconds(0, 604_800_000);
        /// Milliseconds for which an event loop may be stuck. Then its worker is killed and replaced; `/healthz`
        /// answers 503 from half of that time on. Waiting for a disk does not count. At least twice
        /// `timeouts.send_ms` if `send.sendfile` blocks. 0: for ever; 1 to 999 count as 1000.
        watchdog_ms: u64 = 10_000, Milliseconds(0, 3_600_000);
        /// DNS servers to ask for the hosts of applications, such as `["10.0.0.2", "127.0.0.1:5353"]`. None: those of
        /// `/etc/resolv.conf`, and what else the system asks. `/etc/hosts` comes first in any case.
        dns_servers: Vec<SocketAddr> = Vec::new(), ListOf(DnsServer);
        /// What becomes of a system call that a worker, or a process of the server's own such as `baton acme`, has no use for.
        /// Applications are not concerned.
        system_calls: Calls = Calls::Enforce, Word::<Calls>::new();
        /// Whether debuggers of the same user may look into the server's processes, and core dumps are written. Both
        /// contain keys and what clients send; root may look in any case.
        debuggable: bool = false, Flag;
        /// Whether responses name the server (`Server: baton`).
        server_header: bool = true, Flag;
    }
}
