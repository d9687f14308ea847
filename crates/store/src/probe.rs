//! Finds out whether a file system and a kernel keep what a socket refers to.
//!
//! The store relies on it that pages of a deallocated range are not written to again while a socket still sends them.
//! That depends on how the file system caches: where several slots share a unit of its cache, deallocating one of them
//! leaves that unit in place. So each store tries it once, with a socket of its own.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::file_range::write_all_at;

/// Sends the slot at `offset` by reference, lets `empty` deallocate it, writes it again, and looks what arrives. The slot
/// must be free.
///
/// # Errors
/// What sendfile(2), pwrite(2) or `empty` say.
pub(crate) fn keeps_what_is_sent(
    file: &OwnedFd,
    offset: u64,
    len: usize,
    empty: impl FnOnce() -> io::Result<()>,
) -> io::Result<bool> {
    let (mut receiver, sender) = UnixStream::pair()?;
    // A store on a file system that hands out less than a slot is unheard of, and must not hang.
    receiver.set_nonblocking(true)?;
    write_all_at(file, &vec![b'o'; len], offset)?;
    let mut next = offset;
    let sent = rustix::fs::sendfile(&sender, file, Some(&mut next), len)?;
    empty()?;
    write_all_at(file, &vec![b'n'; len], offset)?;
    let mut received = vec![0; sent];
    receiver.read_exact(&mut received)?;
    Ok(received.iter().all(|byte| *byte == b'o'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 4096;

    #[test]
    fn the_probe_tells_a_deallocated_slot_from_one_that_is_only_written_again() {
        let file = OwnedFd::from(tempfile::tempfile().unwrap());
        let punch = || crate::file_range::deallocate(&file, LEN as u64, LEN as u64);
        assert!(keeps_what_is_sent(&file, LEN as u64, LEN, punch).unwrap());
        assert!(!keeps_what_is_sent(&file, LEN as u64, LEN, || Ok(())).unwrap());
    }
}
