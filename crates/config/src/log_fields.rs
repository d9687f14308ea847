//! What a line of an access log says.

use baton_http::field_name_is_safe;
use baton_telemetry::log::{LineField, LogField};

use super::kind::{Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;
use super::words::{Word, Words};

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
        let [request, response] = [LineField::OF_REQUEST, LineField::OF_RESPONSE];
        format!("{}, \"{request}NAME\" or \"{response}NAME\"", WORD.accepted())
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        WORD.explained()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<LineField> {
        let of_head = node.get_ref().as_str().and_then(|text| of_head(text, node, reading));
        of_head.unwrap_or_else(|| WORD.read(node, reading).map(LineField::Known))
    }

    fn write(&self, value: &LineField) -> toml::Value {
        value.to_string().into()
    }
}

/// A field of a head that `text` names. `None`: it names none; `Some(None)`: one that no log says, which is complained of.
pub(crate) fn of_head(text: &str, node: &Node, reading: &mut Reading<'_>) -> Option<Option<LineField>> {
    let of_request = text.strip_prefix(LineField::OF_REQUEST);
    let name = of_request.or_else(|| text.strip_prefix(LineField::OF_RESPONSE))?;
    if !field_name_is_safe(name.as_bytes()) {
        reading.refuse(node.span(), "has a bad field name", "expected letters, digits and hyphens");
        return Some(None);
    }
    if SECRETS.iter().any(|secret| baton_http::is_same_field(secret, name)) {
        let complaint = reading.complaint("would write secrets into the log");
        let complaint = complaint.at(node.span(), "with these, a reader of the log could act as the client");
        reading.complain(complaint.help("remove it; `user` is the user whose password was right"));
        return Some(None);
    }
    let kind = if of_request.is_some() { LineField::OfRequest } else { LineField::OfResponse };
    Some(Some(kind(name.into())))
}

/// Fields that prove who a client is.
const SECRETS: [&str; 4] = ["Authorization", "Cookie", "Proxy-Authorization", "Set-Cookie"];

impl Kind for LogFields {
    type Value = Vec<LineField>;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        ListOf(OneField).accepted()
    }

    fn explained(&self) -> Vec<(&'static str, &'static str)> {
        OneField.explained()
    }

    fn schema(&self) -> Schema {
        ListOf(OneField).schema()
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
