//! Symbolic links that the tree does not follow: which one keeps a path from being found, and what would let it.
//!
//! Clients do not learn of them. The operator does, because the kernel's error (`EXDEV`, `ELOOP`) names neither the
//! link nor the setting.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::disk::{self, Blocking, DiskError};
use crate::tree::{Symlinks, Tree};

/// A link that is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenLink {
    root: PathBuf,
    /// The requested path and the link on it, relative to the root.
    asked: Vec<u8>,
    path: Vec<u8>,
    target: Vec<u8>,
    /// Under which policy it is hidden.
    symlinks: Symlinks,
}

impl fmt::Display for HiddenLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from the file system: what could end a line of a log is escaped.
        let [asked, path, target] =
            [&self.asked, &self.path, &self.target].map(|name| String::from_utf8_lossy(name));
        let (asked, path, target) = (asked.escape_debug(), path.escape_debug(), target.escape_debug());
        write!(f, "{asked} is not found: the link {path} -> {target} in {} ", self.root.display())?;
        f.write_str(match self.symlinks {
            Symlinks::Refused => "is not followed, since `symlinks` is \"refused\"",
            Symlinks::Beneath | Symlinks::Anywhere => {
                "is absolute or leads out of it, and `symlinks` is \"beneath\": \"anywhere\" follows it"
            }
        })
    }
}

/// The hidden links of a tree that requests have come upon.
#[derive(Debug, Default)]
pub(crate) struct HiddenLinks {
    /// Whether there is a new link; checking it takes no lock.
    has_news: AtomicBool,
    met: Mutex<Met>,
}

#[derive(Debug, Default)]
struct Met {
    /// Paths of links that have been reported.
    known: Vec<Vec<u8>>,
    news: Option<HiddenLink>,
}

impl HiddenLinks {
    /// The link that was met last, if it was met for the first time.
    pub(crate) fn take_news(&self) -> Option<HiddenLink> {
        if !self.has_news.load(Ordering::Relaxed) {
            return None;
        }
        self.has_news.store(false, Ordering::Relaxed);
        self.met().news.take()
    }

    /// A path was not found for this reason: remembers the link, once.
    pub(crate) fn note(&self, tree: &Tree, path: &[u8], errno: Errno, blocking: Blocking) {
        let is_hidden = match tree.config().symlinks {
            Symlinks::Beneath => errno == Errno::XDEV,
            Symlinks::Refused => errno == Errno::LOOP,
            Symlinks::Anywhere => false,
        };
        if !is_hidden {
            return;
        }
        // Searches without the lock: several threads may search, but one reports.
        if self.met().knows(path) {
            return;
        }
        if let Some(link) = find(tree, path, blocking)
            && let mut met = self.met()
            && !met.knows(path)
        {
            met.known.push(link.path.clone());
            met.news = Some(link);
            self.has_news.store(true, Ordering::Relaxed);
        }
    }

    fn met(&self) -> MutexGuard<'_, Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Met {
    /// Whether a reported link hides this path, or no more links will be reported.
    fn knows(&self, path: &[u8]) -> bool {
        let is_behind =
            |link: &Vec<u8>| path.strip_prefix(&link[..]).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        self.known.len() >= KNOWN_MAX || self.known.iter().any(is_behind)
    }
}

/// The first link of `path`, relative to the root, that the tree does not follow.
pub(crate) fn find(tree: &Tree, path: &[u8], blocking: Blocking) -> Option<HiddenLink> {
    let mut end = 0;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        // Slashes are single, and there are none in front.
        end += name.len() + usize::from(end > 0);
        let name = &path[..end];
        let Ok(Some(target)) = disk::link_target(tree, name, blocking) else { continue };
        if let Err(DiskError::Errno(Errno::XDEV | Errno::LOOP)) = disk::look(tree, name, blocking) {
            let config = tree.config();
            return Some(HiddenLink {
                root: config.root.clone(),
                asked: path.to_vec(),
                path: name.to_vec(),
                target,
                symlinks: config.symlinks,
            });
        }
    }
    None
}

/// Most links reported: more are intended, not a mistake.
const KNOWN_MAX: usize = 64;
