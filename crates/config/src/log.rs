//! `[log]`: the logs and their files.

use std::path::PathBuf;

use baton_telemetry::log::LineField;

use super::duration::Milliseconds;
use super::kind::{Bytes, Kind, Or, Reading};
use super::log_fields::{Format, LogFields};
use super::raw::{Node, Value};
use super::setting::settings;
use super::shown::Shown;
use super::text::FilePath;
use super::words::Word;

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
}

/// A destination; `"off"` is a word only where a log may be switched off.
struct Log {
    may_be_off: bool,
}

impl Kind for Log {
    type Value = Destination;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{}\"stdout\", \"stderr\" or a path", if self.may_be_off { "\"off\", " } else { "" })
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Destination> {
        let Value::String(text) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        match &**text {
            "off" if self.may_be_off => Some(Destination::Off),
            "stdout" => Some(Destination::Stdout),
            "stderr" => Some(Destination::Stderr),
            _ => FilePath.read(node, reading).map(Destination::File),
        }
    }

    fn write(&self, value: &Destination) -> toml::Value {
        match value {
            Destination::Off => "off".into(),
            Destination::Stdout => "stdout".into(),
            Destination::Stderr => "stderr".into(),
            Destination::File(path) => FilePath.write(path),
        }
    }
}

settings! {
    /// The access log (a line per request) and the error log. The master process opens the files, and reopens them on
    /// `baton ctl reopen-logs` or SIGUSR1. A reload can replace one file by another; the rest needs a restart.
    LogSettings in "log" {
        /// Where requests are logged.
        access: Destination = Destination::Off, Log { may_be_off: true };
        /// How a request is written.
        format: Format = Format::Combined, Word::<Format>::new();
        /// What a line says, in this order; with `combined`, behind its own fields as `name=value`. `auto`: `combined` says
        /// nothing more, `json` what is usual. Times are in microseconds; what a request has none of is left out of JSON.
        /// `request_header.NAME` is a field of the request, of which a line has 1,024 bytes at most.
        fields: Option<Vec<LineField>> = None, Or("auto", LogFields);
        /// Bytes gathered per process before they are written; 0: every line at once. If the disk is full, lines are
        /// lost and counted, never a request.
        buffer_bytes: u64 = 64 << 10, Bytes(0, 1 << 26);
        /// Milliseconds after which gathered lines are written even if the buffer is not full.
        flush_ms: u64 = 1_000, Milliseconds(1, 3_600_000);
        /// Where errors and events of the server are logged.
        error: Destination = Destination::Stderr, Log { may_be_off: false };
    }
}
