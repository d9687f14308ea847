//! Writing a range of a file, and deallocating it.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{pwrite, retry_on_intr};

/// Writes all of `bytes`.
///
/// # Errors
/// What pwrite(2) says; part of the bytes may have been written.
pub(crate) fn write_all_at(file: &OwnedFd, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match retry_on_intr(|| pwrite(file, bytes, offset))? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            count => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
        }
    }
    Ok(())
}

/// Replaces a range by a hole. Its pages leave the page cache as they are: sockets that refer to them still send the old
/// bytes, and the next write gets new pages.
///
/// # Errors
/// `EOPNOTSUPP`, `EIO` and the like.
pub(crate) fn deallocate(file: &OwnedFd, offset: u64, len: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(retry_on_intr(|| fallocate(file, flags, offset, len))?)
}
