//! The shared region: a memory file of the server's, mapped once, written as a ring.

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// Largest region that is mapped; larger ones are declined, since slices have 32 bits.
const REGION_BYTES_MAX: usize = 1 << 30;

/// A memory file that this process may write and the server only reads.
#[derive(Debug)]
pub(crate) struct Region {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and is valid on every thread.
unsafe impl Send for Region {}

impl Region {
    /// Maps the first `bytes` bytes of `file`.
    ///
    /// # Errors
    /// `EINVAL` if the file is smaller or not sealed against shrinking, since access beyond its end would kill the
    /// process; errors of `mmap`.
    pub(crate) fn map(file: impl AsFd, bytes: usize) -> Result<Self, Errno> {
        let file = file.as_fd();
        if bytes == 0 || bytes > REGION_BYTES_MAX {
            return Err(Errno::INVAL);
        }
        let holds = rustix::fs::fstat(file)?.st_size >= i64::try_from(bytes).unwrap_or(i64::MAX);
        if !holds || !rustix::fs::fcntl_get_seals(file)?.contains(SealFlags::SHRINK) {
            return Err(Errno::INVAL);
        }
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                file,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(Errno::INVAL)?;
        Ok(Self { base, bytes })
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// The bytes of `range`, for writing.
    ///
    /// # Panics
    /// If the range is not within the region.
    pub(crate) fn window(&mut self, range: std::ops::Range<usize>) -> &mut [u8] {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} of {} bytes", self.bytes);
        // SAFETY: the range is within the mapping, which lives as long as `self`, is initialised (a memory file reads
        // as zeros) and cannot shrink. The server maps it read-only, so these bytes have no other writer.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().add(range.start), range.len()) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this size, and no slice of it outlives `self`.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}
