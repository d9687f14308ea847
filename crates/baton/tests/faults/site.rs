//! The site: a file that leaves with one call, and one that takes a while.

use crate::common::folder::{Folder, pattern};

/// A folder with `small.txt`, which says `small`, and `large.bin`, which is [`large`].
pub(crate) fn small_and_large() -> Folder {
    let folder = Folder::new();
    folder.write("small.txt", "small").write("large.bin", large());
    folder
}

/// The bytes of `large.bin`.
pub(crate) fn large() -> &'static [u8] {
    pattern(LARGE, 1)
}

/// Far more than the kernel takes in advance for a client that does not read.
pub(crate) const LARGE: usize = 8 << 20;

/// The setting that keeps it from taking more.
pub(crate) const SMALL_BUFFERS: &str = "send.socket_buffer_bytes=65536";
