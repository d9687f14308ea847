//! The certificates that the server uses. The master reads them, with the rights that it was started with.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use baton_config::{Config, PLACEHOLDER, PemFiles, Site, SiteCertificate};
use baton_report::{OperatorError, log, utc};
use baton_tls::{Certificate, LOCAL_RENEWED_AFTER};
use serde_json::{Value, json};

/// The PEM files of a configuration, checked.
#[derive(Debug)]
pub(crate) struct Certificates {
    /// For the workers.
    pub(crate) files: PemFiles,
    all: Vec<SiteCertificate>,
    stamps: Stamps,
    /// When those of the user's own authority are made again.
    renewal: Option<Instant>,
}

/// What of each file changes with its contents: its inode, size and time. `None`: it is not there.
type Stamps = Vec<(PathBuf, Option<(u64, u64, i64, i64)>)>;

impl Certificates {
    /// Reads the files, and warns of what clients will refuse.
    ///
    /// # Errors
    /// The first file that cannot be read, or certificate that cannot be used.
    pub(crate) fn read(config: &Config) -> Result<Self, OperatorError> {
        // Before the files are read: what changes meanwhile is seen at the next look.
        let stamps = stamps(config);
        let files = PemFiles::read(config)?;
        let all = config.certificates(&files)?;
        for one in &all {
            one.certificate.advice(&one.hosts, SystemTime::now()).into_iter().for_each(log::warning);
            if one.certificate.source == PLACEHOLDER {
                log::warning(format_args!(
                    "{}: no certificate from the authority yet: clients get one that they do not trust",
                    one.site
                ));
            }
        }
        let is_local = config.sites.iter().any(Site::has_local_certificate);
        let renewal = is_local.then(|| Instant::now() + LOCAL_RENEWED_AFTER);
        Ok(Self { files, all, stamps, renewal })
    }

    /// Whether a file has changed since it was read; then, the stamps of all.
    fn changed(&self, config: &Config) -> Option<Stamps> {
        let now = stamps(config);
        (now != self.stamps).then_some(now)
    }

    /// For the status.
    pub(crate) fn report(&self, now: SystemTime) -> Vec<Value> {
        let report = |one: &SiteCertificate| {
            let certificate = &one.certificate;
            json!({
                "site": one.site,
                "names": certificate.names,
                "key": certificate.key.word(),
                "issuer": certificate.issuer,
                "not_after": utc(certificate.not_after),
                "days_left": days_left(certificate, now),
                "source": certificate.source,
            })
        };
        self.all.iter().map(report).collect()
    }

    /// Site, algorithm and days left of each, for the metrics.
    pub(crate) fn days_left(&self, now: SystemTime) -> Vec<(String, &'static str, i64)> {
        let days = |one: &SiteCertificate| {
            (one.site.clone(), one.certificate.key.word(), days_left(&one.certificate, now))
        };
        self.all.iter().map(days).collect()
    }
}

/// A placeholder counts as ended, so that an alarm on few days tells of it.
fn days_left(certificate: &Certificate, now: SystemTime) -> i64 {
    if certificate.source == PLACEHOLDER { 0 } else { certificate.days_left(now) }
}

/// After which a certificate that could not be made is tried again; it is good for another month.
const RENEWAL_RETRY: Duration = Duration::from_secs(3_600);

fn stamps(config: &Config) -> Stamps {
    let stamp = |path: &std::path::Path| {
        let metadata = fs::metadata(path).ok();
        let stamp = metadata.map(|file| (file.ino(), file.size(), file.mtime(), file.mtime_nsec()));
        (path.to_owned(), stamp)
    };
    config.pem_files().map(stamp).collect()
}

/// The certificates in use, when their files are looked at again, and what the last look found that could not be used.
#[derive(Debug)]
pub(crate) struct WatchedCertificates {
    used: Certificates,
    next_look: Instant,
    refused: Option<Stamps>,
}

impl WatchedCertificates {
    /// The server begins with these.
    pub(crate) fn new(used: Certificates, now: Instant) -> Self {
        Self { used, next_look: now, refused: None }
    }

    /// The certificates in use.
    pub(crate) fn used(&self) -> &Certificates {
        &self.used
    }

    /// For a worker.
    pub(crate) fn into_files(self) -> PemFiles {
        self.used.files
    }

    /// From now on these are in use.
    pub(crate) fn replace(&mut self, used: Certificates) {
        self.used = used;
    }

    /// When [`look`](Self::look) is due, if the configuration asks for it.
    pub(crate) fn deadline(&self, config: &Config) -> Option<Instant> {
        let look = (config.tls.watch_ms > 0 && config.has_tls()).then_some(self.next_look);
        look.into_iter().chain(self.used.renewal).min()
    }

    /// Whether there is something new to read. Files that were refused are new once they have changed again: often the
    /// certificate has been replaced, and the key follows.
    pub(crate) fn look(&mut self, config: &Config, now: Instant) -> bool {
        self.next_look = now + Duration::from_millis(config.tls.watch_ms);
        if self.used.renewal.is_some_and(|renewal| now >= renewal) {
            self.used.renewal = Some(now + RENEWAL_RETRY);
            return true;
        }
        let Some(stamps) = self.used.changed(config) else { return false };
        if self.refused.as_ref() == Some(&stamps) {
            return false;
        }
        self.refused = Some(stamps);
        true
    }

    /// The files were not to blame: the next look reads them again.
    pub(crate) fn retry(&mut self) {
        self.refused = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_read_once_unless_the_files_were_not_to_blame() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["c.pem", "k.pem"].map(|name| folder.path().join(name));
        let text = format!(
            "[[site]]\nlisten = '127.0.0.1:0 tls'\nroot = '/'\ntls = {{ certificate = {certificate:?}, key = {key:?} }}\n[tls]\nwatch_ms = 1000\n"
        );
        let config = Config::from_toml(&text).unwrap_or_else(|error| panic!("{error}"));
        let none = Certificates {
            files: PemFiles::default(),
            all: Vec::new(),
            stamps: stamps(&config),
            renewal: None,
        };
        let mut watched = WatchedCertificates::new(none, Instant::now());
        let look = |watched: &mut WatchedCertificates| {
            let due = watched.deadline(&config).unwrap();
            watched.look(&config, due)
        };
        assert!(!look(&mut watched));
        fs::write(&certificate, "new").unwrap();
        assert_eq!([look(&mut watched), look(&mut watched)], [true, false]);
        watched.retry();
        assert!(look(&mut watched));
        fs::write(&key, "it follows").unwrap();
        assert!(look(&mut watched));
    }

    /// Goal: a server that runs for a year has a certificate. Method: its time passes, once without success.
    #[test]
    fn what_the_users_authority_has_signed_is_made_again() {
        let config = Config::from_toml("[[site]]\nlisten = '127.0.0.1:0 tls'\nroot = '/'\ntls = 'local'\n");
        let config = config.unwrap_or_else(|error| panic!("{error}"));
        let due = Instant::now() + LOCAL_RENEWED_AFTER;
        let used = Certificates {
            files: PemFiles::default(),
            all: Vec::new(),
            stamps: stamps(&config),
            renewal: Some(due),
        };
        let mut watched = WatchedCertificates::new(used, Instant::now());
        assert_eq!(watched.deadline(&config), Some(due));
        assert!(!watched.look(&config, due - Duration::from_secs(1)));
        assert!(watched.look(&config, due));
        assert_eq!(watched.deadline(&config), Some(due + RENEWAL_RETRY), "it has not been replaced");
    }
}
