//! The configuration of a folder that is served.

use std::path::PathBuf;
use std::sync::Arc;

use baton_compress::Rules;
use baton_http::{Coding, FieldRules, MediaTypes, is_media_type};
use baton_pattern::Pattern;

use crate::candidate::Candidate;

/// Configuration of a [`Tree`](crate::Tree).
#[derive(Clone, Debug)]
pub struct TreeConfig {
    /// The folder.
    pub root: PathBuf,
    /// Prefix of the request's path that does not belong to the path in the folder, such as `/static`; empty for none.
    pub strip_prefix: String,
    /// Names of index files, tried in order.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed.
    pub listing: Listing,
    /// File, relative to the root, that answers with 200 when nothing else is found: the page of a single-page application.
    pub fallback: Option<String>,
    /// What may answer a path, in order; empty: the path itself, and the index of a folder.
    pub candidates: Vec<Candidate>,
    /// Whether names that begin with '.' are served. If not, they are [`crate::Found::Missing`], except `.well-known`
    /// at the root (RFC 8615).
    pub hidden: bool,
    /// Where symbolic links may lead.
    pub symlinks: Symlinks,
    /// Codings of precompressed copies beside files: `page.html.br` beside `page.html`.
    pub precompressed: Vec<Coding>,
    /// Which files without such a copy are coded on the fly; `None`: none.
    pub compress: Option<Arc<Rules>>,
    /// `Cache-Control` of files: the first rule that matches counts.
    pub cache_control: Vec<CacheRule>,
    /// Endings of script names, such as `.php`: they are [`crate::Found::Script`], and never sent.
    pub scripts: Vec<String>,
    /// Endings of names that are source code, which is missing where it is not run: see
    /// [`is_named_like_a_script`](crate::is_named_like_a_script).
    pub withheld: Vec<String>,
    /// Rules for the fields of replies with a file, without those that follow from the file or the connection, such
    /// as `Content-Length`.
    pub headers: FieldRules,
    /// Media types by extension.
    pub media_types: Arc<MediaTypes>,
    /// Whether replies name the server.
    pub server_header: bool,
}

impl Default for TreeConfig {
    fn default() -> Self {
        Self {
            root: PathBuf::from("."),
            strip_prefix: String::new(),
            index: vec!["index.html".to_owned()],
            listing: Listing::Off,
            fallback: None,
            candidates: Vec::new(),
            hidden: false,
            symlinks: Symlinks::Beneath,
            precompressed: Vec::new(),
            compress: None,
            cache_control: Vec::new(),
            scripts: Vec::new(),
            withheld: Vec::new(),
            headers: FieldRules::default(),
            media_types: Arc::new(MediaTypes::builtin()),
            server_header: true,
        }
    }
}

/// Whether a directory without an index is listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Listing {
    /// The folder is [`crate::Found::Missing`].
    #[default]
    Off,
    /// The folder is listed, as HTML or JSON.
    On,
}

/// Where symbolic links may lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Anywhere beneath the root; absolute links lead out of it, wherever they point.
    #[default]
    Beneath,
    /// There are none: a path with a link in it is missing.
    Refused,
    /// Anywhere, out of the root too.
    Anywhere,
}

impl CacheRule {
    /// Whether it is about a file with this media type and this path, which begins with a slash.
    pub(crate) fn is_about(&self, path: &[u8], media_type: &str) -> bool {
        let is_it = |own: &String| is_media_type(media_type, own);
        (self.types.is_empty() || self.types.iter().any(is_it)) && self.pattern.matches(path)
    }
}

/// A rule for the `Cache-Control` of some files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheRule {
    /// Which files, by their paths below the root.
    pub pattern: Pattern,
    /// Of these, which media types, in lower case: `text/css`, or `image/*` for all of a kind. Empty: any.
    pub types: Vec<String>,
    /// Value of the field.
    pub value: String,
}
