//! Response fields that users add.

use std::collections::BTreeMap;

use baton_http::{field_name_is_safe, field_value_is_safe};

use super::kind::{Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::text::{TextOf, Wrong};

/// Names and values of response fields; an array gives a field several times.
pub(crate) struct Fields;

/// Fields that follow from the content and the connection, and what to use instead. A second `Content-Length` or
/// `Connection` would break the framing of responses.
const RESERVED: [(&str, &str); 14] = [
    ("accept-ranges", "it is always sent"),
    ("cache-control", "use `cache_control`"),
    ("connection", "it follows from the request"),
    ("content-encoding", "use `precompressed`"),
    ("content-length", "it follows from the content"),
    ("content-range", "it follows from the request"),
    ("content-type", "use [media_types]"),
    ("date", "it is always sent"),
    ("etag", "it follows from the content"),
    ("keep-alive", "it follows from the request"),
    ("last-modified", "it follows from the content"),
    ("server", "use `server.server_header`"),
    ("transfer-encoding", "it follows from the content"),
    ("vary", "it follows from `precompressed`"),
];

impl Kind for Fields {
    type Value = Vec<(String, String)>;

    fn accepted(&self) -> String {
        "a table of strings or arrays of strings: { NAME = \"VALUE\" }".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Vec<(String, String)>> {
        let Value::Table(entries) = node.get_ref() else {
            reading.mismatch(node, &self.accepted());
            return None;
        };
        let mut fields = Some(Vec::new());
        for (key, value) in entries {
            let name = key.get_ref();
            let reserved = RESERVED.iter().find(|(reserved, _)| name.eq_ignore_ascii_case(reserved));
            let problem = match reserved {
                Some((_, instead)) => Some(("sets a field that the server sets itself", *instead)),
                None if !field_name_is_safe(name.as_bytes()) => {
                    Some(("has a bad field name", "expected letters, digits and hyphens"))
                }
                None => None,
            };
            if let Some((problem, label)) = problem {
                reading.refuse(key.span(), problem, label);
                fields = None;
            }
            let values = match value.get_ref() {
                Value::Array(_) => ListOf(FIELD_VALUE).read(value, reading),
                _ => FIELD_VALUE.read(value, reading).map(|value| vec![value]),
            };
            fields = fields.zip(values).map(|(mut fields, values)| {
                fields.extend(values.into_iter().map(|value| (name.to_string(), value)));
                fields
            });
        }
        fields
    }

    fn write(&self, value: &Vec<(String, String)>) -> toml::Value {
        let mut by_name: BTreeMap<&str, Vec<toml::Value>> = BTreeMap::new();
        for (name, value) in value {
            by_name.entry(name).or_default().push(value.as_str().into());
        }
        let entry = |(name, mut values): (&str, Vec<_>)| {
            let value = if values.len() == 1 { values.remove(0) } else { toml::Value::Array(values) };
            (name.to_owned(), value)
        };
        toml::Value::Table(by_name.into_iter().map(entry).collect())
    }
}

/// The value of a field.
pub(crate) const FIELD_VALUE: TextOf = TextOf {
    accepted: "the value of a response field",
    check: |value| match field_value_is_safe(value.as_bytes()) {
        true => Ok(value),
        false => Err(Wrong::new("has a value that no field can have", "expected no blanks around it")),
    },
};
