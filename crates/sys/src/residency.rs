//! Finds out whether a range of a file is in memory, and reads it in if not.

use std::os::fd::{AsFd, AsRawFd};
use std::{io, ptr};

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::check;

/// Whether every page of the range `offset..offset + len` of `file` is in the page cache, read and ready.
///
/// Reads the range with `RWF_NOWAIT`, every page into the same one: that fails where a page is missing (and starts to
/// fetch it) or is still being read. It costs a copy of the range, so callers remember the answer for a while.
/// Cheaper calls tell less: cachestat(2) and mincore(2) answer only processes that own the file or may write to it;
/// cachestat counts pages that are still being read; and reading single bytes keeps just those pages in memory while
/// the kernel evicts their neighbours.
///
/// On file systems without `RWF_NOWAIT` (overlayfs, tmpfs) it uses mincore(2), which reports all pages as present to
/// processes without rights on the file: these may wait for the disk.
///
/// # Errors
/// Errors of reading or mapping the file; `ENODEV` for files that cannot be mapped.
pub fn is_resident(file: impl AsFd, offset: u64, len: u64) -> io::Result<bool> {
    match read_without_waiting(&file, offset, len) {
        Err(Errno::OPNOTSUPP) => is_in_core(&file, offset, len),
        answer => Ok(answer?),
    }
}

/// Bytes of a piece, and pieces of a call: a mebibyte in all.
const PIECE_BYTES: usize = 4096;
const PIECES: usize = 256;

fn read_without_waiting(file: impl AsFd, offset: u64, len: u64) -> Result<bool, Errno> {
    let mut scratch = [0_u8; PIECE_BYTES];
    let piece = libc::iovec { iov_base: scratch.as_mut_ptr().cast(), iov_len: PIECE_BYTES };
    let (mut next, end) = (offset, offset + len);
    while next < end {
        let bytes = (end - next).min((PIECES * PIECE_BYTES) as u64) as usize;
        let mut pieces = [piece; PIECES];
        let count = bytes.div_ceil(PIECE_BYTES);
        pieces[count - 1].iov_len = bytes - (count - 1) * PIECE_BYTES;
        let (descriptor, at) = (file.as_fd().as_raw_fd(), next as libc::off_t);
        // SAFETY: all pieces are within `scratch`, which has no other reference, and whose bytes are never read: that
        // pieces overlap is harmless.
        let read =
            unsafe { libc::preadv2(descriptor, pieces.as_ptr(), count as libc::c_int, at, libc::RWF_NOWAIT) };
        match u64::try_from(read) {
            Ok(0) => return Ok(true), // The end of the file: nothing to wait for.
            Ok(read) => next += read, // A short read: the next call tells why.
            Err(_) => match Errno::from_io_error(&io::Error::last_os_error()) {
                Some(Errno::AGAIN) => return Ok(false),
                Some(Errno::INTR) => {}
                error => return Err(error.unwrap_or(Errno::IO)),
            },
        }
    }
    Ok(true)
}

/// Like [`is_resident`], without touching or fetching a page, but only for processes that own the file or may write
/// to it: for others the answer is always true. It maps the range and so takes the process's lock on mappings, for
/// which threads may wait while others fetch pages.
///
/// # Errors
/// Errors of mapping the range; `ENODEV` for files that cannot be mapped.
pub fn is_in_core(file: impl AsFd, offset: u64, len: u64) -> io::Result<bool> {
    let page = rustix::param::page_size() as u64;
    let begin = offset / page * page;
    let bytes = usize::try_from(offset + len - begin).map_err(|_| Errno::OVERFLOW)?;
    if len == 0 {
        return Ok(true);
    }
    let mut pages = vec![0_u8; bytes.div_ceil(page as usize)];
    let place = map(&file, begin, bytes)?;
    // SAFETY: the range was just mapped, and there is a byte for each of its pages.
    let answer = check(unsafe { libc::mincore(place, bytes, pages.as_mut_ptr()) });
    // SAFETY: the mapping just made, without references into it.
    unsafe { munmap(place, bytes)? };
    answer?;
    Ok(pages.iter().all(|state| state & 1 == 1))
}

/// Maps a range of a file for reading; `begin` is the first byte of a page.
fn map(file: impl AsFd, begin: u64, bytes: usize) -> io::Result<*mut libc::c_void> {
    // SAFETY: a new mapping at an address of the kernel's choice aliases nothing.
    Ok(unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), begin)? })
}

