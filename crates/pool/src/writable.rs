//! The application's end of a [`Region`](crate::Region): memory that it writes and the server only reads.

use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::{Mapping, check_size};

/// A memory file that this process alone writes.
#[derive(Debug)]
pub struct Writable(Mapping);

impl Writable {
    /// Maps the first `bytes` bytes of `file`.
    ///
    /// # Errors
    /// `EINVAL` if the file is smaller or may shrink, or if `bytes` is beyond 1 GiB, where slices have too few bits;
    /// errors of `mmap`.
    pub fn map(file: impl AsFd, bytes: usize) -> Result<Self, Errno> {
        if bytes > REGION_BYTES_MAX {
            return Err(Errno::INVAL);
        }
        check_size(&file, bytes as u64)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        Ok(Self(Mapping::new(&file, bytes, protection, MapFlags::SHARED)?))
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: it has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The bytes of `range`, for writing.
    ///
    /// # Panics
    /// If the range is not within the memory.
    pub fn window(&mut self, range: std::ops::Range<usize>) -> &mut [u8] {
        let start = self.0.address(range.start, range.len());
        // SAFETY: the range is within the mapping, which lives as long as `self`, is initialised (a memory file reads
        // as zeros) and cannot shrink. The server maps it read-only, so these bytes have no other writer.
        unsafe { std::slice::from_raw_parts_mut(start, range.len()) }
    }
}

/// Largest region that is mapped.
const REGION_BYTES_MAX: usize = 1 << 30;
