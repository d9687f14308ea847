//! The access log of a simulated worker, read back.

use std::fs::File;
use std::io::{Read, Seek};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use serde_json::Value;

use baton_telemetry::log::{AccessLogs, LineFormat, LogFormat, LogSettings, LogWriter};
use baton_telemetry::metrics::Counters;

/// A log that one simulation after another writes to.
#[derive(Debug)]
pub(crate) struct SharedLog {
    file: File,
    writer: Arc<LogWriter>,
}

/// A line of it.
#[derive(Debug)]
pub(crate) struct LogLine {
    /// Number of the client.
    pub(crate) client: usize,
    /// First line of the request, as far as it arrived.
    pub(crate) request: String,
    pub(crate) status: u16,
    pub(crate) body_bytes: usize,
    pub(crate) outcome: String,
}

impl SharedLog {
    pub(crate) fn create(counters: Counters) -> Self {
        let file = tempfile::tempfile().unwrap();
        // Nothing is handed to the writer before the simulation is over, so that nothing depends on its thread.
        let settings = LogSettings {
            file: file.try_clone().unwrap().into(),
            syslog: None,
            lines: LineFormat { format: LogFormat::Json, fields: None },
            buffer_bytes: 1 << 20,
            flush_ms: u64::MAX / 2,
        };
        let writer = LogWriter::start(settings, counters).unwrap();
        Self { file, writer }
    }

    /// The log of one simulation.
    pub(crate) fn begin(&self) -> AccessLogs {
        AccessLogs::new(Some(Arc::clone(&self.writer)))
    }

    /// Takes all lines.
    pub(crate) fn take(&self, mut log: AccessLogs) -> Vec<LogLine> {
        log.flush();
        self.writer.sync();
        let mut text = String::new();
        let mut file = &self.file;
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        file.set_len(0).unwrap();
        file.rewind().unwrap();
        text.lines().map(LogLine::parse).collect()
    }
}

impl LogLine {
    fn parse(line: &str) -> Self {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| object[name].as_u64().unwrap_or_else(|| panic!("no {name}: {line}"));
        let client = match text("peer").parse() {
            Ok(IpAddr::V4(address)) => address.to_bits() - FIRST_CLIENT.to_bits(),
            other => panic!("{other:?}: {line}"),
        };
        Self {
            client: client as usize,
            request: text("request"),
            status: number("status") as u16,
            body_bytes: number("body_bytes") as usize,
            // An origin's failure is an application's to the model.
            outcome: text("outcome").replace("origin-failed", "application-failed"),
        }
    }
}

/// The address of a client, by which its lines are known.
pub(crate) fn address(client: usize) -> SocketAddr {
    let address = Ipv4Addr::from_bits(FIRST_CLIENT.to_bits() + client as u32);
    SocketAddr::new(address.into(), 4711)
}

const FIRST_CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 0);
