//! Reading from a file with or without waiting for its disk.

use std::io::IoSliceMut;
use std::os::fd::AsFd;

use rustix::io::{Errno, ReadWriteFlags};

/// Whether a call may wait for a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// The call may wait: on a helper, or where no other client waits.
    Allowed,
    /// The call may wait for one file, but must not read a whole directory: [`NeedsDisk`].
    Briefly,
    /// The call must not wait: [`NeedsDisk`] for anything that is not in the kernel's caches.
    Never,
}

/// The answer needs a disk; ask again with [`Blocking::Allowed`] where waiting does no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeedsDisk;

/// Why a read failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// Only with [`Blocking::Never`]: the bytes are not in memory, or the file system cannot tell.
    NeedsDisk,
    /// What read(2) says.
    Errno(Errno),
}

/// Fills `buffer` with the bytes of `file` from `offset` on. Returns the number of bytes, fewer than requested only at
/// the file's end.
///
/// # Errors
/// [`ReadError`]; part of the buffer may have been filled.
pub fn read_at(
    file: impl AsFd,
    buffer: &mut [u8],
    offset: u64,
    blocking: Blocking,
) -> Result<usize, ReadError> {
    let mut filled = 0;
    while filled < buffer.len() {
        let (rest, at) = (&mut buffer[filled..], offset + filled as u64);
        let result = match blocking {
            Blocking::Allowed | Blocking::Briefly => rustix::io::pread(&file, rest, at),
            Blocking::Never => {
                rustix::io::preadv2(&file, &mut [IoSliceMut::new(rest)], at, ReadWriteFlags::NOWAIT)
            }
        };
        match result {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            // Not in the page cache (a readahead has been started), or a file system that cannot tell.
            Err(Errno::AGAIN | Errno::OPNOTSUPP) if blocking == Blocking::Never => {
                return Err(ReadError::NeedsDisk);
            }
            Err(errno) => return Err(ReadError::Errno(errno)),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_read_is_short_only_at_the_end_of_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123456789").unwrap();
        let mut buffer = [0; 6];
        assert_eq!(read_at(&file, &mut buffer, 2, Blocking::Allowed), Ok(6));
        assert_eq!(&buffer, b"234567");
        assert_eq!(read_at(&file, &mut buffer, 8, Blocking::Allowed), Ok(2));
        assert_eq!(read_at(&file, &mut buffer, 99, Blocking::Allowed), Ok(0));
        // What was just written is in memory, on file systems that can tell.
        let read = read_at(&file, &mut buffer, 0, Blocking::Never);
        assert!(matches!(read, Ok(6) | Err(ReadError::NeedsDisk)), "{read:?}");
    }
}
