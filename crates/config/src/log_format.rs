//! How a line of an access log looks: a word, or a text of the operator's own with variables for fields.

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
    let (mut texts, mut fields) = (vec![String::new()], Vec::new());
    let mut rest = written;
    while let Some((text, behind)) = rest.split_once('$') {
        let last = texts.last_mut()?;
        last.push_str(text);
        if let Some(behind) = behind.strip_prefix('$') {
            last.push('$');
            rest = behind;
            continue;
        }
        let Some((name, behind)) = variable(behind) else {
            let complaint = reading.complaint("has a `$` without the name of a field");
            let complaint = complaint.at(node.span(), "expected `$name` or `${name}`");
            reading.complain(complaint.help("a dollar itself is `$$`"));
            return None;
        };
        rest = behind;
        fields.push(field(name, node, reading)?);
        texts.push(String::new());
    }
    texts.last_mut()?.push_str(rest);
    let texts = texts.into_iter().map(String::into_boxed_str).collect();
    Some(OwnFormat { written: written.into(), texts, fields: fields.into() })
}

/// The name at the beginning, in braces or without, and what follows it.
fn variable(text: &str) -> Option<(&str, &str)> {
    if let Some(text) = text.strip_prefix('{') {
        return text.split_once('}').filter(|(name, _)| !name.is_empty());
    }
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
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
    let of_nginx = OF_NGINX.iter().find(|(theirs, _)| *theirs == name);
    reading.complain(match of_nginx {
        Some((_, ours)) => complaint.help(format!("nginx's `${name}` is `${}` here", ours.word())),
        None => complaint.did_you_mean(name, words),
    });
    None
}

/// Variables of nginx's log formats, and the fields that stand for them. Times are in microseconds here.
const OF_NGINX: [(&str, LogField); 16] = [
    ("remote_addr", LogField::Peer),
    ("remote_user", LogField::User),
    ("time_local", LogField::TimeCommon),
    ("time_iso8601", LogField::Time),
    ("msec", LogField::Time),
    ("server_name", LogField::Site),
    ("request_method", LogField::Method),
    ("request_uri", LogField::Target),
    ("uri", LogField::Target),
    ("server_protocol", LogField::Protocol),
    ("body_bytes_sent", LogField::BodyBytes),
    ("request_time", LogField::DurationUs),
    ("upstream_response_time", LogField::UpstreamUs),
    ("upstream_addr", LogField::Origin),
    ("http_referer", LogField::Referer),
    ("http_user_agent", LogField::UserAgent),
];
