//! What only the process does with the store that has its lock: it writes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::{CERTIFICATES, Store, read};
use crate::names::Names;

impl Store {
    /// Creates the folders if they are missing.
    ///
    /// # Errors
    /// What mkdir(2) says.
    pub(crate) fn create(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(self.folder.join(CERTIFICATES))
    }

    /// Takes the right to write, which the process keeps as long as it keeps the file; `None` while another process has
    /// it. The kernel takes it back when that one ends, however it does.
    ///
    /// # Errors
    /// What open(2) says.
    pub(crate) fn lock(&self) -> io::Result<Option<File>> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(self.folder.join("lock"))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a certificate and its key.
    ///
    /// # Errors
    /// What the file system says; the old file is untouched then.
    pub(crate) fn write_certificate(&self, names: &Names, pem: &[u8]) -> io::Result<()> {
        replace(&self.certificate_path(names), pem)
    }

    /// The account, if there is one yet.
    ///
    /// # Errors
    /// As [`certificate`](Self::certificate).
    pub(crate) fn account(&self) -> io::Result<Option<Vec<u8>>> {
        read(&self.account_path())
    }

    /// Replaces the account.
    ///
    /// # Errors
    /// What the file system says; the old file is untouched then.
    pub(crate) fn write_account(&self, json: &[u8]) -> io::Result<()> {
        replace(&self.account_path(), json)
    }

    /// Sets an account aside that the authority does not know any more.
    ///
    /// # Errors
    /// What rename(2) says.
    pub(crate) fn set_account_aside(&self) -> io::Result<()> {
        fs::rename(self.account_path(), self.folder.join("account.lost.json"))
    }

    fn account_path(&self) -> PathBuf {
        self.folder.join("account.json")
    }
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
