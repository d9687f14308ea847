//! Numbers that a family of processes shares.

use std::io;
use std::sync::atomic::AtomicU64;

/// Zeroed counters in memory that this process and all that it forks from now on see alike.
///
/// They live as long as any of the processes: a worker that dies leaves its counts behind.
///
/// # Errors
/// `ENOMEM`.
pub fn shared_counters(count: usize) -> io::Result<&'static [AtomicU64]> {
    let bytes = count * size_of::<AtomicU64>();
    if bytes == 0 {
        return Ok(&[]);
    }
    // SAFETY: a new anonymous mapping aliases nothing, and is zeroed and page aligned, so that it holds `count`
    // valid atomics. It is never unmapped, hence 'static; other processes change it only through atomics too.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(std::slice::from_raw_parts(address.cast(), count))
    }
}
