//! Which file a response is about. The response names it by its entity tag, which is made of the file's identity: so a
//! name is only reported if it is certain.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_config::{Files, RouteSettings};
use baton_content::Tree;
use baton_http::{Coding, ETag, FileState, decode_path};

/// The file with this tag among those that a path may stand for, and its size in bytes.
pub(super) fn find(
    files: &Files,
    route: Option<&RouteSettings>,
    path: &str,
    tag: &[u8],
) -> Option<(PathBuf, u64)> {
    let mut names = candidates(files, route, path)?.flat_map(with_siblings);
    names.find_map(|name| has_tag(&name, tag).map(|size| (name, size)))
}

/// The script that is not sent among those files.
pub(super) fn withheld(
    files: &Files,
    route: Option<&RouteSettings>,
    path: &str,
    tree: &Tree,
) -> Option<PathBuf> {
    let is_withheld = |name: &PathBuf| tree.withholds(name.as_os_str().as_bytes()) && name.is_file();
    candidates(files, route, path)?.find(is_withheld)
}

/// Files that a path may stand for: itself, an index, the fallback.
fn candidates<'f>(
    files: &'f Files,
    route: Option<&RouteSettings>,
    path: &str,
) -> Option<impl Iterator<Item = PathBuf> + use<'f>> {
    let root = files.root.as_ref()?;
    let mut relative = Vec::new();
    decode_path(path.split('?').next().unwrap_or(path).as_bytes(), &mut relative).ok()?;
    let named = root.join(OsStr::from_bytes(below_root(route, &relative)));
    let indexes: Vec<_> = files.index.iter().map(|index| named.join(index)).collect();
    let fallback = files.fallback.iter().map(|fallback| root.join(fallback));
    let tried = files.try_files.iter().flat_map(|tried| &tried.candidates);
    let tried = tried.filter_map(|candidate| candidate.name(&relative));
    let tried: Vec<_> = tried.map(|name| root.join(OsStr::from_bytes(below_root(route, &name)))).collect();
    Some(std::iter::once(named).chain(indexes).chain(fallback).chain(tried))
}

/// A decoded path without what the route takes off.
pub(super) fn below_root<'p>(route: Option<&RouteSettings>, decoded: &'p [u8]) -> &'p [u8] {
    let prefix = route.filter(|route| route.strip_prefix).map_or("", |route| route.path.trim_matches('/'));
    let relative = decoded.strip_prefix(prefix.as_bytes()).unwrap_or(decoded);
    relative.strip_prefix(b"/").unwrap_or(relative)
}

const CODINGS: [Coding; 4] = [Coding::Identity, Coding::Brotli, Coding::Zstd, Coding::Gzip];

fn with_siblings(name: PathBuf) -> impl Iterator<Item = PathBuf> {
    CODINGS.into_iter().map(move |coding| {
        let mut sibling = name.clone().into_os_string();
        sibling.push(coding.extension());
        sibling.into()
    })
}

fn has_tag(name: &Path, tag: &[u8]) -> Option<u64> {
    let file = name.metadata().ok()?;
    let nanoseconds = |count: i64| u32::try_from(count).ok();
    let state = FileState {
        size: file.size(),
        modified: (file.mtime(), nanoseconds(file.mtime_nsec())?),
        changed: (file.ctime(), nanoseconds(file.ctime_nsec())?),
        inode: file.ino(),
    };
    let identity = state.etag();
    let is_its = |tagged: ETag| tagged.as_ref() == tag || tagged.weakened().as_ref() == tag;
    CODINGS.iter().any(|coding| is_its(identity.in_coding(*coding))).then_some(file.size())
}
