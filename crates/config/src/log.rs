//! `[log]`: the logs and their files.

use std::fmt;
use std::path::PathBuf;

use baton_telemetry::log::LineField;

use super::duration::Milliseconds;
use super::kind::{Bytes, Kind, Or, Reading};
use super::log_fields::LogFields;
use super::log_format::{Format, FormatKind};
use super::raw::{Node, Value};
use super::setting::settings;
use super::shown::Shown;
use super::syslog::{Syslog, SyslogDaemon};
use super::text::FilePath;

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// Nowhere.
    Off,
    /// The standard output of the server.
    Stdout,
    /// The standard error of the server.
    Stderr,
    /// A file, appended to and reopened on demand.
    File(PathBuf),
    /// A syslog daemon.
    Syslog(SyslogDaemon),
}

/// Where requests are logged.
struct AccessDestination;

/// Where the error log goes. It *is* the standard error of all processes, what libraries write included: that is no datagrams.
struct ErrorDestination;

impl Kind for AccessDestination {
    type Value = Destination;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("\"off\", \"stdout\", \"stderr\", a path, {}", Syslog.accepted())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Destination> {
        match node.get_ref().as_str() {
            Some("off") => Some(Destination::Off),
            Some(text) if Syslog::is_meant(text) => Syslog.read(node, reading).map(Destination::Syslog),
            _ => read_stream_or_file(self, node, reading),
        }
    }

    fn write(&self, value: &Destination) -> toml::Value {
        value.write()
    }
}

impl Kind for ErrorDestination {
    type Value = Destination;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        "\"stdout\", \"stderr\" or a path".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Destination> {
        if node.get_ref().as_str().is_some_and(Syslog::is_meant) {
            let complaint = reading.complaint("cannot be a syslog daemon");
            let complaint = complaint.at(node.span(), format!("expected {}", self.accepted()));
            let help = "leave \"stderr\": systemd passes it to the journal and to syslog, and so does `baton run 2>&1 | logger -t baton`";
            reading.complain(complaint.help(help));
            return None;
        }
        read_stream_or_file(self, node, reading)
    }

    fn write(&self, value: &Destination) -> toml::Value {
        value.write()
    }
}

fn read_stream_or_file(
    kind: &impl Kind<Value = Destination>,
    node: &Node,
    reading: &mut Reading<'_>,
) -> Option<Destination> {
    match node.get_ref() {
        Value::String(text) if text == "stdout" => Some(Destination::Stdout),
        Value::String(text) if text == "stderr" => Some(Destination::Stderr),
        Value::String(_) => FilePath.read(node, reading).map(Destination::File),
        _ => reading.mismatch(node, &kind.accepted()),
    }
}

impl Destination {
    /// As it is written.
    pub(crate) fn write(&self) -> toml::Value {
        match self {
            Self::File(path) => FilePath.write(path),
            other => other.to_string().into(),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("off"),
            Self::Stdout => f.write_str("stdout"),
            Self::Stderr => f.write_str("stderr"),
            Self::File(path) => path.display().fmt(f),
            Self::Syslog(daemon) => daemon.fmt(f),
        }
    }
}

settings! {
    /// The access log (a line per request) and the error log. The master process opens the files, and reopens them on
    /// `baton ctl reopen-logs` or SIGUSR1. A reload can replace one file by another; the rest needs a restart.
    LogSettings in "log" {
        /// Where requests are logged. `syslog` is the daemon of this host at `/dev/log`, `syslog:PATH` one at another socket,
        /// `syslog://HOST` another host's by UDP: facility `local7`, severity `info`. Lines that it does not take are lost and counted.
        access: Destination = Destination::Off, AccessDestination;
        /// How a request is written. In a text, `$name` or `${name}` is a field (see `fields`), `$$` a dollar; what a request
        /// has none of is `-`, and bytes that could forge a line are `\\xHH`.
        format: Format = Format::COMBINED, FormatKind;
        /// What a line says, in this order; with `combined`, behind its own fields as `name=value`. `auto`: `combined` says
        /// nothing more, `json` what is usual. All durations are in microseconds; what a request has none of is left out of JSON.
        /// `request_header.NAME` and `response_header.NAME` are fields of request and response, of which a line has 1,024 bytes at most.
        fields: Option<Vec<LineField>> = None, Or("auto", LogFields);
        /// Bytes gathered per process before they are written; 0: every line at once. If the disk is full, lines are
        /// lost and counted, never a request.
        buffer_bytes: u64 = 64 << 10, Bytes(0, 1 << 26);
        /// Milliseconds after which gathered lines are written even if the buffer is not full.
        flush_ms: u64 = 1_000, Milliseconds(1, 3_600_000);
        /// Where errors and events of the server are logged.
        error: Destination = Destination::Stderr, ErrorDestination;
    }
}
