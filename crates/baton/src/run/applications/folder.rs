//! The folder in which the sockets of applications are: workers may enter it, and nobody else.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::run::control::usual_path;
use crate::run::privileges::WorkerUser;
use crate::run::trouble::Trouble;

/// A new folder.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Creates it beside the control socket of the system's or the user's server, else among temporary files.
    ///
    /// # Errors
    /// Neither is possible.
    pub(super) fn create(user: &WorkerUser) -> Result<Self, Trouble> {
        let usual = usual_path().parent().map(Path::to_owned).unwrap_or_default();
        // What does not exist is created by the first server; what cannot be, shows in the next step.
        let _ = DirBuilder::new().recursive(true).mode(0o755).create(&usual);
        let made = Self::create_in(&usual).or_else(|_| Self::create_in(&std::env::temp_dir()));
        let made = made.and_then(|folder| {
            folder.admit(user)?;
            Ok(folder)
        });
        made.map_err(|error| Trouble::of("create a folder for the sockets of applications", &error))
    }

    fn create_in(parent: &Path) -> io::Result<Self> {
        let pid = std::process::id();
        let mut names =
            (0..NAMES_MAX).map(|number| parent.join(format!("baton-applications-{pid}-{number}")));
        // An old one may be there, of a server that did not end in order; it is never used again.
        let made = names.find_map(|path| match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            created => Some(created.map(|()| Self(path))),
        });
        made.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))
    }

    /// Lets workers in that run as somebody else. They can reach what is there, but neither list nor change it.
    fn admit(&self, user: &WorkerUser) -> io::Result<()> {
        if let WorkerUser::Other { identity, .. } = user {
            std::os::unix::fs::chown(&self.0, None, Some(identity.gid))?;
            fs::set_permissions(&self.0, Permissions::from_mode(0o710))?;
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it and what is in it.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.0)
    }
}

/// Folders of servers with the same process id that are left over. There are hardly ever any.
const NAMES_MAX: u32 = 64;
