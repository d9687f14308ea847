//! From the path of a request to the file that answers it: Flash's name translation.

use baton_http::{AcceptedCodings, Coding, PathRefusal, decode_any_path, decode_path};

use crate::disk::{self, Blocking, DiskError, Identity, Kind, Verdict};
use crate::hidden_link::HiddenLink;
use crate::link_search;
use crate::tree::Tree;

/// Where a name leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    File(Target, Identity),
    /// A script to run, relative to the root.
    Script(Vec<u8>),
    /// A script to run where nothing is at the path, relative to the root: the fallback of the tree.
    Fallback(Vec<u8>),
    /// A directory to list, relative to the root: empty, or with a '/' at its end.
    Directory(Vec<u8>),
    /// A directory, requested without the '/' at its end.
    AddSlash,
    Missing,
    Forbidden,
    Refused(PathRefusal),
}

/// A file of a tree, in one of its codings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Relative to the root, the extension of the coding included.
    pub(crate) path: Vec<u8>,
    pub(crate) coding: Coding,
}

impl Target {
    /// The path without the extension of the coding: what decides on media type and rules.
    pub(crate) fn plain_path(&self) -> &[u8] {
        &self.path[..self.path.len() - self.coding.extension().len()]
    }
}

/// Follows the raw path of a request.
pub(crate) fn resolve(
    tree: &Tree,
    raw: &[u8],
    accepted: AcceptedCodings,
    blocking: Blocking,
) -> Result<Resolution, DiskError> {
    let mut path = Vec::with_capacity(raw.len() + ROOM_FOR_INDEX);
    let place = match decode_path(raw, &mut path) {
        Ok(()) if tree.config().candidates.is_empty() => named(tree, path, accepted, blocking)?,
        Ok(()) => candidate(tree, &path, accepted, blocking)?,
        // No file has such a name, but what answers for missing ones may handle it.
        Err(_) if tree.answers_for_missing() && decode_any_path(raw, &mut path).is_ok() => {
            Resolution::Missing
        }
        Err(refusal) => return Ok(Resolution::Refused(refusal)),
    };
    match (&tree.config().fallback, place) {
        (Some(fallback), Resolution::Missing) => {
            match file(tree, fallback.clone().into_bytes(), accepted, blocking)? {
                Resolution::Script(path) => Ok(Resolution::Fallback(path)),
                found @ Resolution::File(..) => Ok(found),
                _ => Ok(Resolution::Missing),
            }
        }
        (_, place) => Ok(place),
    }
}

/// The first candidate for a decoded path that is there.
fn candidate(
    tree: &Tree,
    path: &[u8],
    accepted: AcceptedCodings,
    blocking: Blocking,
) -> Result<Resolution, DiskError> {
    for candidate in &tree.config().candidates {
        let Some(name) = candidate.name(path) else { continue };
        let asks_for_folder = name.is_empty() || name.ends_with(b"/");
        let place = named(tree, name, accepted, blocking)?;
        let is_it = match &place {
            Resolution::Missing => false,
            // A folder whose path lacks its slash: it is no file.
            Resolution::AddSlash => candidate.is_folder(),
            Resolution::File(..) | Resolution::Script(_) => asks_for_folder == candidate.is_folder(),
            _ => true,
        };
        if is_it {
            return Ok(place);
        }
    }
    Ok(Resolution::Missing)
}

/// Follows a decoded path.
fn named(
    tree: &Tree,
    mut path: Vec<u8>,
    accepted: AcceptedCodings,
    blocking: Blocking,
) -> Result<Resolution, DiskError> {
    match enter(tree, &mut path) {
        Entered::Inside if path.is_empty() || path.ends_with(b"/") => {
            directory(tree, path, accepted, blocking)
        }
        Entered::Inside => file(tree, path, accepted, blocking),
        Entered::WithoutSlash => Ok(Resolution::AddSlash),
        Entered::Outside => Ok(Resolution::Missing),
    }
}

impl Tree {
    /// The link that keeps the raw path of a request from being found, if one does.
    pub fn hidden_link(&self, path: &[u8]) -> Option<HiddenLink> {
        let mut decoded = Vec::with_capacity(path.len());
        decode_path(path, &mut decoded).ok()?;
        let Entered::Inside = enter(self, &mut decoded) else { return None };
        let names: &[String] = match decoded.last() {
            None | Some(b'/') => &self.config().index,
            Some(_) => &[],
        };
        let indexes = names.iter().map(|index| [&decoded, index.as_bytes()].concat());
        let mut paths = std::iter::once(decoded.clone()).chain(indexes);
        paths.find_map(|path| link_search::find(self, &path, Blocking::Allowed))
    }
}

/// Room for the name of an index and the extension of a coding, so the path grows in place.
const ROOM_FOR_INDEX: usize = 32;

