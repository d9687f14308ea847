//! What a line of an access log says.

use baton_engine::{LineFormat, LogField, LogFormat};

use super::kind::{Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::words::{Word, Words, word_of, words};

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

const FIELDS: ListOf<Word<LogField>> = ListOf(Word::<LogField>::new());

impl Kind for LogFields {
    type Value = Vec<LogField>;

    fn accepted(&self) -> String {
        FIELDS.accepted()
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        FIELDS.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<LogField>> {
        let fields = FIELDS.read(node, reading)?;
        let repeated = fields.iter().enumerate().find(|(at, field)| fields[..*at].contains(field));
        if let (Some((at, field)), Value::Array(elements)) = (repeated, node.get_ref()) {
            let label = format!("\"{}\" is in front already", word_of(*field));
            reading.refuse(elements[at].span(), "names a field twice", label);
            return None;
        }
        Some(fields)
    }

    fn write(&self, value: &Vec<LogField>) -> toml::Value {
        FIELDS.write(value)
    }
}

/// How lines look, and what they say.
pub(crate) fn lines(format: Format, fields: Option<&[LogField]>) -> LineFormat {
    let format = match format {
        Format::Combined => LogFormat::Combined,
        Format::Json => LogFormat::Json,
    };
    LineFormat { format, fields: fields.map(Into::into) }
}
