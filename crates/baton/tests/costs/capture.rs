//! Packets from and to a server, as tcpdump sees them.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::server::wait_until;

/// A running tcpdump; it ends when this is dropped.
pub(crate) struct Capture {
    tcpdump: Child,
    packets: PathBuf,
    server: SocketAddr,
}

/// One packet.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// The client's port.
    pub(crate) port: u16,
    /// Sender and contents: `C data`, `S data+FIN`.
    pub(crate) what: String,
    /// Bytes of data.
    pub(crate) bytes: usize,
}

impl Capture {
    /// Begins to capture packets from and to this address; files go to `folder`.
    pub(crate) fn begin(server: SocketAddr, folder: &Path) -> Self {
        let (packets, said) = (folder.join("packets"), folder.join("tcpdump"));
        let file = |path| fs::File::create(path).expect("a file");
        let mut command = Command::new("tcpdump");
        // Without a bound on their bytes (heads are enough), the buffer holds some 30 packets, and loses others while
        // tcpdump does not run.
        command.args(["-i", "lo", "-n", "-l", "--immediate-mode", "-s", "128", "-B", "8192"]);
        command.arg(format!("tcp port {}", server.port()));
        command.stdin(Stdio::null()).stdout(file(&packets)).stderr(file(&said));
        let mut tcpdump = command.spawn().expect("tcpdump (scripts/setup-tests installs it)");
        wait_until("tcpdump listens", || {
            let said = fs::read_to_string(&said).expect("its words");
            assert!(tcpdump.try_wait().expect("its status").is_none(), "{said}");
            said.contains("listening on")
        });
        Self { tcpdump, packets, server }
    }

    /// The packets so far, in their order.
    pub(crate) fn packets(&self) -> Vec<Packet> {
        let text = fs::read_to_string(&self.packets).expect("the packets");
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| self.parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
    }

    /// A line such as `21:46:40.404790 IP 127.0.0.1.41626 > 127.0.0.1.80: Flags [S], seq 37, …, length 0`.
    fn parse(&self, line: &str) -> Option<Packet> {
        let (_, rest) = line.split_once(" IP ")?;
        let (ends, rest) = rest.split_once(": Flags [")?;
        let (from, to) = ends.split_once(" > ")?;
        let (flags, rest) = rest.split_once(']')?;
        let (_, length) = rest.rsplit_once("length ")?;
        let bytes = length.split(':').next()?.parse().ok()?;
        let port = |end: &str| end.rsplit('.').next()?.parse::<u16>().ok();
        let (from, to) = (port(from)?, port(to)?);
        let (who, port) = if from == self.server.port() { ('S', to) } else { ('C', from) };
        let mut parts = Vec::new();
        if flags.contains('S') {
            parts.push("SYN");
        }
        if bytes > 0 {
            parts.push("data");
        }
        if flags.contains('F') {
            parts.push("FIN");
        }
        if flags.contains('R') {
            parts.push("RST");
        }
        let what = if parts.is_empty() { "ACK".to_owned() } else { parts.join("+") };
        Some(Packet { port, what: format!("{who} {what}"), bytes })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.tcpdump.kill();
        let _ = self.tcpdump.wait();
    }
}
