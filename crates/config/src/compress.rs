//! `compress` of a site or a route: content codings that are made on the fly.

use std::sync::Arc;

use baton_compress::Rules;
use baton_http::{Coding, is_token_byte};

use super::error::Complaint;
use super::kind::{Bytes, Flag, Kind, ListOf, Reading};
use super::raw::{Node, Value};
use super::schema::Schema;
use super::setting::{Inline, settings};
use super::shown::Shown;
use super::text::{TextOf, Wrong};
use super::words::Word;

settings! {
    /// What is compressed on the fly, and how.
    Compress in "site.compress" {
        /// Codings, of which a client gets the one that it prefers. Among equals the first wins.
        codings: Vec<Coding> = Rules::default().codings, ListOf(Word::<Coding>::new());
        /// Media types that are worth it. One `*` in each stands for any run of characters: `text/*`, `*+json`.
        types: Vec<String> = Rules::default().types, ListOf(MEDIA_RANGE);
        /// Shorter bodies are sent as they are: they would become hardly shorter, or longer.
        min_bytes: u64 = Rules::default().min_bytes, Bytes(0, 1 << 30);
        /// Longer files are sent as they are: each is compressed as a whole. Responses of applications and origins have no
        /// such bound.
        max_bytes: u64 = Rules::default().max_bytes, Bytes(1, 64 << 20);
    }
}

impl Compress {
    /// What the engine makes of it.
    pub fn rules(&self) -> Arc<Rules> {
        let Self { codings, types, min_bytes, max_bytes } = self.clone();
        Arc::new(Rules { codings, types, min_bytes, max_bytes })
    }
}

/// `true`, or a table: how; `false`: not at all.
pub(crate) struct CompressKind;

impl Kind for CompressKind {
    type Value = Option<Compress>;

    const SHOWN: Shown = Inline::<Compress>::SHOWN.or_value();

    fn accepted(&self) -> String {
        format!("{}, or {}", Flag.accepted(), Inline::<Compress>::new().accepted())
    }

    fn schema(&self) -> Schema {
        Schema::either([Flag.schema(), Inline::<Compress>::new().schema()])
    }

    fn read(&self, node: &Node, reading: &mut Reading<'_>) -> Option<Self::Value> {
        match node.get_ref() {
            Value::Table(_) => {
                let compress = Inline::<Compress>::new().read(node, reading)?;
                complain_without_effect(&compress, node, reading);
                Some(Some(compress))
            }
            Value::Boolean(is_on) => Some(is_on.then(Compress::default)),
            _ => reading.mismatch(node, &self.accepted()),
        }
    }

    fn write(&self, value: &Self::Value) -> toml::Value {
        match value {
            Some(compress) => Inline::<Compress>::new().write(compress),
            None => false.into(),
        }
    }
}

/// Complains about settings with which nothing is compressed, and about types that are compressed in themselves.
fn complain_without_effect(compress: &Compress, node: &Node, reading: &mut Reading<'_>) {
    let nothing = match compress {
        _ if compress.codings.is_empty() => Some("no `codings`"),
        _ if compress.types.is_empty() => Some("no `types`"),
        _ if compress.min_bytes > compress.max_bytes => Some("a `min_bytes` above its `max_bytes`"),
        _ => None,
    };
    if let Some(nothing) = nothing {
        let complaint =
            Complaint::new("`compress` compresses nothing").at(node.span(), format!("has {nothing}"));
        reading.complain(complaint.help("write `compress = false` to compress nothing"));
    }
    let is_compressed = |range: &&String| {
        let lower = range.to_ascii_lowercase();
        COMPRESSED.iter().any(|prefix| lower.starts_with(prefix)) && !NOT_COMPRESSED.contains(&lower.as_str())
    };
    if let Some(range) = compress.types.iter().find(is_compressed) {
        let complaint = Complaint::new(format!("\"{range}\" is compressed in itself"));
        let complaint = complaint.at(node.span(), "would compress it again, for nothing");
        reading.complain(complaint.help("remove it from `types`"));
    }
}

/// A media type, or many.
const MEDIA_RANGE: TextOf = TextOf {
    accepted: "a media type such as \"text/html\", \"text/*\" or \"*+json\"",
    check: |text| {
        let is_range = text.bytes().all(|byte| is_token_byte(byte) || byte == b'/');
        let slashes = text.matches('/').count();
        let stars = text.matches('*').count();
        match is_range && stars <= 1 && (slashes == 1 || slashes == 0 && stars == 1) {
            true => Ok(text),
            false => Err(Wrong::new(
                "is no media type",
                "expected one such as \"text/html\", with at most one `*`",
            )),
        }
    },
};

/// Beginnings of media types whose formats compress.
const COMPRESSED: [&str; 12] = [
    "image/",
    "video/",
    "audio/",
    "font/woff",
    "application/zip",
    "application/gzip",
    "application/zstd",
    "application/x-7z",
    "application/x-rar",
    "application/x-bzip",
    "application/x-xz",
    "application/pdf",
];

/// Media types that begin as [`COMPRESSED`] says, but whose formats do not compress.
const NOT_COMPRESSED: [&str; 6] =
    ["image/svg+xml", "image/bmp", "image/vnd.microsoft.icon", "image/x-icon", "audio/wav", "audio/midi"];
