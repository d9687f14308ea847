//! A look at a site's folder: its files, and the links of its pages. What has not changed is not read again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_http::MediaTypes;

use crate::links::{Link, Page, PageAddress, Use, of_style_sheet};
use crate::rules::{PAGE_BYTES_MAX, Stays, is_page};
use crate::settings::{FilesSettings, SiteSettings};
use crate::{DocumentFile, encode};

/// What is in a folder, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Folder {
    pub(super) documents: Arc<BTreeMap<String, DocumentFile>>,
}

/// Looks. What cannot be read is not there: it stays at home.
pub(super) fn look(settings: &SiteSettings, before: &Folder) -> Folder {
    let Some(files) = &settings.files else { return Folder::default() };
    let mut media_types = MediaTypes::builtin();
    for (extension, media_type) in &files.media_types {
        media_types.set(extension, media_type);
    }
    let mut look = Look { settings, files, media_types, before, found: BTreeMap::new() };
    look.folder(&files.root, "", 0);
    Folder { documents: Arc::new(look.found) }
}

struct Look<'a> {
    settings: &'a SiteSettings,
    files: &'a FilesSettings,
    media_types: MediaTypes,
    before: &'a Folder,
    found: BTreeMap<String, DocumentFile>,
}

impl Look<'_> {
    /// `within`: the path from the root, empty or with a slash at its end.
    fn folder(&mut self, path: &Path, within: &str, depth: usize) {
        let Ok(entries) = fs::read_dir(path) else { return };
        let mut names: Vec<String> = Vec::new();
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_hidden = name.starts_with('.') && !(within.is_empty() && name == ".well-known");
            // Links may lead to where the server does not follow them.
            let Some(kind) = entry.file_type().ok().filter(|_| self.files.hidden || !is_hidden) else {
                continue;
            };
            let full = format!("{within}{name}");
            if kind.is_dir() && depth < DEPTH_MAX {
                self.folder(&entry.path(), &format!("{full}/"), depth + 1);
            } else if kind.is_file()
                && !self.is_routed(&full)
                && self.found.len() < self.settings.documents_max
            {
                self.file(&entry.path(), &full);
                names.push(name);
            }
        }
        let index = self.files.index.iter().find(|index| names.contains(index));
        if let Some(found) =
            index.and_then(|index| self.found.get_mut(&encode(format!("{within}{index}").as_bytes())))
        {
            found.aliases = vec![encode(within.as_bytes())];
        }
    }

    fn file(&mut self, path: &Path, full: &str) {
        let Ok(metadata) = fs::metadata(path) else { return };
        let stamp = (metadata.ino(), metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        let name = encode(full.as_bytes());
        let media_type = self.media_types.of(full.as_bytes());
        let known = self.before.documents.get(&name).filter(|known| known.stamp == stamp);
        let links = match known {
            Some(known) => known.links.clone(),
            None if metadata.len() > PAGE_BYTES_MAX => Vec::new(),
            None => self.links(path, full, media_type).unwrap_or_default(),
        };
        // Workers may have the old bytes yet, and a peer would keep them.
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        let is_settled = age.is_none_or(|age| age >= SETTLED_AFTER);
        let stays = self.files.rules().keeps(&format!("/{full}"), media_type);
        let stays = stays.or_else(|| (!is_settled).then_some(Stays::Unsettled));
        self.found.insert(name, DocumentFile { stamp, aliases: Vec::new(), links, stays });
    }

    fn links(&self, path: &Path, full: &str, media_type: &str) -> io::Result<Vec<(String, Use)>> {
        let address = PageAddress { origin: &self.settings.at, path: full.as_bytes() };
        let named = |link: Link| (encode(&link.document), link.used);
        if is_page(media_type) {
            return Ok(Page::read(&fs::read(path)?, &address).links.into_iter().map(named).collect());
        }
        if media_type.starts_with("text/css") {
            let links = of_style_sheet(&fs::read(path)?, &address).into_iter();
            // They are not replaced: only what they pin matters.
            return Ok(links.filter(|link| link.used == Use::Pins).map(named).collect());
        }
        Ok(Vec::new())
    }

    /// Whether a route of the site answers for that path.
    fn is_routed(&self, full: &str) -> bool {
        self.files.routed.iter().any(|route| {
            let route = route.trim_matches('/');
            full.strip_prefix(route).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// How long a file must not have changed before it moves: longer than workers rely on what they know of it.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// Folders within folders.
const DEPTH_MAX: usize = 64;
