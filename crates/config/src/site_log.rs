//! Where the requests of a site are logged.

use baton_telemetry::log::LineField;

use super::kind::{Flag, Kind, Or, Reading};
use super::log::Destination;
use super::log_fields::LogFields;
use super::log_format::{Format, FormatKind};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::syslog::Syslog;
use super::text::FilePath;

/// Where the requests of a site are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// In the log of `[log]`, if there is one.
    Server,
    /// In a log of its own.
    Own(OwnLog),
}

settings! {
    /// An access log of a site's own.
    OwnLog in "access_log" needs ["file"] {
        /// The file, which the master process opens, and reopens with the other logs; or a syslog daemon, as for `log.access`.
        file: Destination = Destination::Off, OwnDestination;
        /// How a request is written. `auto`: as `log.format` says.
        format: Option<Format> = None, Or("auto", FormatKind);
        /// What a line says. `auto`: with the format of `[log]`, what `log.fields` says.
        fields: Option<Vec<LineField>> = None, Or("auto", LogFields);
    }
}

/// A file, or a syslog daemon.
struct OwnDestination;

impl Kind for OwnDestination {
    type Value = Destination;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{}, {}", FilePath.accepted(), Syslog.accepted())
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Destination> {
        match node.get_ref().as_str() {
            Some(text) if Syslog::is_meant(text) => Syslog.read(node, reading).map(Destination::Syslog),
            _ => FilePath.read(node, reading).map(Destination::File),
        }
    }

    fn write(&self, value: &Destination) -> toml::Value {
        value.write()
    }
}

/// `true` or `false`, a path, a syslog daemon, or a table.
pub(crate) struct AccessLogKind;

impl Kind for AccessLogKind {
    type Value = AccessLog;

    const SHOWN: Shown = Inline::<OwnLog>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!(
            "{}, {}, or {}",
            Flag.accepted(),
            OwnDestination.accepted(),
            Inline::<OwnLog>::new().accepted()
        )
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), OwnDestination.schema(), Inline::<OwnLog>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<AccessLog> {
        match reading.unquoted(node) {
            Value::Boolean(true) => Some(AccessLog::Server),
            Value::Boolean(false) => Some(AccessLog::Off),
            Value::Table(_) => Inline::<OwnLog>::new().read(node, reading).map(AccessLog::Own),
            Value::String(word) if word == "off" => Some(AccessLog::Off),
            Value::String(_) => {
                let file = OwnDestination.read(node, reading)?;
                Some(AccessLog::Own(OwnLog { file, ..OwnLog::default() }))
            }
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &AccessLog) -> toml::Value {
        match value {
            AccessLog::Off => false.into(),
            AccessLog::Server => true.into(),
            AccessLog::Own(own) => Inline::<OwnLog>::new().write(own),
        }
    }
}
