//! Why the disk does not take what it should, and what the operator is told.

use std::io;
use std::path::Path;
use std::time::Duration;

use baton_report::OperatorError;
use rustix::io::Errno;

/// Why the store works in memory alone for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFailure {
    /// No space is left, but for the reserve.
    Full,
    /// The file system is mounted read-only.
    ReadOnly,
    /// The process may not use the folder, or others may write to it.
    Denied,
    /// The folder has vanished, or there is none.
    Gone,
    /// Another process uses the folder.
    Locked,
    /// The file system cannot deallocate ranges of files, or changes bytes that are being sent when it does.
    Unsupported,
    /// The disk failed, or something else.
    Io,
}

impl DiskFailure {
    /// The word for it in logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read-only",
            Self::Denied => "denied",
            Self::Gone => "gone",
            Self::Locked => "locked",
            Self::Unsupported => "unsupported",
            Self::Io => "io",
        }
    }
}

/// An operation on the folder that failed.
#[derive(Debug)]
pub(crate) struct DiskError {
    pub(crate) reason: DiskFailure,
    operation: &'static str,
    error: io::Error,
}

impl DiskError {
    /// An operation, in words that follow "cannot", that failed with `error`.
    pub(crate) fn new(operation: &'static str, error: io::Error) -> Self {
        Self { reason: reason(&error), operation, error }
    }

    /// For `map_err`.
    pub(crate) fn of<E: Into<io::Error>>(operation: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::new(operation, error.into())
    }

    /// The failed operation with a reason that the error does not tell.
    pub(crate) fn because(self, reason: DiskFailure) -> Self {
        Self { reason, ..self }
    }

    fn errno(&self) -> Option<Errno> {
        Errno::from_io_error(&self.error)
    }

    /// What the operator is told.
    pub(crate) fn message(&self, folder: &Path) -> OperatorError {
        let what = format!("{} in the cache folder {}", self.operation, folder.display());
        let trouble = OperatorError::of(what, &self.error);
        match self.reason {
            DiskFailure::Locked => OperatorError::new(format!(
                "the cache folder {} is in use by another process",
                folder.display()
            ))
            .cause("another server has the same folder, or an earlier one has not ended yet")
            .remedy("give each server a folder of its own"),
            DiskFailure::Full => trouble
                .cause("the file system has no space left, but for the reserve")
                .remedy("free space, or lower the bytes of the cache or its reserve"),
            DiskFailure::ReadOnly => {
                trouble.cause("the file system is mounted read-only").remedy("choose a folder on another one")
            }
            DiskFailure::Denied if matches!(self.errno(), Some(Errno::LOOP | Errno::NOTDIR)) => trouble
                .cause("a symbolic link lies where the folder or one of its files belongs")
                .remedy(format!("remove the link, or choose another folder than {}", folder.display())),
            DiskFailure::Denied => trouble
                .cause(format!(
                    "user {} does not own the folder, or others may write to it",
                    rustix::process::geteuid().as_raw()
                ))
                .remedy(format!("`chmod 700 {0}`, and `chown` it to that user", folder.display())),
            DiskFailure::Gone => trouble
                .cause("the folder was removed, or its file system is not mounted")
                .remedy(format!("`mkdir -p {}`", folder.display())),
            DiskFailure::Unsupported => trouble
                .cause(
                    "the file system cannot deallocate ranges of files without changing what is being sent",
                )
                .remedy("choose a folder on ext4, XFS, Btrfs or tmpfs"),
            DiskFailure::Io => trouble,
        }
    }
}

fn reason(error: &io::Error) -> DiskFailure {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => DiskFailure::Full,
        Some(Errno::ROFS) => DiskFailure::ReadOnly,
        Some(Errno::ACCESS | Errno::PERM | Errno::LOOP | Errno::NOTDIR) => DiskFailure::Denied,
        Some(Errno::NOENT | Errno::STALE | Errno::NODEV | Errno::NXIO) => DiskFailure::Gone,
        Some(Errno::OPNOTSUPP | Errno::NOSYS) => DiskFailure::Unsupported,
        Some(Errno::WOULDBLOCK) => DiskFailure::Locked,
        _ => DiskFailure::Io,
    }
}

/// Says that the store takes no more space.
pub(crate) fn report_limit(folder: &Path, error: &DiskError) {
    baton_report::log::warning(format_args!(
        "{}\nthe cache puts new blocks only in the place of others until there is space",
        error.message(folder)
    ));
}

/// Says that the store goes on in memory.
pub(crate) fn report_failure(folder: &Path, error: &DiskError, pause: Duration) {
    baton_report::log::warning(format_args!(
        "{}\nthe cache goes on in memory and tries again in {} s",
        error.message(folder),
        pause.as_secs()
    ));
}
