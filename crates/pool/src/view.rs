//! Memory of another process, or of a file, that this process looks at.

use std::ops::Range;
use std::os::fd::AsFd;

use rustix::fs::SealFlags;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use crate::mapping::{Mapping, check_size};

/// Bytes of another process, mapped for reading.
#[derive(Debug)]
pub struct View(Mapping);

impl View {
    /// Maps the pool of a server. The kernel refuses to make it writable.
    ///
    /// # Errors
    /// `EINVAL` if the file is smaller than `bytes`, or may shrink; errors of `mmap`.
    pub fn of_pool(file: impl AsFd, bytes: usize) -> Result<Self, Errno> {
        check_size(&file, bytes as u64)?;
        Ok(Self(Mapping::new(&file, bytes, ProtFlags::READ, MapFlags::SHARED)?))
    }

    /// Maps a file that the server has finished.
    ///
    /// # Errors
    /// `EINVAL` if it is empty; errors of `mmap`.
    pub fn of_whole_file(file: impl AsFd) -> Result<Self, Errno> {
        let bytes = usize::try_from(rustix::fs::fstat(&file)?.st_size).map_err(|_| Errno::FBIG)?;
        Ok(Self(Mapping::new(&file, bytes, ProtFlags::READ, MapFlags::PRIVATE)?))
    }

    /// Maps `bytes` bytes of a file from byte `offset` on, where a page begins. The file is in memory and sealed, so that it keeps
    /// its bytes and its length.
    ///
    /// # Errors
    /// `EINVAL` for any other file, for no bytes or such beyond its end, and if no page begins there; errors of `mmap`.
    pub fn of_sealed_file(file: impl AsFd, offset: u64, bytes: usize) -> Result<Self, Errno> {
        check_size(&file, offset.saturating_add(bytes as u64))?;
        if !rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::WRITE) {
            return Err(Errno::INVAL);
        }
        Ok(Self(Mapping::from_page(file, offset, bytes, ProtFlags::READ, MapFlags::SHARED)?))
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Always false: it has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The bytes of `range`: those of a pool until they are returned.
    ///
    /// # Panics
    /// If the range is not within the memory.
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        let start = self.0.address(range.start, range.len());
        // SAFETY: the range is within the mapping, which lives as long as `self`. The server changes no byte that it has
        // lent, and no byte of a file that it has finished; the library passes on nothing else.
        unsafe { std::slice::from_raw_parts(start, range.len()) }
    }
}
