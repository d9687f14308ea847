//! For tests: a file that is not in memory, as far as a test can have one.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use baton_buf::OpenFile;
use tempfile::NamedTempFile;

const ATTEMPTS: usize = 100;

/// Hands `look` files of `len` bytes whose pages are not in memory, one after the other, until it says that it was told
/// to wait. The look itself has the kernel fetch what is missing, and a disk may be quick enough for it; a hundred
/// times in a row it is not.
///
/// Where the file system keeps all pages (tmpfs), no read waits, and there is nothing to test.
pub(crate) fn first_cold(len: u64, mut look: impl FnMut(&NamedTempFile, Arc<OpenFile>) -> bool) {
    for _ in 0..ATTEMPTS {
        let Some(named) = cold(len) else { return };
        let file = Arc::new(OpenFile::new(File::open(named.path()).unwrap().into()));
        if look(&named, file) {
            return;
        }
    }
    panic!("no attempt was told to wait");
}

/// The kernel keeps pages that another process reads at that moment: hence several attempts.
fn cold(len: u64) -> Option<NamedTempFile> {
    let mut named = NamedTempFile::new_in(".").unwrap();
    named.write_all(&vec![9; len as usize]).unwrap();
    named.as_file().sync_all().unwrap();
    let gone = (0..ATTEMPTS).any(|_| {
        rustix::fs::fadvise(named.as_file(), 0, None, rustix::fs::Advice::DontNeed).unwrap();
        !baton_sys::residency::is_in_core(named.as_file(), 0, len).unwrap()
    });
    gone.then_some(named)
}
