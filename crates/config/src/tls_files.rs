//! The files with certificates, keys and passwords that a configuration names, in memory: the master reads them, workers get their bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use baton_report::OperatorError;
use baton_tls::{Identity, PemFile, self_signed};

use super::basic_auth::users_of;
use super::config::Config;
use super::local_authority::LocalAuthorityFolder;
use super::proxy::OriginTls;
use super::route::Route;
use super::site::Site;
use super::tls::{CertificateFiles, SiteCertificates};

/// Files by path. Their bytes are zeroed when the last copy is dropped.
#[derive(Clone, Debug, Default)]
pub struct PemFiles(BTreeMap<PathBuf, Arc<PemFile>>);

/// The name of a certificate of our own in place of one that the authority has not issued yet.
pub const PLACEHOLDER: &str = "placeholder";

/// Largest file that is read: a revocation list of a large authority has some MiB.
const FILE_BYTES_MAX: u64 = 64 << 20;

impl PemFiles {
    /// Reads the files.
    ///
    /// # Errors
    /// The first that cannot be read.
    pub fn read(config: &Config) -> Result<Self, OperatorError> {
        let mut files = Self::default();
        for path in config.pem_files() {
            if !files.0.contains_key(path) {
                let bytes = read(path)?;
                files.insert(path.to_owned(), bytes);
            }
        }
        for path in config.password_files() {
            files
                .get(path)
                .and_then(|file| users_of(path, file.bytes()))
                .map_err(|error| OperatorError::of(format_args!("use {}", path.display()), &error))?;
        }
        files.read_store(config)?;
        files.sign_local(config)?;
        Ok(files)
    }

    /// Has the authority of this user sign for the sites that ask for it.
    fn sign_local(&mut self, config: &Config) -> Result<(), OperatorError> {
        let mut sites = config.sites.iter().filter(|site| site.has_local_certificate()).peekable();
        if sites.peek().is_none() {
            return Ok(());
        }
        let now = SystemTime::now();
        let authority = LocalAuthorityFolder::of_user()?.authority(now)?;
        for site in sites {
            let pem = authority.sign(&site.local_names(), now)?;
            self.insert(site.local_certificate_path(), pem.as_bytes().to_vec());
        }
        Ok(())
    }

    /// Reads what the authority has issued. A site without a usable certificate gets one that no client trusts: it can
    /// serve, and the proofs that it needs for another one can be seen.
    fn read_store(&mut self, config: &Config) -> Result<(), OperatorError> {
        let store = config.acme.certificates();
        for site in config.sites.iter().filter(|site| site.has_acme()) {
            let Ok(names) = site.acme_names() else { continue };
            let path = store.certificate_path(&names);
            let stored = store.certificate(&names).ok().flatten();
            let stored = stored.map(|bytes| PemFile::new(path.display().to_string(), bytes));
            let usable = stored.filter(|file| Identity::load(file, file).is_ok());
            let file = match usable {
                Some(file) => file,
                None => {
                    let pem = self_signed(&site.settings.hosts, SystemTime::now())?;
                    PemFile::new(PLACEHOLDER, pem.as_bytes().to_vec())
                }
            };
            self.0.insert(path, Arc::new(file));
        }
        Ok(())
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

fn read(path: &Path) -> Result<Vec<u8>, OperatorError> {
    let read = || {
        let length = fs::metadata(path)?.len();
        if length > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("it has {length} bytes, more than {FILE_BYTES_MAX}")));
        }
        fs::read(path)
    };
    read().map_err(|error| {
        let trouble = OperatorError::of(format_args!("read {}", path.display()), &error);
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
    /// The files of a site's certificates. Those from an authority are in its store.
    pub fn certificate_files<'c>(&self, site: &'c Site) -> Cow<'c, [CertificateFiles]> {
        match (&site.settings.tls, site.acme_names()) {
            (SiteCertificates::Files(files), _) => Cow::Borrowed(files),
            (SiteCertificates::Local, _) => {
                Cow::Owned(vec![CertificateFiles { certificate: site.local_certificate_path(), key: None }])
            }
            (SiteCertificates::Acme, Ok(names)) => {
                let certificate = self.acme.certificates().certificate_path(&names);
                Cow::Owned(vec![CertificateFiles { certificate, key: None }])
            }
            // Refused with the configuration.
            (SiteCertificates::Acme, Err(_)) => Cow::Borrowed(&[]),
        }
    }

    /// The PEM files of all sites but those from an authority, which replaces them itself; one may come several times.
    pub fn pem_files(&self) -> impl Iterator<Item = &Path> {
        let of_sites = self.sites.iter().flat_map(|site| {
            let certificates = match &site.settings.tls {
                SiteCertificates::Files(files) => &files[..],
                SiteCertificates::Acme | SiteCertificates::Local => &[],
            };
            let own = certificates.iter().flat_map(|files| [&files.certificate, files.key_file()]);
            let clients = site.settings.client_certificates.iter();
            let clients = clients.flat_map(|one| [Some(&one.authorities), one.revoked.as_ref()]).flatten();
            let origins = site.routes.iter().filter_map(|route| route.settings.proxy.as_ref());
            let origins = origins.filter(|proxy| proxy.to.iter().any(|origin| origin.to.tls));
            let documents = site.settings.documents.iter();
            let documents = documents.flat_map(|one| [Some(&one.key), one.authorities.as_ref()]).flatten();
            let origins = origins.flat_map(|proxy| of_origins(&proxy.tls));
            own.chain(clients).chain(origins).chain(documents).map(PathBuf::as_path)
        });
        let of_sites = of_sites.chain(self.password_files());
        let speaks_tls = self.asks_nodes() && self.cluster.nodes.iter().any(|node| node.to.tls);
        let nodes = speaks_tls.then(|| of_origins(&self.cluster.relay.tls)).into_iter().flatten();
        of_sites.chain(nodes.map(PathBuf::as_path))
    }

    /// The files with users and the hashes of their passwords.
    fn password_files(&self) -> impl Iterator<Item = &Path> {
        let guards = self.sites.iter().flat_map(|site| {
            let routes = site.routes.iter().map(Route::guards);
            routes.chain([&site.guards])
        });
        guards.filter_map(|guards| guards.basic_auth.as_ref()?.file.as_deref())
    }
}

/// The files by which origins are known, and that they are shown.
fn of_origins(tls: &OriginTls) -> impl Iterator<Item = &PathBuf> {
    let OriginTls { ca, certificate, key, .. } = tls;
    [ca.as_ref(), certificate.as_ref(), key.as_ref()].into_iter().flatten()
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