enum Entered {
    Inside,
    /// The path is the prefix of the tree itself.
    WithoutSlash,
    Outside,
}

/// Takes the tree's prefix off the decoded path, and keeps hidden names out.
fn enter(tree: &Tree, path: &mut Vec<u8>) -> Entered {
    let prefix = tree.config().strip_prefix.as_bytes();
    if !prefix.is_empty() {
        match path.strip_prefix(prefix) {
            Some([]) => return Entered::WithoutSlash,
            Some([b'/', ..]) => drop(path.drain(..=prefix.len())),
            _ => return Entered::Outside,
        }
    }
    if !tree.config().hidden && has_hidden_name(path) { Entered::Outside } else { Entered::Inside }
}

fn has_hidden_name(path: &[u8]) -> bool {
    let mut names = path.split(|&byte| byte == b'/').enumerate();
    names.any(|(depth, name)| name.starts_with(b".") && !(depth == 0 && name == b".well-known"))
}

/// A path with a '/' at its end: its index, its listing, or nothing.
fn directory(
    tree: &Tree,
    mut path: Vec<u8>,
    accepted: AcceptedCodings,
    blocking: Blocking,
) -> Result<Resolution, DiskError> {
    let end = path.len();
    for index in &tree.config().index {
        path.extend_from_slice(index.as_bytes());
        if tree.withholds(&path) {
            path.truncate(end);
            continue;
        }
        match examine(tree, &path, blocking)? {
            Examined::Regular(identity) => return representation(tree, path, identity, accepted, blocking),
            Examined::Closed => return Ok(Resolution::Forbidden),
            Examined::Directory | Examined::Nothing => path.truncate(end),
        }
    }
    if !tree.lists() {
        // Do not reveal whether the directory exists; this saves a call, too.
        return Ok(Resolution::Missing);
    }
    match examine(tree, &path, blocking)? {
        Examined::Directory => Ok(Resolution::Directory(path)),
        Examined::Closed => Ok(Resolution::Forbidden),
        Examined::Regular(_) | Examined::Nothing => Ok(Resolution::Missing),
    }
}

/// A path without a '/' at its end.
fn file(
    tree: &Tree,
    path: Vec<u8>,
    accepted: AcceptedCodings,
    blocking: Blocking,
) -> Result<Resolution, DiskError> {
    match examine(tree, &path, blocking)? {
        Examined::Regular(identity) => representation(tree, path, identity, accepted, blocking),
        Examined::Directory => Ok(Resolution::AddSlash),
        Examined::Closed => Ok(Resolution::Forbidden),
        Examined::Nothing => Ok(Resolution::Missing),
    }
}

/// The file at `path`, or the precompressed copy that the client prefers.
fn representation(
    tree: &Tree,
    mut path: Vec<u8>,
    identity: Identity,
    accepted: AcceptedCodings,
    blocking: Blocking,
) -> Result<Resolution, DiskError> {
    if tree.is_script(&path) {
        return Ok(Resolution::Script(path));
    }
    if tree.withholds(&path) {
        return Ok(Resolution::Missing);
    }
    let plain = path.len();
    for coding in accepted.in_order().take_while(|&coding| coding != Coding::Identity) {
        if !tree.config().precompressed.contains(&coding) {
            continue;
        }
        path.extend_from_slice(coding.extension().as_bytes());
        if let Examined::Regular(identity) = examine(tree, &path, blocking)? {
            return Ok(Resolution::File(Target { path, coding }, identity));
        }
        path.truncate(plain);
    }
    // If the client refuses the plain file too, it gets it all the same: RFC 9110, 12.5.3, prefers that to a 406.
    Ok(Resolution::File(Target { path, coding: Coding::Identity }, identity))
}

enum Examined {
    Regular(Identity),
    Directory,
    /// There is something that is not for the client.
    Closed,
    Nothing,
}

fn examine(tree: &Tree, path: &[u8], blocking: Blocking) -> Result<Examined, DiskError> {
    match disk::look(tree, path, blocking) {
        Ok((Kind::Regular, identity)) => Ok(Examined::Regular(identity)),
        Ok((Kind::Directory, _)) => Ok(Examined::Directory),
        Ok((Kind::Special, _)) => Ok(Examined::Closed),
        Err(DiskError::Errno(errno)) => match disk::verdict(errno) {
            Verdict::Missing => {
                link_search::note(tree, path, errno, blocking);
                Ok(Examined::Nothing)
            }
            Verdict::Forbidden => Ok(Examined::Closed),
            Verdict::Failed => Err(DiskError::Errno(errno)),
        },
        Err(DiskError::NeedsDisk) => Err(DiskError::NeedsDisk),
    }
}
