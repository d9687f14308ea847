//! How the files of a site, or of a route of it, are served.

use std::path::PathBuf;
use std::sync::Arc;

use baton_compress::Rules;
use baton_content::Symlinks;
use baton_http::response::says_no_transform;
use baton_http::{Coding, FieldRules, VariableText};
use baton_pattern::Pattern;

use super::compress::{Compress, CompressKind};
use super::error::Complaint;
use super::fields::{FIELD_VALUE, Fields};
use super::kind::{Flag, ListOf, Or, Reading};
use super::media_types::MEDIA_TYPES;
use super::route_pattern::GLOB;
use super::setting::{Inline, Section, Table, settings};
use super::system::Folder;
use super::text::{Text, TextOf, Wrong};
use super::try_files::{TryFiles, TryFilesKind};
use super::words::{Word, words};

words! {
    for Symlinks {
        /// followed while they stay beneath the root; absolute links are missing
        Beneath = "beneath",
        /// never followed: names beyond them are missing
        Refused = "refused",
        /// followed wherever they lead
        Anywhere = "anywhere",
    }
}

words! {
    for Coding {
        /// `name.br` beside `name`
        Brotli = "br",
        /// `name.zst`
        Zstd = "zstd",
        /// `name.gz`
        Gzip = "gzip",
    }
}

settings! {
    /// How files are served. A route inherits unset keys from its site.
    Files in "site" {
        /// Folder whose files are served. `off`: none, the site only has routes that redirect or respond.
        root: Option<PathBuf> = None, Or("off", Folder);
        /// Index files of a folder; the first that exists is served.
        index: Vec<String> = vec!["index.html".into()], ListOf(FILE_NAME);
        /// Whether folders without an index file are listed, as HTML or JSON. Off: 404.
        browse: bool = false, Flag;
        /// File, relative to the root, that answers with 200 where nothing is found: the start page of a single-page
        /// application.
        fallback: Option<String> = None, Or("off", Text);
        /// What answers, in order, and behind that the target or the status for paths without any of it: `["$path", "$path/",
        /// "/index.php"]`. `$path` is the file at the path, `$path/` the folder there with its index or listing, `$path.html`
        /// a file beside. The target may be a script with a query, `/index.php?q=$path&$query`, or a page; routes are looked
        /// up again for it, as with `rewrite`, with the method and the body of the request.
        try_files: Option<TryFiles> = None, Or("off", TryFilesKind);
        /// Whether names that begin with a dot are served. `.well-known` always is.
        hidden: bool = false, Flag;
        /// Whether scripts that no application runs are sent as they are, source code and all: files whose names end as the
        /// `scripts` of any route of the site say, or in `.php` or `.phtml`. Off: 404, and listings leave them out.
        script_sources: bool = false, Flag;
        /// Treatment of symbolic links.
        symlinks: Symlinks = Symlinks::Beneath, Word::<Symlinks>::new();
        /// Codings of precompressed copies beside a file, sent to clients that accept them. Among equals the first
        /// wins.
        precompressed: Vec<Coding> = vec![Coding::Brotli, Coding::Zstd, Coding::Gzip], ListOf(Word::<Coding>::new());
        /// Whether responses are compressed for clients that accept it: files once, for which a precompressed copy is better,
        /// and responses of applications and origins as they pass. `true`, or a table: what and how. See
        /// `docs/compression.md`, also on secrets in compressed responses.
        compress: Option<Compress> = None, CompressKind;
        /// Values of `Cache-Control` of files, by their media types, by a glob on the path, or by both; the first that matches
        /// counts: `[{ types = ["text/html"], value = "no-cache" }, { match = "/assets/**", value = "max-age=31536000" }]`.
        cache_control: Vec<CacheRule> = Vec::new(), ListOf(Inline::<CacheRule>::new());
        /// Rules for the fields of responses: of files, listings, redirections, errors and applications. `{
        /// X-Frame-Options = "DENY" }` sets a field: it replaces all of the application's by this name. With a kind:
        /// `{ set = { X-Frame-Options = "DENY" }, add = { Link = "</a>; rel=preload" }, remove = ["X-Powered-By"],
        /// default = { Cache-Control = "no-store" } }`: `add` keeps existing fields, `remove` removes them, `default`
        /// is for responses without the field. Values may have parts of the request, `{ X-Client = "$client_ip" }`; `$$` is a
        /// dollar. See `docs/conditions.md`.
        headers: FieldRules = FieldRules::default(), Fields;
    }
}

settings! {
    /// The value of `Cache-Control` for the files that `match` and `types` are both about; without them, for all.
    CacheRule in "site.cache_control" needs ["value"] {
        /// Glob on the file's path below `root`, as in a route: `*` is any run of characters within a folder, `**` any run,
        /// `?` one character. With a leading `/` it must match the whole path, otherwise any tail of it after a `/`. See
        /// `docs/locations.md`.
        r#match: Pattern = any_file(), GLOB;
        /// Media types, without parameters: `["text/css", "image/*"]`. None: all.
        types: Vec<String> = Vec::new(), ListOf(MEDIA_TYPES);
        /// Value of the field.
        value: String = "no-cache".into(), FIELD_VALUE;
    }
}

fn any_file() -> Pattern {
    Pattern::glob("*").unwrap_or_else(|_| unreachable!("a glob"))
}

impl Files {
    /// Reads the settings. A root that is refused has a stand-in, so that its absence is not a second mistake.
    pub fn read_with_root(table: &mut Table<'_>, base: Self, reading: &mut Reading<'_>) -> Self {
        let mut files = Self::read(table, base, reading);
        if let (Some(fallback), Some(tried)) = (table.span_of("fallback"), table.span_of("try_files"))
            && table.is_set("fallback")
            && table.is_set("try_files")
        {
            let complaint = Complaint::new("a folder has either `fallback` or `try_files`");
            let complaint = complaint.at(fallback, "answers what is missing").at(tried, "does so as well");
            reading.complain(complaint.help("the last of `try_files` is the fallback"));
        } else if table.is_set("try_files") {
            files.fallback = None;
        } else if table.is_set("fallback") {
            files.try_files = None;
        }
        if table.has_refused("root", reading) {
            files.root = Some("/".into());
        }
        files
    }

    /// Which responses of applications and origins are coded. None where `headers` has all of them say `no-transform`.
    pub(crate) fn coded_streams(&self) -> Option<Arc<Rules>> {
        let forbids = |(name, value): (&str, &VariableText)| {
            let says_so = |value: &str| says_no_transform(value.as_bytes());
            name.eq_ignore_ascii_case("Cache-Control") && value.fixed().is_some_and(says_so)
        };
        self.compress.as_ref().filter(|_| !self.headers.added().any(forbids)).map(Compress::rules)
    }
}

/// The name of a file in a folder: one path segment.
const FILE_NAME: TextOf = TextOf {
    accepted: "the name of a file",
    check: |name| match name.contains('/') || name == "." || name == ".." {
        true => Err(Wrong::new("is not the name of a file", "expected a name without `/`")),
        false => Ok(name),
    },
};
