//! How a line of an access log looks: a word, or a text of the operator's own with variables for fields.

use baton_http::{LoneDollar, OfNginx, TextPart, text_parts};
use baton_telemetry::log::{LineField, LineFormat, LogField, LogFormat};

use super::kind::{Kind, Reading};
use super::log_fields::of_head;
use super::raw::{Node, Value};
use super::shown::Shown;
use super::words::{Word, words};

words! {
    /// How a request looks in the access log, in a word.
    UsualFormat {
        /// one line as Apache and nginx write it
        Combined = "combined",
        /// one JSON object per line
        Json = "json",
    }
}

/// How a request looks in the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// As other servers have it, or as JSON.
    Usual(UsualFormat),
    /// A text with fields in it.
    Own(OwnFormat),
}

/// A text with fields in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFormat {
    written: Box<str>,
    /// One more than fields: a field stands between each two.
    texts: Box<[Box<str>]>,
    fields: Box<[LineField]>,
}

impl Format {
    /// Apache's and nginx's `combined`.
    pub(crate) const COMBINED: Self = Self::Usual(UsualFormat::Combined);

    /// How lines look that say these fields, `None`: the usual ones. A text has fields of its own.
    pub(crate) fn lines(&self, fields: Option<&[LineField]>) -> LineFormat {
        let (format, fields) = match self {
            Self::Usual(UsualFormat::Combined) => (LogFormat::Combined, fields),
            Self::Usual(UsualFormat::Json) => (LogFormat::Json, fields),
            Self::Own(own) => (LogFormat::Own(own.texts.clone()), Some(&*own.fields)),
        };
        LineFormat { format, fields: fields.map(Into::into) }
    }
}

/// `combined`, `json`, or a text with at least one variable.
pub(crate) struct FormatKind;

const WORD: Word<UsualFormat> = Word::new();

impl Kind for FormatKind {
    type Value = Format;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        format!("{}, or a text with fields such as \"$peer ${{request_header.X-Key}}\"", WORD.accepted())
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        WORD.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Format> {
        match node.get_ref() {
            Value::String(text) if text.contains('$') => read_own(text, node, reading).map(Format::Own),
            _ => WORD.read(node, reading).map(Format::Usual),
        }
    }

    fn write(&self, value: &Format) -> toml::Value {
        match value {
            Format::Usual(word) => WORD.write(word),
            Format::Own(own) => (&*own.written).into(),
        }
    }
}

fn read_own(written: &str, node: &Node, reading: &mut Reading<'_>) -> Option<OwnFormat> {
    if written.contains(|c: char| c.is_control() && c != '\t') {
        let label = "a line ends with the last field, and has no other control characters than tabs";
        reading.refuse(node.span(), "is not one line", label);
        return None;
    }
    let parts = match text_parts(written, |name| field(name, node, reading).ok_or(None)) {
        Ok(parts) => parts,
        // What is wrong with a name was said.
        Err(None) => return None,
        Err(Some(LoneDollar)) => {
            let complaint = reading.complaint("has a `$` without the name of a field");
            let complaint = complaint.at(node.span(), "expected `$name` or `${name}`");
            reading.complain(complaint.help("a dollar itself is `$$`"));
            return None;
        }
    };
    let (mut texts, mut fields) = (vec![Box::default()], Vec::new());
    for part in parts {
        match part {
            TextPart::Text(text) => *texts.last_mut()? = text.into(),
            TextPart::Variable(field) => {
                fields.push(field);
                texts.push(Box::default());
            }
        }
    }
    Some(OwnFormat { written: written.into(), texts: texts.into(), fields: fields.into() })
}

fn field(name: &str, node: &Node, reading: &mut Reading<'_>) -> Option<LineField> {
    if let Some(of_head) = of_head(name, node, reading) {
        return of_head;
    }
    // Templates of routes have this name for it.
    let name = if name == "client_ip" { LogField::Peer.word() } else { name };
    let known = LogField::ALL.iter().find(|(word, ..)| *word == name);
    if let Some((_, field, _)) = known {
        return Some(LineField::Known(*field));
    }
    let complaint = reading.complaint("has a variable that no field has");
    let words: Vec<_> = LogField::ALL.iter().map(|(word, ..)| *word).collect();
    let label = format!("`${name}`: expected {}, or `${{{}NAME}}`", words.join(", "), LineField::OF_REQUEST);
    let complaint = complaint.at(node.span(), label);
    reading.complain(match OfNginx::named(name).filter(|of_nginx| !of_nginx.in_log.is_empty()) {
        Some(of_nginx) => complaint.help(format!("nginx's `${name}` is `${}` here", of_nginx.in_log)),
        None => complaint.did_you_mean(name, words),
    });
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_nginx_lead_to_fields_that_exist() {
        for name in ["remote_addr", "time_local", "request_time", "upstream_addr", "http_referer", "uri"] {
            let in_log = OfNginx::named(name).unwrap().in_log;
            assert!(LogField::ALL.iter().any(|(word, ..)| *word == in_log), "{name}");
        }
    }
}
