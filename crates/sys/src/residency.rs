//! Is a range of a file in memory?

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

/// Whether every page of the range `offset..offset + len` of `file` is in the page cache.
///
/// Uses cachestat(2), which counts the pages of a range in one call, where mincore(2) needs a mapping and a
/// byte per page.
///
/// # Errors
/// `ENOSYS` before Linux 6.5, `EOPNOTSUPP` for files without a page cache.
pub fn is_resident(file: impl AsFd, offset: u64, len: u64) -> io::Result<bool> {
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
