//! A symbolic link that the tree does not follow: how it is reported, and which ones have been.
//!
//! Clients do not learn of them. The operator does, because the kernel's error (`EXDEV`, `ELOOP`) names neither the
//! link nor the setting.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::tree_config::Symlinks;

/// A link that is not followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenLink {
    pub(crate) root: PathBuf,
    /// The requested path and the link on it, relative to the root.
    pub(crate) asked: Vec<u8>,
    pub(crate) path: Vec<u8>,
    pub(crate) target: Vec<u8>,
    /// Under which policy it is hidden.
    pub(crate) symlinks: Symlinks,
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

    /// Whether a reported link hides this path, or no more links will be reported.
    pub(crate) fn knows(&self, path: &[u8]) -> bool {
        self.met().knows(path)
    }

    /// Reports the link that hides the requested path, unless another thread has just done so.
    pub(crate) fn note(&self, link: HiddenLink) {
        let mut met = self.met();
        if !met.knows(&link.asked) {
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
    fn knows(&self, path: &[u8]) -> bool {
        let is_behind =
            |link: &Vec<u8>| path.strip_prefix(&link[..]).is_some_and(|rest| matches!(rest, [] | [b'/', ..]));
        self.known.len() >= KNOWN_MAX || self.known.iter().any(is_behind)
    }
}

/// Most links reported: more are intended, not a mistake.
const KNOWN_MAX: usize = 64;
