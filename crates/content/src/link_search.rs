//! Searches for the symbolic link that keeps a path from being found, since the kernel's error names none.

use rustix::io::Errno;

use crate::disk::{self, Blocking, DiskError};
use crate::hidden_link::HiddenLink;
use crate::tree::Tree;
use crate::tree_config::Symlinks;

/// Notes the link that keeps `path` from being found, if opening it failed with `errno` because of a link.
pub(crate) fn note(tree: &Tree, path: &[u8], errno: Errno, blocking: Blocking) {
    let is_hidden = match tree.config().symlinks {
        Symlinks::Beneath => errno == Errno::XDEV,
        Symlinks::Refused => errno == Errno::LOOP,
        Symlinks::Anywhere => false,
    };
    // Several threads may search, but one reports.
    if is_hidden
        && !tree.hidden_links().knows(path)
        && let Some(link) = find(tree, path, blocking)
    {
        tree.hidden_links().note(link);
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
