//! Is a range of a file in memory? And if not: bring it there.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::{Errno, ReadWriteFlags, preadv2};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::check;

/// Whether every page of the range `offset..offset + len` of `file` is in the page cache.
///
/// Uses cachestat(2), which counts the pages of a range in one call, where mincore(2) needs a mapping and a
/// byte per page. Both may be asked only by who owns the file or may write to it (cachestat since Linux 6.14), which a
/// server that gave up its rights does not and may not. For it a byte of every [`PROBE_STEP_BYTES`] is read with
/// `RWF_NOWAIT`, which fails where the page is missing (and starts to fetch it). A gap between two such bytes is not
/// seen: then one `sendfile` waits for the disk.
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EOPNOTSUPP` for files without a page cache.
pub fn is_resident(file: impl AsFd, offset: u64, len: u64) -> io::Result<bool> {
    match has_all_pages(&file, offset, len) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => probe(&file, offset, len),
        answer => answer,
    }
}

/// What comes in together is as much as a readahead window (128 KiB); but it goes out in smaller pieces, and with memory
/// short most files have gaps.
const PROBE_STEP_BYTES: u64 = 16 * 1024;

fn probe(file: impl AsFd, offset: u64, len: u64) -> io::Result<bool> {
    let Some(last) = len.checked_sub(1).map(|last| offset + last) else { return Ok(true) };
    let page = rustix::param::page_size() as u64;
    let (first, last) = (offset / page, last / page);
    let step = (PROBE_STEP_BYTES / page).max(1) as usize;
    for probed in (first..last).step_by(step).chain([last]) {
        let mut byte = [0];
        let found = preadv2(&file, &mut [IoSliceMut::new(&mut byte)], probed * page, ReadWriteFlags::NOWAIT);
        match found {
            Ok(_) => {} // Where there is nothing to read there is nothing to wait for.
            Err(Errno::AGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn has_all_pages(file: impl AsFd, offset: u64, len: u64) -> io::Result<bool> {
    /// struct cachestat_range of linux/mman.h
    #[repr(C)]
    struct Range {
        offset: u64,
        len: u64,
    }
    /// struct cachestat of linux/mman.h
    #[repr(C)]
    #[derive(Default)]
    struct Stat {
        cached: u64,
        dirty: u64,
        writeback: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    const SYS_CACHESTAT: libc::c_long = 451;
    if len == 0 {
        return Ok(true); // The kernel would take 0 for "to the end of the file".
    }
    let range = Range { offset, len };
    let mut stat = Stat::default();
    // SAFETY: both pointers are to live values with the layout of the kernel's structures.
    let result =
        unsafe { libc::syscall(SYS_CACHESTAT, file.as_fd().as_raw_fd(), &raw const range, &raw mut stat, 0) };
    check(result as libc::c_int)?;
    let page = rustix::param::page_size() as u64;
    let pages = (offset + len).div_ceil(page) - offset / page;
    Ok(stat.cached >= pages)
}

/// Brings the range `offset..offset + len` of `file` into the page cache, waiting for the disk, without this counting
/// as a use of the pages.
///
/// Reading them would count, and sending them counts again: pages that are wanted once would look to the kernel like
/// pages that are wanted again and again, and would push those out (a page that is used a second time moves to the
/// active list). So the range is mapped, populated (`MADV_POPULATE_READ`) and unmapped; `MADV_SEQUENTIAL` tells the
/// kernel to make nothing of it that the pages have been mapped. No byte is looked at, so that a file that shrinks
/// meanwhile raises no signal.
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
    // SAFETY: a new mapping at a place of the kernel's choice touches no memory that anybody has.
    let place =
        unsafe { mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), begin)? };
    // SAFETY: advice about the mapping just made; neither kind changes what is in memory.
    let populated = unsafe {
        madvise(place, bytes, Advice::Sequential)
            .and_then(|()| madvise(place, bytes, Advice::LinuxPopulateRead))
    };
    // SAFETY: the mapping just made, of which no reference was taken.
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

    /// Owners and others come to the same answer, whatever the kernel lets them ask.
    #[test]
    fn whoever_asks_is_told() {
        let written = tempfile::NamedTempFile::new().unwrap();
        written.as_file().set_len(LEN).unwrap();
        io::copy(&mut io::repeat(b'x').take(LEN), &mut written.as_file()).unwrap();
        let file = File::open(written.path()).unwrap();
        // Pages that somebody just looks at stay: hence several attempts. Where no disk is behind the file system
        // (tmpfs), they stay for ever, and only half of the answers can be heard.
        let went = (0..100).any(|_| {
            written.as_file().sync_all().unwrap();
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            has_all_pages(&file, 0, LEN).is_ok_and(|all| !all)
        });
        std::thread::scope(|scope| {
            scope.spawn(|| {
                become_nobody();
                if went {
                    assert!(!is_resident(&file, 0, LEN).unwrap());
                }
                assert_eq!(io::copy(&mut &file, &mut io::sink()).unwrap(), LEN);
                assert!(is_resident(&file, 0, LEN).unwrap());
                assert!(is_resident(&file, LEN - 1, 1).unwrap());
                assert!(is_resident(&file, 5, 0).unwrap(), "there is nothing to wait for");
            });
        });
    }

    /// The middle of a file may have gone while its ends are there.
    #[test]
    fn a_gap_is_seen_by_whoever_asks() {
        let written = tempfile::NamedTempFile::new_in(".").unwrap();
        io::copy(&mut io::repeat(b'x').take(LEN), &mut written.as_file()).unwrap();
        written.as_file().sync_all().unwrap();
        let file = File::open(written.path()).unwrap();
        let (gap, len) = (32 << 10, std::num::NonZero::new(64 << 10));
        rustix::fs::fadvise(&file, gap, len, rustix::fs::Advice::DontNeed).unwrap();
        if has_all_pages(&file, 0, 128 << 10).unwrap_or(true) {
            return; // A file system whose pages stay, or are larger than the gap.
        }
        std::thread::scope(|scope| {
            scope.spawn(|| {
                become_nobody();
                assert!(!is_resident(&file, 0, 128 << 10).unwrap());
                assert!(is_resident(&file, 512 << 10, 128 << 10).unwrap());
            });
        });
    }

    /// Whatever part is asked for is there afterwards; a part that does not exist is an error and not a signal.
    #[test]
    fn what_is_brought_in_is_in_memory() {
        // Beside the sources: a folder for temporary files may be in memory, where nothing ever goes.
        let written = tempfile::NamedTempFile::new_in(".").unwrap();
        io::copy(&mut io::repeat(b'x').take(LEN), &mut written.as_file()).unwrap();
        written.as_file().sync_all().unwrap();
        let file = File::open(written.path()).unwrap();
        for (offset, len) in [(0, LEN), (5000, 300_000), (LEN - 1, 1)] {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
            bring_in(&file, offset, len).unwrap();
            assert!(is_resident(&file, offset, len).unwrap(), "{len} bytes from {offset} on");
        }
        bring_in(&file, 0, 0).unwrap();
        assert!(bring_in(&file, 0, LEN * 2).is_err());
    }
}
