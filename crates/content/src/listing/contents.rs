//! The contents of a directory as a listing shows them: the entries that a client can request.

use std::ffi::CStr;

use baton_http::{Stamp, decode_path};
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::disk::{self, Blocking, DiskError, Identity, Kind};
use crate::tree::Tree;

/// Further entries are left out; the listing says so.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// The contents of a listing.
pub(super) struct Contents {
    /// The folder's path as the client sees it: beginning and ending with '/', decoded.
    pub(super) path: Vec<u8>,
    pub(super) entries: Vec<Entry>,
    /// Whether there were more than [`ENTRIES_MAX`].
    pub(super) cut: bool,
}

pub(super) struct Entry {
    pub(super) name: Vec<u8>,
    pub(super) is_directory: bool,
    pub(super) size: u64,
    pub(super) modified_unix_seconds: u64,
}

impl Entry {
    /// The reference from the listing to the entry. It begins with "./" so that a colon in a name does not make a scheme.
    pub(super) fn href(&self) -> String {
        let mut href = String::from("./");
        percent_encode(&self.name, &mut href);
        if self.is_directory {
            href.push('/');
        }
        href
    }

    pub(super) fn date(&self) -> Stamp {
        Stamp::at(self.modified_unix_seconds)
    }
}

/// Reads the directory at `path`, relative to the root. May wait for the disk.
pub(super) fn read(tree: &Tree, path: &[u8]) -> Result<Contents, DiskError> {
    let mut directory = Dir::new(disk::open_directory(tree, path)?).map_err(DiskError::Errno)?;
    let mut entries = Vec::new();
    let mut cut = false;
    while let Some(entry) = directory.read() {
        let entry = entry.map_err(DiskError::Errno)?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(b".")
            && (!tree.config().hidden || matches!(name.to_bytes(), b"." | b".."))
        {
            continue;
        }
        if !can_be_asked_for(name.to_bytes()) {
            continue;
        }
        let Some((kind, identity)) = examine(tree, path, &directory, name)? else { continue };
        if kind == Kind::Regular && tree.withholds(name.to_bytes()) {
            continue;
        }
        if entries.len() == ENTRIES_MAX {
            cut = true;
            break;
        }
        entries.push(Entry {
            name: name.to_bytes().to_vec(),
            is_directory: kind == Kind::Directory,
            size: identity.size,
            // As the file says, also where that is no date for clients: a listing is for people.
            modified_unix_seconds: u64::try_from(identity.modified.seconds).unwrap_or(0),
        });
    }
    let prefix = tree.config().strip_prefix.as_bytes();
    let slash: &[u8] = if prefix.is_empty() { b"" } else { b"/" };
    Ok(Contents { path: [b"/", prefix, slash, path].concat(), entries, cut })
}

/// Whether some path of a request names this entry. Paths with a backslash or a control character are refused,
/// percent-encoded or not.
fn can_be_asked_for(name: &[u8]) -> bool {
    let mut path = String::from("/");
    percent_encode(name, &mut path);
    let mut decoded = Vec::new();
    decode_path(path.as_bytes(), &mut decoded).is_ok() && decoded == name
}

/// Kind and state of one entry, or `None` if the tree would not serve it: special files, broken links, links out of
/// the root, and files deleted meanwhile.
fn examine(
    tree: &Tree,
    path: &[u8],
    directory: &Dir,
    name: &CStr,
) -> Result<Option<(Kind, Identity)>, DiskError> {
    let directory = directory.fd().map_err(DiskError::Errno)?;
    let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(DiskError::Errno(errno)),
    };
    let found = if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
        // Follows the link as far as the tree allows, which statat could not.
        match disk::look(tree, &[path, name.to_bytes()].concat(), Blocking::Allowed) {
            Ok(found) => found,
            Err(_) => return Ok(None),
        }
    } else {
        (Kind::of(&stat), Identity::of(&stat))
    };
    Ok((found.0 != Kind::Special).then_some(found))
}

fn percent_encode(bytes: &[u8], out: &mut String) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in bytes {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => {
                out.push('%');
                out.push(char::from(HEX[usize::from(byte >> 4)]));
                out.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
}
