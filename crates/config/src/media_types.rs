//! `[media_types]`: extensions and their types, in addition to the built-in ones.

use std::collections::BTreeMap;

use baton_http::field_name_is_safe;

use super::fields::FIELD_VALUE;
use super::kind::{Kind, Reading};
use super::setting::Table;
use super::text::{TextOf, Wrong};

/// Media types by extension, without its dot and in lower case.
pub type MediaTypes = BTreeMap<String, String>;

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
        let Some(media_type) = MEDIA_TYPE.read(node, reading) else { continue };
        types.insert(extension, media_type);
    }
    types
}

/// `type/subtype`, perhaps with parameters.
pub(crate) const MEDIA_TYPE: TextOf = TextOf {
    accepted: "a media type such as \"text/html\"",
    check: |text| {
        let essence = text.split(';').next().unwrap_or_default();
        let parts: Vec<_> = essence.trim_end().split('/').collect();
        match parts.len() == 2 && parts.iter().all(|part| field_name_is_safe(part.as_bytes())) {
            // As a whole it is the value of a field.
            true => (FIELD_VALUE.check)(text),
            false => Err(Wrong::new("is not a media type", "expected one such as \"text/html\"")),
        }
    },
};

/// A media type without parameters, or all of a kind.
pub(crate) const MEDIA_TYPES: TextOf = TextOf {
    accepted: "a media type such as \"text/css\" or \"image/*\"",
    check: |text| match text.split_once('/') {
        Some((kind, subtype))
            if kind != "*" && [kind, subtype].iter().all(|part| field_name_is_safe(part.as_bytes())) =>
        {
            Ok(text.to_ascii_lowercase())
        }
        _ => Err(Wrong::new(
            "is no media type",
            "expected one such as \"text/css\", or all of a kind, such as \"image/*\"; without parameters",
        )),
    },
};
