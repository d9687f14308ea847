//! Files in memory: what messages have no room for, or what must not lie in their buffers, such as keys.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;

use rustix::fs::MemfdFlags;
use zeroize::Zeroizing;

/// Makes a file with these contents. `name` is for those who look at descriptors.
pub(super) fn write(name: &str, contents: &[u8]) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(contents)?;
    Ok(file)
}

/// The contents of a file that came with a message. All workers share it, so reading must not move its position. The
/// buffer is zeroed on drop.
pub(super) fn read(descriptor: Option<OwnedFd>) -> io::Result<Zeroizing<Vec<u8>>> {
    let file = File::from(descriptor.ok_or(io::ErrorKind::UnexpectedEof)?);
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut contents = Zeroizing::new(vec![0; length]);
    file.read_exact_at(&mut contents, 0)?;
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_copy_of_the_descriptor_reads_the_whole() {
        let file = write("test", b"contents").unwrap();
        for _ in 0..2 {
            assert_eq!(**read(Some(file.try_clone().unwrap().into())).unwrap(), *b"contents");
        }
        assert!(read(None).is_err());
    }
}
