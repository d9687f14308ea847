//! Where the requests of a site are logged.

use std::path::PathBuf;

use baton_telemetry::log::LineField;

use super::kind::{Flag, Kind, Or, Reading};
use super::log_fields::LogFields;
use super::log_format::{Format, FormatKind};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::FilePath;

/// Where the requests of a site are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessLog {
    /// Nowhere.
    Off,
    /// In the log of `[log]`, if there is one.
    Server,
    /// In a file of its own.
    Own(OwnLog),
}

settings! {
    /// An access log of a site's own.
    OwnLog in "access_log" needs ["file"] {
        /// The file. The master process opens it, and reopens it with the other logs.
        file: PathBuf = PathBuf::new(), FilePath;
        /// How a request is written. `auto`: as `log.format` says.
        format: Option<Format> = None, Or("auto", FormatKind);
        /// What a line says. `auto`: with the format of `[log]`, what `log.fields` says.
        fields: Option<Vec<LineField>> = None, Or("auto", LogFields);
    }
}

/// `true` or `false`, a path, or a table.
pub(crate) struct AccessLogKind;

impl Kind for AccessLogKind {
    type Value = AccessLog;

    const SHOWN: Shown = Inline::<OwnLog>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, a path, or {}", Flag.accepted(), Inline::<OwnLog>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), FilePath.schema(), Inline::<OwnLog>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<AccessLog> {
        match reading.unquoted(node) {
            Value::Boolean(true) => Some(AccessLog::Server),
            Value::Boolean(false) => Some(AccessLog::Off),
            Value::Table(_) => Inline::<OwnLog>::new().read(node, reading).map(AccessLog::Own),
            Value::String(word) if word == "off" => Some(AccessLog::Off),
            Value::String(_) => {
                let file = FilePath.read(node, reading)?;
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
