//! `--tls`: a certificate that is there, one of the user's own authority, or one that is made for development and kept.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use baton_config::{LocalAuthorityFolder, Value};
use baton_report::OperatorError;
use baton_tls::{Certificate, Identity, PemFile, self_signed};
use clap::{Args, ValueHint};

use super::command_line::{CommandLine, table};

/// Whether to speak TLS, and with which certificate.
#[derive(Debug, Args)]
pub(super) struct TlsFlag {
    /// Speak TLS: with the certificate and key in these PEM files (one file may have both), with `local`, a certificate of
    /// your own authority, which browsers can be told to trust (see `baton local-ca`), or with `self-signed`, one
    /// without an authority. On all addresses, unless one of them ends in " tls" [default address: 127.0.0.1:8443]
    #[arg(long, value_name = "CERT[,KEY]", env = "BATON_TLS", value_hint = ValueHint::FilePath, help_heading = "Listening")]
    tls: Option<String>,
}

/// The words in place of files.
const LOCAL: &str = "local";
const SELF_SIGNED: &str = "self-signed";

impl TlsFlag {
    /// Whether it was given.
    pub(super) fn is_given(&self) -> bool {
        self.tls.is_some()
    }

    /// Adds the certificate, if it was given. A self-signed one is for these addresses, too.
    ///
    /// # Errors
    /// A self-signed certificate cannot be kept.
    pub(super) fn add(&self, line: &mut CommandLine, addresses: &[String]) -> Result<(), OperatorError> {
        let Some(given) = &self.tls else { return Ok(()) };
        if given == LOCAL {
            let word = line.flag("--tls", given);
            line.set_site("tls", word);
            return Ok(());
        }
        let parts = match given.as_str() {
            SELF_SIGNED => {
                let mut node = line.flag("--tls", given);
                let path = SelfSigned::keep(&names(addresses))?.path;
                *node.get_mut() = Value::String(path.display().to_string());
                vec![node]
            }
            files => line.parts("--tls", files, files.splitn(2, ',')),
        };
        let keys = ["certificate", "key"].map(str::to_owned);
        line.set_site("tls", table(keys.into_iter().zip(parts)));
        Ok(())
    }

    /// What to tell about a certificate for development.
    pub(super) fn note(&self, addresses: &[String]) -> Option<String> {
        match self.tls.as_deref()? {
            LOCAL => {
                let path = LocalAuthorityFolder::of_user().ok()?.certificate_path();
                let path = path.display();
                return Some(format!(
                    "note: browsers that trust {path} accept the certificate: see `baton local-ca`"
                ));
            }
            SELF_SIGNED => {}
            _ => return None,
        }
        let SelfSigned { path, certificate } = SelfSigned::keep(&names(addresses)).ok()?;
        Some(format!(
            "note: self-signed certificate for {}, kept in {}\n      SHA-256 fingerprint: {}",
            certificate.names.join(", "),
            path.display(),
            certificate.fingerprint_text()
        ))
    }
}

/// A self-signed certificate with its key, kept in a file.
struct SelfSigned {
    path: PathBuf,
    certificate: Certificate,
}

impl SelfSigned {
    /// The one that is kept, or a new one if it is not for all names or its life is over.
    fn keep(names: &[String]) -> Result<Self, OperatorError> {
        let folder = cache_folder().ok_or_else(|| {
            OperatorError::new("no folder in which to keep a self-signed certificate")
                .cause("neither XDG_CACHE_HOME nor HOME is set")
        })?;
        Self::keep_in(&folder, names, SystemTime::now())
    }

    fn keep_in(folder: &Path, names: &[String], now: SystemTime) -> Result<Self, OperatorError> {
        let path = folder.join("self-signed.pem");
        let kept = fs::read(&path).ok().and_then(|bytes| certificate_of(&path, bytes));
        if let Some(certificate) = kept.filter(|kept| kept.advice(names, now).is_empty()) {
            return Ok(Self { path, certificate });
        }
        let pem = self_signed(names, now)?;
        write(folder, &path, pem.as_bytes()).map_err(|error| {
            OperatorError::of(format_args!("keep {}", path.display()), &error).about_file(&path, &error)
        })?;
        let certificate = certificate_of(&path, pem.as_bytes().to_vec());
        let certificate =
            certificate.ok_or_else(|| OperatorError::new("the certificate that was made is damaged"))?;
        Ok(Self { path, certificate })
    }
}

fn certificate_of(path: &Path, bytes: Vec<u8>) -> Option<Certificate> {
    let file = PemFile::new(path.display().to_string(), bytes);
    Identity::load(&file, &file).ok().map(|identity| identity.certificate().clone())
}

/// Writes a file that only its owner reads, in one step for others.
fn write(folder: &Path, path: &Path, contents: &[u8]) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(contents)?;
    fs::rename(&new, path)
}

/// `$XDG_CACHE_HOME/baton`, or what stands for it.
fn cache_folder() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let cache = folder("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| folder("HOME").map(|home| PathBuf::from(home).join(".cache")));
    // A service that is started without a home.
    let cache = cache.or_else(|| rustix::process::geteuid().is_root().then(|| "/var/cache".into()));
    cache.map(|cache| cache.join("baton"))
}

/// The names of this host, and the IP addresses among those to listen on.
fn names(addresses: &[String]) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let own = rustix::system::uname().nodename().to_string_lossy().to_ascii_lowercase();
    let listened = addresses.iter().filter_map(|address| {
        let address = address.trim_end_matches(" tls").parse::<std::net::SocketAddr>().ok()?.ip();
        (!address.is_unspecified()).then(|| address.to_string())
    });
    for name in listened.chain([own]) {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_certificate_is_kept_for_its_life_and_for_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let keep = |names: &[&str], days: u64| {
            let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
            let kept = SelfSigned::keep_in(folder.path(), &names, now + Duration::from_secs(days * 86_400));
            kept.unwrap().certificate.fingerprint
        };
        let first = keep(&["localhost", "box"], 0);
        assert_eq!(keep(&["localhost", "box"], 300), first);
        assert_eq!(keep(&["localhost"], 0), first);
        let second = keep(&["localhost", "other"], 0);
        assert_ne!(second, first);
        assert_ne!(keep(&["localhost", "other"], 364), second, "a week before its end");
    }

    #[test]
    fn names_are_those_of_the_host_and_the_addresses() {
        let names = names(&["192.0.2.1:443 tls".into(), "[2001:db8::1]:443".into(), ":8443".into()]);
        assert_eq!(names[..5], ["localhost", "127.0.0.1", "::1", "192.0.2.1", "2001:db8::1"]);
    }
}
