//! Listings of directories without an index: only entries that a client can request.

mod html;
mod json;

use std::ffi::CStr;

use baton_buf::Slice;
use baton_http::{Stamp, decode_path};
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use crate::cache::Query;
use crate::disk::{self, Blocking, DiskError, Identity, Kind};
use crate::tree::Tree;

/// The listing of a directory, made for one request.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The page or the JSON document.
    pub body: Slice,
    /// Complete lines of a head, each with its CRLF: media type and `Vary`.
    pub fields: Vec<u8>,
}

/// Further entries are left out; the listing says so.
const ENTRIES_MAX: usize = 10_000;

/// The contents of a listing.
struct Contents {
    /// As the client sees it: beginning and ending with '/', decoded.
    path: Vec<u8>,
    /// Directories first, each kind in the order of its bytes.
    entries: Vec<Entry>,
    /// Whether there were more than [`ENTRIES_MAX`].
    cut: bool,
}

struct Entry {
    name: Vec<u8>,
    is_directory: bool,
    size: u64,
    modified_unix_seconds: u64,
}

impl Entry {
    /// The reference from the listing to the entry. It begins with "./" so that a colon in a name does not make a scheme.
    fn href(&self) -> String {
        let mut href = String::from("./");
        percent_encode(&self.name, &mut href);
        if self.is_directory {
            href.push('/');
        }
        href
    }

    fn date(&self) -> Stamp {
        Stamp::at(self.modified_unix_seconds)
    }
}

/// Lists the directory at `path`, relative to the root: empty or with a '/' at its end. May wait for the disk.
pub(crate) fn list(tree: &Tree, path: &[u8], query: &Query<'_>) -> Result<Listed, DiskError> {
    let contents = read(tree, path)?;
    let (media_type, document) = if query.accept_json {
        ("application/json", json::document(&contents))
    } else {
        ("text/html; charset=utf-8", html::document(&contents))
    };
    let fields = format!("Content-Type: {media_type}\r\nVary: Accept\r\n").into_bytes();
    Ok(Listed { body: document.into_bytes().into(), fields })
}

fn read(tree: &Tree, path: &[u8]) -> Result<Contents, DiskError> {
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
            modified_unix_seconds: identity.modified_unix_seconds(),
        });
    }
    entries.sort_unstable_by(|a, b| b.is_directory.cmp(&a.is_directory).then_with(|| a.name.cmp(&b.name)));
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
