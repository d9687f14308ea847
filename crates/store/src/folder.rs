//! The folder of a store: created, checked, locked. All files are opened relative to it, by fixed names.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use baton_report::OperatorError;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Gid, Mode, OFlags, Stat, Uid, chownat, fchmod, fchown, flock, fstat,
    fstatvfs, fsync, ftruncate, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use crate::disk_failure::{DiskError, DiskFailure};
use crate::file_range::deallocate;
use crate::probe::keeps_what_is_sent;
use crate::slots::SlotSizes;

/// A folder that this process has locked.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    directory: OwnedFd,
    /// Locked as long as it is open.
    lock: OwnedFd,
}

impl Folder {
    /// Opens the folder and locks it; creates it if only its last name is missing.
    ///
    /// # Errors
    /// [`DiskFailure::Locked`] while another process uses it; [`DiskFailure::Denied`] if it belongs to another user, or
    /// others may write to it; what open(2) says.
    pub(crate) fn open(path: &Path) -> Result<Self, DiskError> {
        let directory = open_directory(path)?;
        let lock = open_file(&directory, LOCK, OFlags::CREATE).map_err(DiskError::of("create a lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(DiskError::of("lock the files"))?;
        let folder = Self { path: path.to_owned(), directory, lock };
        if folder.is_there() { Ok(folder) } else { Err(folder.gone()) }
    }

    /// Whether the path still leads to this folder and its lock.
    pub(crate) fn is_there(&self) -> bool {
        let is_same = |found: Result<Stat, Errno>, file: &OwnedFd| {
            let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
            found.is_ok_and(|found| fstat(file).is_ok_and(|file| identity(found) == identity(file)))
        };
        is_same(statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW), &self.directory)
            && is_same(statat(&self.directory, LOCK, AtFlags::SYMLINK_NOFOLLOW), &self.lock)
    }

    /// The error of a folder that is not there any more.
    pub(crate) fn gone(&self) -> DiskError {
        DiskError::new("find the lock", Errno::NOENT.into())
    }

    /// Whether the file system has more than so many free bytes.
    ///
    /// # Errors
    /// [`DiskFailure::Full`] if not.
    pub(crate) fn check_reserve(&self, reserve_bytes: u64) -> Result<(), DiskError> {
        let stat = fstatvfs(&self.directory).map_err(DiskError::of("see how much space is left"))?;
        let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
        if free_bytes > reserve_bytes {
            return Ok(());
        }
        Err(DiskError::new("write", Errno::NOSPC.into()).because(DiskFailure::Full))
    }

    /// The journal; an empty one if there was none.
    ///
    /// # Errors
    /// What open(2) says.
    pub(crate) fn journal(&self) -> io::Result<OwnedFd> {
        Ok(open_file(&self.directory, JOURNAL, OFlags::CREATE)?)
    }

    /// An empty file that may take the journal's place.
    ///
    /// # Errors
    /// What open(2) says.
    pub(crate) fn new_journal(&self) -> io::Result<OwnedFd> {
        match unlinkat(&self.directory, NEW_JOURNAL, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        Ok(open_file(&self.directory, NEW_JOURNAL, OFlags::CREATE | OFlags::EXCL)?)
    }

    /// Puts the new journal into the old one's place, durably.
    ///
    /// # Errors
    /// What rename(2) and fsync(2) say.
    pub(crate) fn replace_journal(&self) -> io::Result<()> {
        renameat(&self.directory, NEW_JOURNAL, &self.directory, JOURNAL)?;
        Ok(fsync(&self.directory)?)
    }

    /// The data files, one for each class of slots, and their lengths in bytes.
    ///
    /// # Errors
    /// What open(2) says.
    pub(crate) fn data_files(&self, sizes: SlotSizes) -> io::Result<(Vec<OwnedFd>, Vec<u64>)> {
        let mut files = Vec::new();
        let mut lengths = Vec::new();
        for class in sizes.classes() {
            let name = format!("{SLOTS}{}k", sizes.bytes(class) >> 10);
            let file = open_file(&self.directory, &name, OFlags::CREATE)?;
            lengths.push(u64::try_from(fstat(&file)?.st_size).unwrap_or(0));
            files.push(file);
        }
        Ok((files, lengths))
    }
}

impl Drop for Folder {
    /// Unlocks the folder, even if a child that is about to execute another program has a copy of the descriptor.
    fn drop(&mut self) {
        let _ = flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Creates the folder of a store, or gives it to `owner`, with the files in it: for a process with the right to do so,
/// before it gives that right up. Only the owner may enter.
///
/// # Errors
/// If the folder cannot be created, is a link, or cannot be given away.
pub fn prepare_folder(path: &Path, owner: Option<(Uid, Gid)>) -> Result<(), OperatorError> {
    let prepare = || {
        let directory = create(path)?;
        let Some((user, group)) = owner else { return Ok(()) };
        fchown(&directory, Some(user), Some(group))?;
        fchmod(&directory, Mode::RWXU)?;
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if !matches!(name.to_bytes(), b"." | b"..") {
                chownat(&directory, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
            }
        }
        Ok::<_, Errno>(())
    };
    prepare().map_err(|errno| {
        let error = errno.into();
        OperatorError::of(format!("prepare the cache folder {}", path.display()), &error)
            .about_file(path, &error)
    })
}

/// Removes the folder of a store that nothing uses any more, with the store's files; others keep it there.
///
/// # Errors
/// If it is a link, or cannot be removed; one that is not there is none.
pub fn remove_folder(path: &Path) -> Result<(), OperatorError> {
    let remove = || {
        let directory = match open_existing(path) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            let bytes = name.to_bytes();
            let is_ours = [IDENTITY, LOCK, JOURNAL, NEW_JOURNAL].iter().any(|own| own.as_bytes() == bytes);
            if is_ours || bytes.starts_with(SLOTS.as_bytes()) {
                unlinkat(&directory, name, AtFlags::empty())?;
            }
        }
        unlinkat(CWD, path, AtFlags::REMOVEDIR)
    };
    remove().map_err(|errno| {
        let error = errno.into();
        OperatorError::of(format!("remove the unused cache folder {}", path.display()), &error)
    })
}

/// Tries whether a store could lie in a folder: its owner, its mode, its file system. Creates nothing that stays.
///
/// # Errors
/// Why not, with a remedy.
pub fn check_folder(path: &Path) -> Result<(), OperatorError> {
    let check = || {
        let directory = match open_existing(path) {
            Ok(directory) => {
                check_owner(&directory)?;
                directory
            }
            // It will be created; its file system is its parent's.
            Err(Errno::NOENT) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                open_existing(parent).map_err(DiskError::of("create a directory"))?
            }
            Err(errno) => return Err(DiskError::new("open a directory", errno.into())),
        };
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = match openat(&directory, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(file) => file,
            Err(Errno::ISDIR) => return Err(DiskError::new("create a file", Errno::OPNOTSUPP.into())),
            Err(errno) => return Err(DiskError::new("create a file", errno.into())),
        };
        let len = rustix::param::page_size();
        let is_kept = keeps_what_is_sent(&file, 0, len, || deallocate(&file, 0, len as u64));
        match is_kept.map_err(DiskError::of("deallocate a range of a file"))? {
            true => Ok(()),
            false => Err(DiskError::new("deallocate a range of a file", Errno::OPNOTSUPP.into())),
        }
    };
    check().map_err(|error| error.message(path))
}

/// Opens the folder, which is created if only its last name is missing.
///
/// # Errors
/// [`DiskFailure::Denied`] if it belongs to another user, or others may write to it; what open(2) says.
pub(crate) fn open_directory(path: &Path) -> Result<OwnedFd, DiskError> {
    let directory = create(path).map_err(DiskError::of("open a directory"))?;
    check_owner(&directory)?;
    Ok(directory)
}

fn check_owner(directory: &OwnedFd) -> Result<(), DiskError> {
    let stat = fstat(directory).map_err(DiskError::of("look"))?;
    let user = rustix::process::geteuid();
    let is_ours = user.is_root() || stat.st_uid == user.as_raw();
    if !is_ours || stat.st_mode & OTHERS_WRITE != 0 {
        return Err(DiskError::new("trust what lies", Errno::PERM.into()));
    }
    Ok(())
}

fn create(path: &Path) -> Result<OwnedFd, Errno> {
    match mkdirat(CWD, path, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(errno),
    }
    open_existing(path)
}

fn open_existing(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

/// Opens one of the folder's files, for its owner alone.
///
/// # Errors
/// What open(2) says.
pub(crate) fn open_file(directory: &OwnedFd, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    // O_NONBLOCK: opening a FIFO that lies in the file's place must not wait.
    let flags = flags | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    baton_sys::descriptors::retry(|| openat(directory, name, flags, Mode::RUSR | Mode::WUSR))
}

/// Makes a file empty.
///
/// # Errors
/// What ftruncate(2) says.
pub(crate) fn clear(file: &OwnedFd) -> io::Result<()> {
    Ok(ftruncate(file, 0)?)
}

/// Its secret, and how often it was opened.
pub(crate) const IDENTITY: &str = "identity";

/// What the process that uses it has locked.
const LOCK: &str = "lock";

/// What the names of the files with slots begin with.
const SLOTS: &str = "slots-";

const JOURNAL: &str = "journal";
const NEW_JOURNAL: &str = "journal.new";

/// Bits of a mode: the group or others may write.
const OTHERS_WRITE: u32 = 0o022;
