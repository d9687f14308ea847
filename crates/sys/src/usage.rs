//! Resource usage of the calling thread.

use std::io;
use std::mem::MaybeUninit;

use crate::check;

/// The kernel's account of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time in user and kernel mode, in microseconds.
    pub cpu_us: u64,
    /// How often the thread gave up the CPU to wait for something.
    pub waits: u64,
    /// Blocks of 512 bytes read from disk on its behalf.
    pub blocks_read: u64,
}

/// The calling thread's account.
///
/// # Errors
/// None that a caller could cause.
pub fn thread_usage() -> io::Result<ThreadUsage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage fills the whole structure when it succeeds, which is checked before it is read.
    let usage = unsafe {
        check(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()))?;
        usage.assume_init()
    };
    let us = |time: libc::timeval| time.tv_sec as u64 * 1_000_000 + time.tv_usec as u64;
    Ok(ThreadUsage {
        cpu_us: us(usage.ru_utime) + us(usage.ru_stime),
        waits: usage.ru_nvcsw as u64,
        blocks_read: usage.ru_inblock as u64,
    })
}
