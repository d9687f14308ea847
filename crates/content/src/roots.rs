//! Open root folders: trees of one folder share its descriptor.
//!
//! Ten thousand sites may share one root, and a reload builds new trees while the old ones are still in use. So trees
//! share the descriptor of a folder; it closes with the last tree.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::Errno;

/// The open root folders, by identity, not by path.
#[derive(Debug, Default)]
pub struct Roots(Mutex<HashMap<Folder, Weak<OwnedFd>>>);

/// A folder as seen through a mount; another mount may show other contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Folder {
    /// 0 before Linux 5.8, which does not report it.
    mount: u64,
    device: (u32, u32),
    inode: u64,
}

impl Roots {
    /// The descriptor that is open already for the same folder, or else this one.
    pub(crate) fn share(&self, opened: OwnedFd) -> Result<Arc<OwnedFd>, Errno> {
        let folder = Folder::of(&opened)?;
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A number of an inode is used again only after the last descriptor has closed, and then `upgrade` fails.
        if let Some(shared) = open.get(&folder).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        let shared = Arc::new(opened);
        open.insert(folder, Arc::downgrade(&shared));
        Ok(shared)
    }

    /// Forgets folders without trees.
    pub fn forget_closed(&self) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, shared| shared.strong_count() > 0);
    }
}

impl Folder {
    fn of(folder: impl AsFd) -> Result<Self, Errno> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let found = statx(folder, "", AtFlags::EMPTY_PATH, wanted)?;
        let knows_mount = found.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        Ok(Self {
            mount: if knows_mount { found.stx_mnt_id } else { 0 },
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
        })
    }
}
