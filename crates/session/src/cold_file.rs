//! For tests: a file that is not in memory, on any machine.

use std::sync::Arc;

use baton_buf::OpenFile;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

/// A file of `len` bytes of which no page is in memory until a caller brings it in.
///
/// It has no disk: a quick disk fetches pages while the test still looks for them, and no test should need a slow one.
/// The pages of a file in memory are missing where nothing was written, and reading does not make them.
pub(crate) fn cold_file(len: u64) -> Arc<OpenFile> {
    let file = memfd_create(c"cold", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, len).unwrap();
    assert!(!baton_sys::residency::is_resident(&file, 0, len).unwrap());
    Arc::new(OpenFile::new(file))
}
