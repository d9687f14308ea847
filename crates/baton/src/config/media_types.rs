//! `[media_types]`: extensions and their types, beside the built-in ones.

use std::collections::BTreeMap;

use super::fields::FieldValue;
use super::kind::{Kind, Reading};
use super::raw::Node;
use super::setting::Table;

/// Media types by extension, without its dot and in lower case.
pub(crate) type MediaTypes = BTreeMap<String, String>;

/// What the section is about.
pub(crate) const ABOUT: &[&str] = &[
    " Media types by extension, beside the built-in ones and before them: `wasm = \"application/wasm\"`. They are sent as",
    " they are written: a text's should name its charset.",
];

/// Reads the section.
pub(crate) fn read(table: &Table<'_>, reading: &mut Reading<'_>) -> MediaTypes {
    let mut types = MediaTypes::new();
    for (key, node) in table.entries() {
        reading.setting = format!("media_types.{}", key.get_ref());
        let extension = key.get_ref().to_ascii_lowercase();
        if extension.is_empty() || extension.contains(['.', '/']) {
            reading.refuse(key.span(), "is not an extension", "expected one without dots, such as `wasm`");
        }
        let Some(media_type) = MediaType.read(node, reading) else { continue };
        types.insert(extension, media_type);
    }
    types
}

/// `type/subtype`, perhaps with parameters.
pub(crate) struct MediaType;

impl Kind for MediaType {
    type Value = String;

    fn accepted(&self) -> String {
        "a media type such as \"text/html\"".into()
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
        let text = FieldValue.read(node, reading)?;
        let essence = text.split(';').next().unwrap_or("").trim();
        let parts: Vec<_> = essence.split('/').collect();
        if parts.len() != 2 || parts.iter().any(|part| part.is_empty() || part.contains(char::is_whitespace))
        {
            reading.refuse(node.span(), "is not a media type", format!("expected {}", self.accepted()));
            return None;
        }
        Some(text)
    }

    fn write(&self, value: &String) -> toml::Value {
        value.as_str().into()
    }
}
