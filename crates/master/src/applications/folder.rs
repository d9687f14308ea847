//! The folder of the applications' sockets, which only the workers may enter.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use baton_report::OperatorError;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, test_kill_process};

use crate::control::usual_path;
use crate::privileges::WorkerUser;

/// A folder of this server.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked as long as a process of the server lives: a folder without a lock is stale.
    _lock: File,
}

impl Folder {
    /// Creates the folder beside the control socket of the system's or the user's server, else among temporary files.
    ///
    /// # Errors
    /// If neither place is possible.
    pub(super) fn create(user: &WorkerUser) -> Result<Self, OperatorError> {
        let usual = usual_path().parent().map(Path::to_owned).unwrap_or_default();
        // The first server creates the parent. If it cannot, the next step fails and says why.
        let _ = DirBuilder::new().recursive(true).mode(0o755).create(&usual);
        let made = Self::create_in(&usual).or_else(|_| Self::create_in(&std::env::temp_dir()));
        let made = made.and_then(|folder| {
            folder.admit(user)?;
            Ok(folder)
        });
        made.map_err(|error| OperatorError::of("create a folder for the sockets of applications", &error))
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        remove_stale(parent);
        let pid = std::process::id();
        let mut paths = (0..NAMES_MAX).map(|number| parent.join(format!("{PREFIX}{pid}-{number}")));
        // A server in another container may have the same process id.
        let made = paths.find_map(|path| match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            created => Some(created.map(|()| path)),
        });
        let path = made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        let lock = File::open(&path)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self { path, _lock: lock })
    }

    /// Lets workers of another user enter. They can use the sockets, but neither list nor change the folder.
    fn admit(&self, user: &WorkerUser) -> io::Result<()> {
        if let WorkerUser::Other { identity, .. } = user {
            std::os::unix::fs::chown(&self.path, None, Some(identity.gid))?;
            fs::set_permissions(&self.path, Permissions::from_mode(0o710))?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the folder with its contents.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

/// The beginning of the names of all such folders.
const PREFIX: &str = "baton-applications-";

/// Attempts at a free name: another server has the same process id only in another container.
const NAMES_MAX: u32 = 64;

/// Removes folders of servers that were killed. Those that it cannot remove belong to other users.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        let is_stale = |pid: Pid| {
            let is_locked = || {
                let folder = File::open(entry.path())?;
                Ok::<_, io::Error>(flock(&folder, FlockOperation::NonBlockingLockShared).is_err())
            };
            // A server that has just created its folder has not locked it yet.
            test_kill_process(pid) == Err(rustix::io::Errno::SRCH) && is_locked().is_ok_and(|locked| !locked)
        };
        if pid.and_then(Pid::from_raw).is_some_and(is_stale) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
