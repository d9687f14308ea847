//! What is compressed on the fly.

use super::scope::Scope;
use super::translator::Translator;
use crate::note::Weight;
use crate::values::bytes;
use crate::written::{Keys, Value};

impl Translator<'_> {
    /// The value of `compress` at a place; `None`: the directives say nothing of it.
    pub(super) fn compression(&mut self, scope: &Scope<'_>) -> Option<Value> {
        let gzip = scope.find("gzip")?;
        if gzip.argument(0) != "on" {
            return Some(false.into());
        }
        let text = "zstd and Brotli are on offer, too, for text and the like: name other media types in `types` of `compress`";
        self.note(gzip, Weight::Remark, text);
        Some(match scope.word("gzip_min_length").and_then(bytes) {
            None => true.into(),
            Some(min_bytes) => {
                let mut keys = Keys::default();
                keys.set("min_bytes", min_bytes);
                Value::Table(keys)
            }
        })
    }
}
