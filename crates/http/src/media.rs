//! Media types by the extensions of names.

use std::collections::HashMap;

/// Media types by file name.
///
/// The registry is that of the `mime_guess` crate, with a few corrections. Types that are text say that
/// Baton serves UTF-8: otherwise browsers guess.
#[derive(Clone, Debug)]
pub struct MediaTypes {
    /// Types that differ from the registry's, or that must be completed, by extension in lower case.
    by_extension: HashMap<String, String>,
}

impl MediaTypes {
    /// The built-in types.
    pub fn builtin() -> Self {
        let text_extensions = mime_guess::get_extensions("text", "*").unwrap_or_default();
        let text = text_extensions.iter().filter_map(|extension| {
            let text_type =
                mime_guess::from_ext(extension).iter_raw().find(|name| name.starts_with("text/"))?;
            Some((*extension, format!("{text_type}{UTF_8}")))
        });
        let corrected =
            CORRECTIONS.iter().map(|(extension, media_type)| (*extension, (*media_type).to_owned()));
        let by_extension =
            text.chain(corrected).map(|(extension, name)| (extension.to_owned(), name)).collect();
        Self { by_extension }
    }

    /// Gives an extension, without its dot, in any case, another type, which is sent as it is written.
    pub fn set(&mut self, extension: &str, media_type: &str) {
        debug_assert!(crate::field_value_is_safe(media_type.as_bytes()));
        self.by_extension.insert(extension.to_ascii_lowercase(), media_type.to_owned());
    }

    /// The type of a file with this path or name, by its last extension in any case; `application/octet-stream` if
    /// unknown.
    pub fn of(&self, path: &[u8]) -> &str {
        extension(path).and_then(|extension| self.of_extension(extension)).unwrap_or(UNKNOWN)
    }

    fn of_extension(&self, extension: &[u8]) -> Option<&str> {
        let mut lower = [0; EXTENSION_BYTES_MAX];
        let lower = lower.get_mut(..extension.len())?;
        lower.copy_from_slice(extension);
        lower.make_ascii_lowercase();
        let extension = std::str::from_utf8(lower).ok()?;
        match self.by_extension.get(extension) {
            Some(media_type) => Some(media_type),
            None => mime_guess::from_ext(extension).first_raw(),
        }
    }
}

impl Default for MediaTypes {
    fn default() -> Self {
        Self::builtin()
    }
}

/// The text after the last dot of the last name; `None` if the text before or after the dot is empty.
fn extension(path: &[u8]) -> Option<&[u8]> {
    let name = memchr::memrchr(b'/', path).map_or(path, |slash| &path[slash + 1..]);
    match memchr::memrchr(b'.', name)? {
        0 => None,
        dot => Some(&name[dot + 1..]).filter(|extension| !extension.is_empty()),
    }
}

const UNKNOWN: &str = "application/octet-stream";
const UTF_8: &str = "; charset=utf-8";

/// Longer extensions have no type.
const EXTENSION_BYTES_MAX: usize = 32;

/// Where the registry is outdated, differs from the web's usage, or names a textual type that does not begin with
/// `text/`.
const CORRECTIONS: &[(&str, &str)] = &[
    ("atom", "application/atom+xml; charset=utf-8"),
    ("geojson", "application/geo+json; charset=utf-8"),
    ("ico", "image/vnd.microsoft.icon"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json; charset=utf-8"),
    ("jsonld", "application/ld+json; charset=utf-8"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("m4s", "video/iso.segment"),
    ("map", "application/json; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mpd", "application/dash+xml; charset=utf-8"),
    ("rss", "application/rss+xml; charset=utf-8"),
    ("svg", "image/svg+xml; charset=utf-8"),
    ("toml", "application/toml; charset=utf-8"),
    // The registry knows an audio format; on the web it is a transport stream of HLS.
    ("ts", "video/mp2t"),
    ("webmanifest", "application/manifest+json; charset=utf-8"),
    ("woff", "font/woff"),
    ("xhtml", "application/xhtml+xml; charset=utf-8"),
    ("xml", "application/xml; charset=utf-8"),
    ("yaml", "application/yaml; charset=utf-8"),
    ("yml", "application/yaml; charset=utf-8"),
    ("zst", "application/zstd"),
];

/// Whether a media type, perhaps with parameters, is `kind`: one in lower case, or `image/*` for all of a kind.
pub fn is_media_type(media_type: &str, kind: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim_ascii().as_bytes();
    match kind.strip_suffix('*') {
        Some(kind) => essence.get(..kind.len()).is_some_and(|of| of.eq_ignore_ascii_case(kind.as_bytes())),
        None => essence.eq_ignore_ascii_case(kind.as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_types_of_their_extensions() {
        let types = MediaTypes::builtin();
        for (path, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b/INDEX.HTM", "text/html; charset=utf-8"),
            ("style.css", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("data.json", "application/json; charset=utf-8"),
            ("feed.xml", "application/xml; charset=utf-8"),
            ("logo.svg", "image/svg+xml; charset=utf-8"),
            ("README.md", "text/markdown; charset=utf-8"),
            ("notes.txt", "text/plain; charset=utf-8"),
            ("table.csv", "text/csv; charset=utf-8"),
            ("photo.JPG", "image/jpeg"),
            ("photo.avif", "image/avif"),
            ("photo.webp", "image/webp"),
            ("film.mp4", "video/mp4"),
            ("film.ts", "video/mp2t"),
            ("code.wasm", "application/wasm"),
            ("font.woff2", "font/woff2"),
            ("paper.pdf", "application/pdf"),
            ("archive.tar.gz", "application/gzip"),
            ("Makefile", UNKNOWN),
            ("a.html/file", UNKNOWN),
            (".html", UNKNOWN),
            ("dir/.css", UNKNOWN),
            ("trailing.", UNKNOWN),
            ("", UNKNOWN),
            ("a.no-such-extension", UNKNOWN),
        ] {
            assert_eq!(types.of(path.as_bytes()), expected, "{path}");
        }
        assert_eq!(types.of(b"a.\xff\xff"), UNKNOWN);
        assert_eq!(types.of(&[b"a.".as_slice(), &[b'x'; 300]].concat()), UNKNOWN);
    }

    #[test]
    fn every_text_type_says_its_charset() {
        let types = MediaTypes::builtin();
        for extension in mime_guess::get_extensions("text", "*").unwrap() {
            let media_type = types.of(format!("a.{extension}").as_bytes());
            assert!(
                !media_type.starts_with("text/") || media_type.ends_with(UTF_8),
                "{extension} {media_type}"
            );
        }
    }

    #[test]
    fn what_is_set_goes_before_what_is_built_in() {
        let mut types = MediaTypes::builtin();
        types.set("HTML", "text/html; charset=iso-8859-1");
        types.set("baton", "application/x-baton");
        assert_eq!(types.of(b"a.html"), "text/html; charset=iso-8859-1");
        assert_eq!(types.of(b"a.Baton"), "application/x-baton");
        assert_eq!(types.of(b"a.htm"), "text/html; charset=utf-8");
    }
}
