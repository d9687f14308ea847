//! All system calls on files, with and without waiting for a disk.

use std::os::fd::{AsFd, OwnedFd};

use baton_http::FileState;
pub use baton_sys::blocking::{Blocking, NeedsDisk};
use baton_sys::blocking::{ReadError, read_at};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::tree::Tree;

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskError {
    NeedsDisk,
    Errno(Errno),
}

/// What an error of opening a path means for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Missing,
    Forbidden,
    Failed,
}

pub(crate) fn verdict(errno: Errno) -> Verdict {
    match errno {
        // EXDEV: a link leads out of the root, so the path counts as missing.
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::LOOP | Errno::XDEV => Verdict::Missing,
        // ENXIO: a socket, or a device without a driver.
        Errno::ACCESS | Errno::PERM | Errno::NXIO => Verdict::Forbidden,
        _ => Verdict::Failed,
    }
}

/// Identifies a state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) modified: Moment,
    /// Last change of contents or attributes: nothing but the kernel sets it.
    pub(crate) changed: Moment,
}

/// A time as file systems keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Moment { seconds: stat.st_mtime, nanoseconds: stat.st_mtime_nsec as u32 },
            changed: Moment { seconds: stat.st_ctime, nanoseconds: stat.st_ctime_nsec as u32 },
        }
    }

    /// What clients know of it.
    pub(crate) fn state(&self) -> FileState {
        let moment = |moment: Moment| (moment.seconds, moment.nanoseconds);
        let (modified, changed) = (moment(self.modified), moment(self.changed));
        FileState { size: self.size, modified, changed, inode: self.inode }
    }
}

/// The kind of file that a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Regular,
    Directory,
    /// A device, a FIFO or a socket.
    Special,
}

impl Kind {
    pub(crate) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::Regular,
            FileType::Directory => Self::Directory,
            _ => Self::Special,
        }
    }
}

/// Looks at `path` without opening it: opening a FIFO or a device can have effects.
pub(crate) fn look(tree: &Tree, path: &[u8], blocking: Blocking) -> Result<(Kind, Identity), DiskError> {
    let file = open(tree, path, OFlags::PATH, blocking)?;
    kind_and_identity(&file)
}

/// Where the link at `path` leads to, as it is written in it; `None` if there is no link.
pub(crate) fn link_target(
    tree: &Tree,
    path: &[u8],
    blocking: Blocking,
) -> Result<Option<Vec<u8>>, DiskError> {
    let link = open(tree, path, OFlags::PATH | OFlags::NOFOLLOW, blocking)?;
    let stat = rustix::fs::fstat(&link).map_err(DiskError::Errno)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
        return Ok(None);
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new()).map_err(DiskError::Errno)?;
    Ok(Some(target.into_bytes()))
}

/// Opens a regular file for reading.
///
/// The caller knows already that it is one; should it have become something else in between, `O_NONBLOCK` and
/// `O_NOCTTY` keep the opening without effects, and the answer is `EACCES`.
pub(crate) fn open_regular(
    tree: &Tree,
    path: &[u8],
    blocking: Blocking,
) -> Result<(OwnedFd, Identity), DiskError> {
    let file = open(tree, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, blocking)?;
    match kind_and_identity(&file)? {
        (Kind::Regular, identity) => Ok((file, identity)),
        _ => Err(DiskError::Errno(Errno::ACCESS)),
    }
}

/// Opens a directory in order to list it.
pub(crate) fn open_directory(tree: &Tree, path: &[u8]) -> Result<OwnedFd, DiskError> {
    open(tree, path, OFlags::RDONLY | OFlags::DIRECTORY, Blocking::Allowed)
}

/// The state of an open file.
pub(crate) fn identity(file: impl AsFd) -> Result<Identity, DiskError> {
    Ok(Identity::of(&rustix::fs::fstat(file).map_err(DiskError::Errno)?))
}

/// Fills `buffer` from the beginning of `file`. Returns the number of bytes, fewer than requested only at its end.
pub(crate) fn read(file: impl AsFd, buffer: &mut [u8], blocking: Blocking) -> Result<usize, DiskError> {
    read_at(file, buffer, 0, blocking).map_err(|error| match error {
        ReadError::NeedsDisk => DiskError::NeedsDisk,
        ReadError::Errno(errno) => DiskError::Errno(errno),
    })
}

fn open(tree: &Tree, path: &[u8], flags: OFlags, blocking: Blocking) -> Result<OwnedFd, DiskError> {
    let path = if path.is_empty() { b"." } else { path };
    let flags = flags | OFlags::CLOEXEC;
    let mut resolve = tree.resolve();
    if blocking == Blocking::Never {
        resolve |= ResolveFlags::CACHED;
    }
    for _ in 0..RACES_MAX {
        match rustix::fs::openat2(tree.root(), path, flags, Mode::empty(), resolve) {
            Ok(file) => return Ok(file),
            // EINVAL: before Linux 5.12 there was no RESOLVE_CACHED.
            Err(Errno::AGAIN | Errno::INVAL) if blocking == Blocking::Never => {
                return Err(DiskError::NeedsDisk);
            }
            // Something was renamed while the kernel followed "..", and it could not tell whether that left the root.
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(DiskError::Errno(errno)),
        }
    }
    Err(DiskError::Errno(Errno::AGAIN))
}

/// How often concurrent renames make a path be resolved again.
const RACES_MAX: usize = 16;

fn kind_and_identity(file: impl AsFd) -> Result<(Kind, Identity), DiskError> {
    let stat = rustix::fs::fstat(file).map_err(DiskError::Errno)?;
    Ok((Kind::of(&stat), Identity::of(&stat)))
}
