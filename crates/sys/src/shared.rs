//! Numbers that a family of processes shares.

use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};

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

/// Numbers that all holders of a descriptor share.
///
/// The memory is a file without a name, sealed against shrinking.
#[derive(Debug)]
pub struct SharedNumbers {
    address: NonNull<AtomicU64>,
    count: usize,
    file: OwnedFd,
}

// SAFETY: the mapping lives as long as the value, belongs to no thread, and is accessed through atomics only.
unsafe impl Send for SharedNumbers {}
// SAFETY: as above.
unsafe impl Sync for SharedNumbers {}

impl SharedNumbers {
    /// So many zeros.
    ///
    /// # Errors
    /// `ENOMEM`, `EMFILE`; `EINVAL` if `count` is 0.
    pub fn create(count: usize) -> io::Result<Self> {
        let file = memfd_create("baton-numbers", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, (count * size_of::<AtomicU64>()) as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Self::open(file)
    }

    /// Opens the numbers of a descriptor that another process has created.
    ///
    /// # Errors
    /// `EINVAL` if the file is empty, or not sealed against shrinking; `ENOMEM`.
    pub fn open(file: OwnedFd) -> io::Result<Self> {
        let bytes = usize::try_from(fstat(&file)?.st_size).map_err(io::Error::other)?;
        if bytes == 0 || !fcntl_get_seals(&file)?.contains(SealFlags::SHRINK) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: a new mapping aliases nothing that is not an atomic; the file cannot become shorter than it.
        let address = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        let address = NonNull::new(address).filter(|address| address.as_ptr() != libc::MAP_FAILED);
        let address = address.ok_or_else(io::Error::last_os_error)?.cast();
        Ok(Self { address, count: bytes / size_of::<AtomicU64>(), file })
    }
}

impl Deref for SharedNumbers {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds `count` atomics, is page aligned, and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), self.count) }
    }
}

impl AsFd for SharedNumbers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for SharedNumbers {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing borrows from it any more.
        unsafe { libc::munmap(self.address.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn both_ends_see_the_same_numbers() {
        let ours = SharedNumbers::create(1000).unwrap();
        let theirs = SharedNumbers::open(ours.as_fd().try_clone_to_owned().unwrap()).unwrap();
        assert_eq!((ours.len(), theirs.len()), (1000, 1000));
        ours[999].store(7, Ordering::Relaxed);
        assert_eq!(theirs[999].load(Ordering::Relaxed), 7);
        drop(ours);
        assert_eq!(theirs[999].load(Ordering::Relaxed), 7);
    }

    #[test]
    fn numbers_that_can_be_taken_away_are_refused() {
        let file = memfd_create("short", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert_eq!(SharedNumbers::open(file).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
