//! What a folder knows of itself: the secret that its keys are made with, and how often it was opened.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use baton_report::OperatorError;
use baton_sys::blocking::{Blocking, ReadError, read_at};
use rustix::fs::{OFlags, fsync};
use rustix::rand::{GetRandomFlags, getrandom};
use xxhash_rust::xxh3::xxh3_64;

use crate::disk_failure::DiskError;
use crate::file_range::write_all_at;
use crate::folder::{IDENTITY, open_directory, open_file};

/// What makes the names of a folder's owner the same after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Random bytes, the same as long as the folder lives.
    pub secret: [u8; 16],
    /// How often the folder was opened, this time included: no two processes have the same number.
    pub starts: u64,
}

impl Identity {
    /// The identity of a folder for a process that is about to open it. The folder may still be in use by another one.
    ///
    /// # Errors
    /// The folder cannot be used, or the number of starts not be written. Its objects are lost to the caller then, who
    /// takes a [random](Self::random) identity.
    pub fn of_folder(path: &Path) -> Result<Self, OperatorError> {
        let next = || {
            let directory = open_directory(path)?;
            let file = open_file(&directory, IDENTITY, OFlags::CREATE);
            let file = file.map_err(DiskError::of("open the identity"))?;
            let known = read(&file).map_err(DiskError::of("read the identity"))?;
            let next = match known {
                Some(Self { secret, starts }) => Self { secret, starts: starts + 1 },
                None => Self::random().map_err(DiskError::of("make an identity"))?,
            };
            // In place: it finds room on a full file system, too.
            write_all_at(&file, &next.to_bytes(), 0).map_err(DiskError::of("write the identity"))?;
            fsync(&file).map_err(DiskError::of("write the identity"))?;
            Ok::<_, DiskError>(next)
        };
        next().map_err(|error| error.message(path))
    }

    /// An identity that no folder has.
    ///
    /// # Errors
    /// The kernel has no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut secret = [0; 16];
        getrandom(&mut secret, GetRandomFlags::empty())?;
        Ok(Self { secret, starts: 1 })
    }

    fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..16].copy_from_slice(&self.secret);
        bytes[16..24].copy_from_slice(&self.starts.to_le_bytes());
        let checksum = xxh3_64(&bytes[..24]);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; BYTES]) -> Option<Self> {
        let (secret, rest) = bytes.split_first_chunk()?;
        let (starts, _) = rest.split_first_chunk()?;
        let identity = Self { secret: *secret, starts: u64::from_le_bytes(*starts) };
        (identity.to_bytes() == *bytes).then_some(identity)
    }
}

/// `None`: there is none yet, or it is damaged, so that the folder counts as empty.
fn read(file: &OwnedFd) -> io::Result<Option<Identity>> {
    let mut bytes = [0; BYTES];
    match read_at(file, &mut bytes, 0, Blocking::Allowed) {
        Ok(BYTES) => Ok(Identity::from_bytes(&bytes)),
        Ok(_) | Err(ReadError::NeedsDisk) => Ok(None),
        Err(ReadError::Errno(errno)) => Err(errno.into()),
    }
}

/// Secret, starts, and a checksum of both.
const BYTES: usize = 16 + 8 + 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_secret_and_counts_its_starts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache");
        let first = Identity::of_folder(&path).unwrap();
        assert_eq!(Identity::of_folder(&path).unwrap(), Identity { starts: 2, ..first });
        let file = path.join(IDENTITY);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        let another = Identity::of_folder(&path).unwrap();
        assert!(another.secret != first.secret && another.starts == 1, "damaged, so another folder");
    }

    #[test]
    fn a_folder_that_cannot_be_used_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let error = Identity::of_folder(&folder.path().join("a/b")).unwrap_err().to_string();
        assert!(error.contains("the folder was removed, or its file system is not mounted"), "{error}");
    }
}
