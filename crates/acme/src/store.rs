//! The certificates and the account of one authority, in files.
//!
//! ```text
//!   STORE/acme-v02.api.letsencrypt.org-directory/     0700, one per authority
//!       lock                    held by the process that writes
//!       account.json            the account's key and address
//!       certificates/NAME.pem   a chain and its key
//! ```
//!
//! Chain and key are one file, so that one rename replaces both. Tools that want two files take this one twice. Every file is
//! written beside its place, synchronised and renamed: after a crash there is the old one or the new one.

#[cfg(feature = "obtain")]
mod writing;

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use baton_sys::open_below::open_below;
use rustix::fs::{Mode, OFlags};

use crate::names::Names;

/// The files of one authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The part of the folder `store` that belongs to the authority with that directory URL.
    pub fn of(store: &Path, directory: &str) -> Self {
        let url = directory.trim_start_matches("https://").trim_end_matches('/');
        let word = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = url.chars().map(word).collect();
        // A name of dots alone would be another folder.
        Self { folder: store.join(name.trim_start_matches('.')) }
    }

    /// Where a certificate and its key are.
    pub fn certificate_path(&self, names: &Names) -> PathBuf {
        self.folder.join(CERTIFICATES).join(format!("{}.pem", names.first()))
    }

    /// Reads a certificate and its key; `None` if there is none. The master reads as root what a less privileged process
    /// wrote, so links and special files are refused.
    ///
    /// # Errors
    /// What open(2) and read(2) say; `InvalidData` if it is not a file, or larger than [`FILE_BYTES_MAX`].
    pub fn certificate(&self, names: &Names) -> io::Result<Option<Vec<u8>>> {
        read(&self.certificate_path(names))
    }
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match open_below(path, flags, Mode::empty()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let refused = |reason: &str| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
    if !file.metadata()?.is_file() {
        return refused("it is not a regular file");
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return refused("it is too large");
    }
    Ok(Some(bytes))
}

const CERTIFICATES: &str = "certificates";

/// The largest file that is read: chains have some kilobytes.
pub const FILE_BYTES_MAX: u64 = 256 * 1024;

#[cfg(all(test, feature = "obtain"))]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn store() -> (tempfile::TempDir, Store, Names) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::of(folder.path(), "https://ca.example/directory");
        store.create().unwrap();
        (folder, store, Names::new(vec!["example.org".into()]).unwrap())
    }

    #[test]
    fn a_certificate_is_replaced_at_once_and_readable_by_its_owner_alone() {
        let (folder, store, names) = store();
        assert_eq!(store.certificate(&names).unwrap(), None);
        store.write_certificate(&names, b"old").unwrap();
        // A process died while it wrote.
        let path = folder.path().join("ca.example-directory/certificates/example.org.pem");
        fs::write(path.with_extension("pem.new"), "half").unwrap();
        assert_eq!(store.certificate(&names).unwrap().unwrap(), b"old");
        store.write_certificate(&names, b"new").unwrap();
        assert_eq!(store.certificate(&names).unwrap().unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_process_could_plant_is_not_read() {
        let (folder, store, names) = store();
        let path = store.certificate_path(&names);
        let secret = folder.path().join("secret");
        fs::write(&secret, "secret").unwrap();
        symlink(&secret, &path).unwrap();
        assert!(store.certificate(&names).is_err());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(store.certificate(&names).is_err());
        fs::remove_dir(&path).unwrap();
        fs::write(&path, vec![0; FILE_BYTES_MAX as usize + 1]).unwrap();
        assert!(store.certificate(&names).is_err());
    }

    #[test]
    fn one_process_writes_at_a_time() {
        let (_folder, store, _) = store();
        let held = store.lock().unwrap().unwrap();
        assert!(store.lock().unwrap().is_none());
        drop(held);
        assert!(store.lock().unwrap().is_some());
    }

    #[test]
    fn authorities_have_folders_of_their_own() {
        let folder = |directory| Store::of(Path::new("/s"), directory).folder;
        assert_eq!(folder("https://a.example/acme/"), Path::new("/s/a.example-acme"));
        assert_eq!(folder("https://[::1]:14000/dir"), Path::new("/s/---1--14000-dir"));
        assert_eq!(folder("https://../../etc"), Path::new("/s/-..-etc"));
    }
}
