//! The PEM files that a configuration names, in memory: the master reads them, workers get their bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_report::Trouble;
use baton_tls::PemFile;

use super::config::Config;

/// Files by path. Their bytes are zeroed when the last copy is dropped.
#[derive(Clone, Debug, Default)]
pub struct PemFiles(BTreeMap<PathBuf, Arc<PemFile>>);

/// Largest file that is read: a revocation list of a large authority has some MiB.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl PemFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// The first that cannot be read.
    pub fn read(config: &Config) -> Result<Self, Trouble> {
        let mut files = Self::default();
        for path in config.pem_files() {
            if !files.0.contains_key(path) {
                let bytes = read(path)?;
                files.insert(path.to_owned(), bytes);
            }
        }
        Ok(files)
    }

    /// The file at a path.
    pub(crate) fn get(&self, path: &Path) -> io::Result<&PemFile> {
        let file = self.0.get(path).map(|file| &**file);
        file.ok_or_else(|| io::Error::other(format!("{} has not been read", path.display())))
    }

    /// All in one piece, for another process.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.values().map(|file| file.bytes().len() + 256).sum());
        for (path, file) in &self.0 {
            for part in [path.as_os_str().as_encoded_bytes(), file.bytes()] {
                bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        bytes
    }

    /// The files of [`to_bytes`](Self::to_bytes). `None` if something is missing.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let mut files = Self::default();
        while !bytes.is_empty() {
            let path = std::str::from_utf8(part(&mut bytes)?).ok()?;
            files.insert(path.into(), part(&mut bytes)?.to_vec());
        }
        Some(files)
    }

    fn insert(&mut self, path: PathBuf, bytes: Vec<u8>) {
        let file = PemFile::new(path.display().to_string(), bytes);
        self.0.insert(path, Arc::new(file));
    }
}

/// Takes a part with its length from the front.
fn part<'b>(bytes: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *bytes = rest;
    Some(part)
}

fn read(path: &Path) -> Result<Vec<u8>, Trouble> {
    let read = || {
        let length = fs::metadata(path)?.len();
        if length > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("it has {length} bytes, more than {FILE_BYTES_MAX}")));
        }
        fs::read(path)
    };
    read().map_err(|error| {
        let trouble = Trouble::of(format_args!("read {}", path.display()), &error);
        match error.kind() {
            io::ErrorKind::NotFound => {
                trouble.cause("the path is wrong, or the certificate has not been issued yet")
            }
            io::ErrorKind::PermissionDenied => {
                trouble.cause(format!("user {} may not read it", rustix::process::geteuid().as_raw())).remedy(
                    "start the server as root: the master reads the file, and workers run as `server.user`",
                )
            }
            _ => trouble,
        }
    })
}

impl Config {
    /// The PEM files of all sites; one may come several times.
    pub fn pem_files(&self) -> impl Iterator<Item = &Path> {
        self.sites.iter().flat_map(|site| {
            let certificates = site.settings.tls.iter();
            let own = certificates.flat_map(|files| [&files.certificate, files.key_file()]);
            let clients = site.settings.client_certificates.iter();
            let clients = clients.flat_map(|one| [Some(&one.authorities), one.revoked.as_ref()]).flatten();
            own.chain(clients).map(PathBuf::as_path)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_pass_from_process_to_process() {
        let mut files = PemFiles::default();
        files.insert("/a".into(), b"one".to_vec());
        files.insert("/b".into(), Vec::new());
        let bytes = files.to_bytes();
        let again = PemFiles::from_bytes(&bytes).unwrap();
        assert_eq!(again.get(Path::new("/a")).unwrap().bytes(), b"one");
        assert_eq!(again.get(Path::new("/b")).unwrap().bytes(), b"");
        assert!(again.get(Path::new("/c")).is_err());
        assert!(
            (1..bytes.len()).all(|cut| PemFiles::from_bytes(&bytes[..cut]).is_none() || cut == 8 + 2 + 8 + 3)
        );
        assert!(PemFiles::from_bytes(&[0xFF; 16]).is_none());
    }
}
