//! What a line of an access log says.

use baton_http::field_name_is_safe;
use baton_telemetry::log::{LineField, LineFormat, LogField, LogFormat};

use super::kind::{Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::shown::Shown;
use super::words::{Word, Words, words};

words! {
    /// How a request looks in the access log.
    Format {
        /// one line as Apache and nginx write it
        Combined = "combined",
        /// one JSON object per line
        Json = "json",
    }
}

impl Words for LogField {
    fn words() -> Vec<(&'static str, Self, &'static str)> {
        Self::ALL.iter().map(|(word, field, meaning)| (*word, *field, meaning.trim())).collect()
    }
}

/// Fields of a log, each once.
pub(crate) struct LogFields;

/// One of them.
struct OneField;

const WORD: Word<LogField> = Word::new();

impl Kind for OneField {
    type Value = LineField;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{}, or \"{}NAME\"", WORD.accepted(), LineField::OF_REQUEST)
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        WORD.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<LineField> {
        let Some(name) = node.get_ref().as_str().and_then(|text| text.strip_prefix(LineField::OF_REQUEST))
        else {
            return WORD.read(node, reading).map(LineField::Known);
        };
        if !field_name_is_safe(name.as_bytes()) {
            reading.refuse(node.span(), "has a bad field name", "expected letters, digits and hyphens");
            return None;
        }
        if SECRETS.iter().any(|secret| baton_http::is_same_field(secret, name)) {
            let complaint = reading.complaint("would write secrets into the log");
            let complaint =
                complaint.at(node.span(), "with these, a reader of the log could act as the client");
            reading.complain(complaint.help("remove it; `user` is the user whose password was right"));
            return None;
        }
        Some(LineField::OfRequest(name.into()))
    }

    fn write(&self, value: &LineField) -> toml::Value {
        value.to_string().into()
    }
}

/// Fields that prove who a client is.
const SECRETS: [&str; 3] = ["Authorization", "Cookie", "Proxy-Authorization"];

impl Kind for LogFields {
    type Value = Vec<LineField>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        ListOf(OneField).accepted()
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        OneField.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<LineField>> {
        let fields = ListOf(OneField).read(node, reading)?;
        let is_same =
            |one: &LineField, other: &LineField| one.to_string().eq_ignore_ascii_case(&other.to_string());
        let repeated = fields
            .iter()
            .enumerate()
            .find(|(at, field)| fields[..*at].iter().any(|other| is_same(field, other)));
        if let (Some((at, field)), Value::Array(elements)) = (repeated, node.get_ref()) {
            let label = format!("\"{field}\" is in front already");
            reading.refuse(elements[at].span(), "names a field twice", label);
            return None;
        }
        Some(fields)
    }

    fn write(&self, value: &Vec<LineField>) -> toml::Value {
        ListOf(OneField).write(value)
    }
}

/// How lines look, and what they say.
pub(crate) fn lines(format: Format, fields: Option<&[LineField]>) -> LineFormat {
    let format = match format {
        Format::Combined => LogFormat::Combined,
        Format::Json => LogFormat::Json,
    };
    LineFormat { format, fields: fields.map(Into::into) }
}
