//! `tls = "local"`: the authority of this user for development, where it is kept, and what it signs for sites.
//!
//! The authority is made once. What it signs is made each time that the server reads its certificates, and is kept nowhere.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use baton_engine::listen::ListenAddress;
use baton_report::OperatorError;
use baton_tls::{LocalAuthority, PemFile, is_local_name};
use rustix::fs::{FlockOperation, flock};

use super::site::Site;
use super::tls::SiteCertificates;

/// The folder with the authority of this user.
#[derive(Debug)]
pub struct LocalAuthorityFolder(PathBuf);

impl LocalAuthorityFolder {
    /// `$XDG_DATA_HOME/baton/local-authority`, or what stands for it.
    ///
    /// # Errors
    /// The environment names no folder.
    pub fn of_user() -> Result<Self, OperatorError> {
        let folder = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
        let data = folder("XDG_DATA_HOME").map(PathBuf::from);
        let data = data.or_else(|| folder("HOME").map(|home| PathBuf::from(home).join(".local/share")));
        // A service that is started without a home.
        let data = data.or_else(|| rustix::process::geteuid().is_root().then(|| "/var/lib".into()));
        data.map(|data| Self(data.join("baton/local-authority"))).ok_or_else(|| {
            OperatorError::new("no folder in which to keep a local authority")
                .cause("neither XDG_DATA_HOME nor HOME is set")
                .remedy("set XDG_DATA_HOME to a folder that is kept")
        })
    }

    /// The certificate that clients have to trust.
    pub fn certificate_path(&self) -> PathBuf {
        self.0.join("ca.pem")
    }

    /// The authority that is kept, or a new one if there is none, or if its life is over.
    ///
    /// # Errors
    /// It cannot be read or kept, or others than its owner may read its key.
    pub fn authority(&self, now: SystemTime) -> Result<LocalAuthority, OperatorError> {
        let path = self.0.join("key.pem");
        let trouble = |error: io::Error| {
            OperatorError::of(format_args!("keep a local authority in {}", self.0.display()), &error)
                .about_file(&self.0, &error)
                .remedy("let this user write there, or set XDG_DATA_HOME to a folder that is kept")
        };
        // Servers that start at once would each make an authority, and sign with what the last one replaces.
        let _lock = self.lock().map_err(trouble)?;
        let kept = match read(&path) {
            Ok(bytes) => Some(load(&path, bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(trouble(error)),
        };
        let authority = match kept.filter(|kept| kept.certificate().days_left(now) > DAYS_LEFT_MIN) {
            Some(kept) => kept,
            None => {
                let pem = LocalAuthority::make(now)?;
                replace(&path, pem.as_bytes(), 0o600).map_err(trouble)?;
                load(&path, pem.as_bytes().to_vec())?
            }
        };
        let public = self.certificate_path();
        if fs::read(&public).ok().as_deref() != Some(authority.pem().as_bytes()) {
            replace(&public, authority.pem().as_bytes(), 0o644).map_err(trouble)?;
        }
        Ok(authority)
    }

    /// Makes the folder if there is none, and keeps other servers out of it until the file is closed.
    fn lock(&self) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let folder = File::open(&self.0)?;
        flock(&folder, FlockOperation::LockExclusive)?;
        Ok(folder)
    }
}

/// An authority that ends sooner is replaced.
const DAYS_LEFT_MIN: i64 = 30;

fn load(path: &Path, bytes: Vec<u8>) -> Result<LocalAuthority, OperatorError> {
    LocalAuthority::load(&PemFile::new(path.display().to_string(), bytes))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    if fs::metadata(path)?.mode() & 0o077 != 0 {
        let why = format!("{} is readable for others than its owner: `chmod 600` it", path.display());
        return Err(io::Error::other(why));
    }
    fs::read(path)
}

/// Writes a file in one step for others.
fn replace(path: &Path, contents: &[u8], mode: u32) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new)?;
    file.write_all(contents)?;
    fs::rename(new, path)
}

impl Site {
    /// Whether its certificate comes from the authority of this user.
    pub fn has_local_certificate(&self) -> bool {
        self.settings.tls == SiteCertificates::Local
    }

    /// The names of that certificate: its hosts, this host, and the addresses that it listens on.
    pub(super) fn local_names(&self) -> Vec<String> {
        let unbracketed = |host: &String| host.trim_matches(['[', ']']).to_owned();
        let hosts = self.settings.hosts.iter().map(unbracketed);
        let listened = self.addresses().filter_map(|address| match address {
            ListenAddress::Tcp(address) => Some(address.ip().to_string()),
            ListenAddress::Unix(_) => None,
        });
        let listened = listened.filter(|address| is_local_name(address));
        let mut names: Vec<String> = Vec::new();
        for name in hosts.chain(["localhost", "127.0.0.1", "::1"].map(str::to_owned)).chain(listened) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// What stands for the path of that certificate, which is in no file.
    pub(super) fn local_certificate_path(&self) -> PathBuf {
        format!("local certificate for {}", self.local_names().join(", ")).into()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_authority_is_made_once_and_replaced_before_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let folder = LocalAuthorityFolder(folder.path().join("a/b"));
        let now = SystemTime::now();
        let pem =
            |days: u64| folder.authority(now + Duration::from_secs(days * 86_400)).unwrap().pem().to_owned();
        let first = pem(0);
        assert_eq!(pem(3_600), first);
        assert_eq!(fs::read_to_string(folder.certificate_path()).unwrap(), first);
        let mode = |name: &str| fs::metadata(folder.0.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("key.pem"), mode("ca.pem")), (0o600, 0o644));
        assert_ne!(pem(3_640), first);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "nothing is left over");
    }

    /// Goal: two servers that start at once have one authority. Method: many start at once in an empty folder.
    #[test]
    fn servers_that_start_at_once_share_an_authority() {
        let folder = tempfile::tempdir().unwrap();
        let authority = || LocalAuthorityFolder(folder.path().join("a")).authority(SystemTime::now());
        let pems: Vec<_> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| authority().unwrap().pem().to_owned())).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(pems.iter().all(|pem| *pem == pems[0]));
    }

    #[test]
    fn what_cannot_be_kept_safely_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let kept = LocalAuthorityFolder(folder.path().to_owned());
        kept.authority(SystemTime::now()).unwrap();
        let key = folder.path().join("key.pem");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        let Err(trouble) = kept.authority(SystemTime::now()) else { panic!("others may read the key") };
        assert!(trouble.to_string().contains("chmod 600"), "{trouble}");
        let Err(trouble) = LocalAuthorityFolder("/proc/no".into()).authority(SystemTime::now()) else {
            panic!("there is no such folder")
        };
        assert!(trouble.to_string().contains("set XDG_DATA_HOME"), "{trouble}");
    }
}
