//! A range of memory that a file backs.

use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

/// A mapping of a part of a file, unmapped on drop.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a mapping belongs to no thread. Its owners decide which accesses are possible at the same time.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes, at an address of the kernel's choice.
    ///
    /// # Errors
    /// Those of `mmap`: `EINVAL` if `bytes` is zero, `EACCES` and `EPERM` if the file forbids the protection.
    pub(crate) fn new(
        file: impl AsFd,
        bytes: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        Self::from_page(file, 0, bytes, protection, flags)
    }

    /// The same from byte `offset` on, where a page begins.
    ///
    /// # Errors
    /// The same; `EINVAL` if no page begins there.
    pub(crate) fn from_page(
        file: impl AsFd,
        offset: u64,
        bytes: usize,
        protection: ProtFlags,
        flags: MapFlags,
    ) -> Result<Self, Errno> {
        // SAFETY: a new mapping touches no other memory.
        let start =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, protection, flags, file, offset)? };
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        Ok(Self { start, bytes })
    }

    /// Private memory in place of a file's: Miri has no memory that processes share.
    #[cfg(test)]
    pub(crate) fn private(bytes: usize) -> Self {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping touches no other memory.
        let start = unsafe {
            rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE).unwrap()
        };
        Self { start: NonNull::new(start.cast()).unwrap(), bytes }
    }

    /// Its size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Where the bytes `offset..offset + len` are.
    ///
    /// # Panics
    /// If they exceed the mapping.
    pub(crate) fn address(&self, offset: usize, len: usize) -> *mut u8 {
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes);
        assert!(end.is_some(), "{len} bytes from {offset} on of {} bytes", self.bytes);
        // SAFETY: `offset` is at most the size of the mapping.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and every holder of an address in it holds the mapping.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// A new file in memory, zeroed. It can be sealed.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub(crate) fn memory_file(name: &str, bytes: usize) -> Result<OwnedFd, Errno> {
    let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    rustix::fs::ftruncate(&file, bytes as u64)?;
    Ok(file)
}

/// Fixes the size of a file for good, and with it whatever else `seals` says.
///
/// # Errors
/// `EPERM`: it is sealed already.
pub(crate) fn seal(file: &OwnedFd, seals: SealFlags) -> Result<(), Errno> {
    rustix::fs::fcntl_add_seals(file, seals | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
}

/// Whether a file has so many bytes, and always will: access beyond its end would kill the process.
///
/// # Errors
/// `EINVAL` if not, or for no bytes.
pub(crate) fn check_size(file: impl AsFd, bytes: u64) -> Result<(), Errno> {
    let size = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
    let holds = bytes > 0 && size >= bytes;
    let keeps = rustix::fs::fcntl_get_seals(&file)?.contains(SealFlags::SHRINK);
    if holds && keeps { Ok(()) } else { Err(Errno::INVAL) }
}
