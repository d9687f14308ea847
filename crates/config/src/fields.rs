//! What users do to fields of responses and of requests for origins: set, add, remove them, or give defaults.

use std::collections::BTreeMap;
use std::ops::Range;

use baton_http::origin::field_may_be_ruled;
use baton_http::{FieldRules, VariableText, field_name_is_safe, field_value_is_safe, is_same_field};
use toml::Spanned;

use super::kind::{Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::shown::Shown;
use super::text::{Text, TextOf, Wrong};

/// Rules for response fields; an array gives a field several times.
pub(crate) struct Fields;

/// Rules for fields of requests that go on to an origin; an array gives a field several times.
pub(crate) struct RequestFields;

/// Says what to do instead of changing a field, if it is not the configuration's to change.
type Reserved = fn(&str) -> Option<&'static str>;

/// Fields that follow from the content and the connection, and what to use instead. A second `Content-Length` or
/// `Connection` would break the framing of responses.
const RESERVED: [(&str, &str); 13] = [
    ("accept-ranges", "it is always sent"),
    ("connection", "it follows from the request"),
    ("content-encoding", "use `compress` or `precompressed`"),
    ("content-length", "it follows from the content"),
    ("content-range", "it follows from the request"),
    ("content-type", "use [media_types]"),
    ("date", "it is always sent"),
    ("etag", "it follows from the content"),
    ("keep-alive", "it follows from the request"),
    ("last-modified", "it follows from the content"),
    ("server", "use `server.server_header`"),
    ("transfer-encoding", "it follows from the content"),
    ("vary", "it follows from `compress` and `precompressed`"),
];

impl Kind for Fields {
    type Value = FieldRules;

    const SHOWN: Shown = Shown::Names;

    fn accepted(&self) -> String {
        ACCEPTED.into()
    }

    fn schema(&self) -> Schema {
        Schema::table_of(Schema::Any)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<FieldRules> {
        read_rules(node, reserved_in_responses, reading)
    }

    fn write(&self, value: &FieldRules) -> toml::Value {
        write_rules(value)
    }
}

impl Kind for RequestFields {
    type Value = FieldRules;

    const SHOWN: Shown = Shown::Names;

    fn accepted(&self) -> String {
        ACCEPTED.into()
    }

    fn schema(&self) -> Schema {
        Schema::table_of(Schema::Any)
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<FieldRules> {
        read_rules(node, reserved_in_requests, reading)
    }

    fn write(&self, value: &FieldRules) -> toml::Value {
        write_rules(value)
    }
}

const ACCEPTED: &str = "a table of strings or arrays of strings: { NAME = \"VALUE\" }, or of such tables: { set = { … }, \
                        add = { … }, remove = [\"NAME\"], default = { … } }";

fn reserved_in_responses(name: &str) -> Option<&'static str> {
    let reserved = RESERVED.iter().find(|(reserved, _)| is_same_field(name, reserved));
    reserved.map(|(_, instead)| *instead)
}

fn reserved_in_requests(name: &str) -> Option<&'static str> {
    match is_same_field(name, "host") {
        true => Some("use `host`"),
        false if field_may_be_ruled(name) => None,
        false => Some("it follows from the request"),
    }
}

fn read_rules(node: &Node, reserved: Reserved, reading: &mut Reading<'_>) -> Option<FieldRules> {
    let Value::Table(entries) = node.get_ref() else {
        return reading.mismatch(node, ACCEPTED);
    };
    let mut rules = FieldRules::default();
    let mut all_are_fine = true;
    for (key, value) in entries {
        let is_fine = match key.get_ref().as_str() {
            "add" => read_fields(value, &mut rules.add, reserved, reading),
            "default" => read_fields(value, &mut rules.default, reserved, reading),
            "set" => read_fields(value, &mut rules.set, reserved, reading),
            "remove" => read_names(value, &mut rules.remove, reserved, reading),
            // What stands there without a word is set.
            _ => read_field(key, value, &mut rules.set, reserved, reading),
        };
        all_are_fine &= is_fine.is_some();
    }
    all_are_fine.then_some(rules)
}

fn write_rules(value: &FieldRules) -> toml::Value {
    let FieldRules { set, add, remove, default } = value;
    if add.is_empty() && remove.is_empty() && default.is_empty() {
        return written(set);
    }
    let remove = remove.iter().map(|name| name.as_str().into()).collect::<Vec<toml::Value>>();
    let words = [("set", written(set)), ("add", written(add)), ("default", written(default))];
    let words = words.into_iter().chain([("remove", toml::Value::Array(remove))]);
    let is_given = |value: &toml::Value| {
        value.as_table().is_some_and(|table| !table.is_empty())
            || value.as_array().is_some_and(|array| !array.is_empty())
    };
    let words = words.filter(|(_, value)| is_given(value)).map(|(word, value)| (word.to_owned(), value));
    toml::Value::Table(words.collect())
}

/// Reads fields by name; nothing if one of them was refused.
fn read_fields(
    node: &Node,
    fields: &mut Vec<(String, VariableText)>,
    reserved: Reserved,
    reading: &mut Reading<'_>,
) -> Option<()> {
    let Value::Table(entries) = node.get_ref() else {
        return reading.mismatch(node, "a table of strings or arrays of strings: { NAME = \"VALUE\" }");
    };
    // All of them are read, so that every mistake is reported.
    let each: Vec<_> =
        entries.iter().map(|(key, value)| read_field(key, value, fields, reserved, reading)).collect();
    each.into_iter().collect()
}

/// Reads a field: its value, or an array of them.
fn read_field(
    key: &Spanned<String>,
    value: &Node,
    fields: &mut Vec<(String, VariableText)>,
    reserved: Reserved,
    reading: &mut Reading<'_>,
) -> Option<()> {
    let name = key.get_ref();
    let is_fine = check_name(name, key.span(), reserved, reading);
    let values = match value.get_ref() {
        Value::Array(_) => ListOf(VariableValue).read(value, reading),
        _ => VariableValue.read(value, reading).map(|value| vec![value]),
    };
    fields.extend(values?.into_iter().map(|value| (name.to_string(), value)));
    is_fine
}

/// Reads names of fields.
fn read_names(
    node: &Node,
    names: &mut Vec<String>,
    reserved: Reserved,
    reading: &mut Reading<'_>,
) -> Option<()> {
    let Value::Array(elements) = node.get_ref() else {
        return reading.mismatch(node, "an array of names: [\"NAME\"]");
    };
    let mut read_name = |element: &Node| {
        let name = Text.read(element, reading)?;
        let is_fine = check_name(&name, element.span(), reserved, reading);
        names.push(name);
        is_fine
    };
    let each: Vec<_> = elements.iter().map(&mut read_name).collect();
    each.into_iter().collect()
}

/// Complains about a name that is not the configuration's to change.
fn check_name(name: &str, span: Range<usize>, reserved: Reserved, reading: &mut Reading<'_>) -> Option<()> {
    let (problem, label) = match reserved(name) {
        Some(instead) => ("sets a field that the server sets itself", instead),
        None if !field_name_is_safe(name.as_bytes()) => {
            ("has a bad field name", "expected letters, digits and hyphens")
        }
        None => return Some(()),
    };
    reading.refuse(span, problem, label);
    None
}

/// Fields by name, as they are read.
fn written(fields: &[(String, VariableText)]) -> toml::Value {
    let mut by_name: BTreeMap<&str, Vec<toml::Value>> = BTreeMap::new();
    for (name, value) in fields {
        by_name.entry(name).or_default().push(VariableValue.write(value));
    }
    let entry = |(name, mut values): (&str, Vec<_>)| {
        let value = if values.len() == 1 { values.remove(0) } else { toml::Value::Array(values) };
        (name.to_owned(), value)
    };
    toml::Value::Table(by_name.into_iter().map(entry).collect())
}

/// The value of a field, with parts of the request.
struct VariableValue;

impl Kind for VariableValue {
    type Value = VariableText;

    const SHOWN: Shown = Shown::Whole;

    fn accepted(&self) -> String {
        FIELD_VALUE.accepted()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<VariableText> {
        variable_text(&FIELD_VALUE.read(node, reading)?, node, reading)
    }

    fn write(&self, value: &VariableText) -> toml::Value {
        value.to_string().into()
    }
}

/// Reads a text with variables, which stands at this node.
pub(crate) fn variable_text(text: &str, node: &Node, reading: &mut Reading<'_>) -> Option<VariableText> {
    let value = VariableText::parse(text);
    if value.is_err() {
        let label = "expected a name behind `$`, such as `$client_ip`; `$$` is a dollar";
        reading.refuse(node.span(), "has a `$` that begins no variable", label);
    }
    value.ok()
}

/// The value of a field.
pub(crate) const FIELD_VALUE: TextOf = TextOf {
    accepted: "the value of a response field",
    check: |value| match field_value_is_safe(value.as_bytes()) {
        true => Ok(value),
        false => Err(Wrong::new("has a value that no field can have", "expected no blanks around it")),
    },
};