/// Brings the range `offset..offset + len` of `file` into the page cache, waiting for the disk, without this counting
/// as a use of the pages.
///
/// Reading and then sending would count as two uses: pages needed once would look hot to the kernel (the second use
/// moves a page to the active list) and evict pages that are. So this maps, populates (`MADV_POPULATE_READ`) and
/// unmaps the range; with `MADV_SEQUENTIAL` the kernel does not count the mapping as a use. It touches no byte, so a
/// file that shrinks meanwhile raises no signal.
///
/// # Errors
/// `EINVAL` before Linux 5.14; `ENODEV` for files that cannot be mapped; `EFAULT` for a range beyond the end of the
/// file, or a disk that fails.
pub fn bring_in(file: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    let page = rustix::param::page_size() as u64;
    let begin = offset / page * page;
    let bytes = usize::try_from(offset + len - begin).map_err(|_| Errno::OVERFLOW)?;
    let place = map(&file, begin, bytes)?;
    // SAFETY: advice about the mapping just made; neither kind changes what is in memory.
    let populated = unsafe {
        madvise(place, bytes, Advice::Sequential)
            .and_then(|()| madvise(place, bytes, Advice::LinuxPopulateRead))
    };
    // SAFETY: the mapping just made, without references into it.
    unsafe { munmap(place, bytes)? };
    Ok(populated?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    const LEN: u64 = 1 << 20;

    /// Makes this thread, and no other, one that owns nothing; without the right to do so nothing changes.
    fn become_nobody() {
        // SAFETY: changes an identity, no memory; the raw call is per thread.
        unsafe { libc::syscall(libc::SYS_setfsuid, 65_534) };
    }

    /// A file beside the sources, on a disk: folders for temporary files may be in memory.
    fn file_on_disk() -> (tempfile::NamedTempFile, File) {
        let written = tempfile::NamedTempFile::new_in(".").unwrap();
        io::copy(&mut io::repeat(b'x').take(LEN), &mut written.as_file()).unwrap();
        written.as_file().sync_all().unwrap();
        let file = File::open(written.path()).unwrap();
        (written, file)
    }

    /// Evicts a part of the file from memory; false where pages stay (another process uses them, or there is no
    /// disk).
    fn push_out(file: &File, offset: u64, len: u64) -> bool {
        let gone = || !is_in_core(file, offset, len).unwrap();
        (0..100).any(|_| {
            rustix::fs::fadvise(file, offset, std::num::NonZero::new(len), rustix::fs::Advice::DontNeed)
                .unwrap();
            gone()
        })
    }

    /// Whether `look` finds that a part of the file is not in memory. The look has the kernel fetch that part, and a disk
    /// may be quick enough for it; ten thousand times in a row it is not. Where pages stay, there is nothing to find.
    fn a_gap_is_found(file: &File, offset: u64, len: u64, look: impl Fn() -> bool) -> bool {
        (0..10_000).any(|_| !push_out(file, offset, len) || !look())
    }

    /// Owners and others get the same answer.
    #[test]
    fn owners_and_others_get_the_same_answer() {
        let (written, file) = file_on_disk();
        let ask_as_nobody = |offset, len| {
            let ask = || {
                become_nobody();
                is_resident(&file, offset, len).unwrap()
            };
            std::thread::scope(|scope| scope.spawn(ask).join().unwrap())
        };
        assert!(a_gap_is_found(&file, 0, LEN, || ask_as_nobody(0, LEN)));
        assert_eq!(io::copy(&mut File::open(written.path()).unwrap(), &mut io::sink()).unwrap(), LEN);
        assert!(ask_as_nobody(0, LEN));
        assert!(ask_as_nobody(LEN - 1, 1));
        assert!(ask_as_nobody(LEN - 1, 5), "nothing to wait for beyond the end");
        assert!(ask_as_nobody(5, 0), "there is nothing to wait for");
    }

    /// A single page may have gone, anywhere.
    #[test]
    fn the_smallest_gap_is_seen() {
        let page = rustix::param::page_size() as u64;
        let (written, file) = file_on_disk();
        for gap in [5 * page, 33 * page, LEN - page] {
            assert_eq!(io::copy(&mut File::open(written.path()).unwrap(), &mut io::sink()).unwrap(), LEN);
            let look = || is_resident(&file, 0, LEN).unwrap();
            assert!(a_gap_is_found(&file, gap, page, look), "the page at {gap} is missing");
        }
    }

    /// Where `RWF_NOWAIT` is not known, the fall-back says the same to the owner.
    #[test]
    fn a_file_system_in_memory_is_resident() {
        let Ok(written) = tempfile::NamedTempFile::new_in("/dev/shm") else { return };
        written.as_file().set_len(LEN).unwrap();
        io::copy(&mut io::repeat(b'x').take(LEN), &mut written.as_file()).unwrap();
        assert!(is_resident(written.as_file(), 0, LEN).unwrap());
        assert!(is_in_core(written.as_file(), 5, LEN - 5).unwrap());
        assert!(is_in_core(written.as_file(), 5, 0).unwrap());
    }

    /// Any range is in memory afterwards; a range beyond the end is an error, not a signal.
    #[test]
    fn a_range_brought_in_is_in_memory() {
        let (_written, file) = file_on_disk();
        for (offset, len) in [(0, LEN), (5000, 300_000), (LEN - 1, 1)] {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            bring_in(&file, offset, len).unwrap();
            assert!(is_resident(&file, offset, len).unwrap(), "{len} bytes from {offset} on");
        }
        bring_in(&file, 0, 0).unwrap();
        assert!(bring_in(&file, 0, LEN * 2).is_err());
    }
}
