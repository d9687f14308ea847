//! When written pages go to the disk.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use crate::check;

/// Starts writing the dirty pages of a range of `file` to the disk, without waiting for them. Says nothing about
/// durability: it only keeps dirty pages from piling up.
///
/// # Errors
/// `EIO`, `ENOSPC`; `ESPIPE` for what is no file.
pub fn start(file: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    sync_range(file, offset, len, libc::SYNC_FILE_RANGE_WRITE)
}

/// Waits until the dirty pages of a range of `file` are written, so that the kernel can drop them.
///
/// # Errors
/// As [`start`].
pub fn finish(file: impl AsFd, offset: u64, len: u64) -> io::Result<()> {
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_range(file, offset, len, all)
}

fn sync_range(file: impl AsFd, offset: u64, len: u64, flags: libc::c_uint) -> io::Result<()> {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: the call touches no memory of this process.
    check(unsafe { libc::sync_file_range(descriptor, offset as i64, len as i64, flags) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_range_of_a_file_is_written_and_a_pipe_has_none() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[1; 10_000]).unwrap();
        start(&file, 0, 4096).unwrap();
        finish(&file, 0, 10_000).unwrap();
        let (_read, write) = io::pipe().unwrap();
        assert!(start(&write, 0, 1).is_err());
    }
}
