//! The authorities that vouch for a server.

use std::fmt::Display;
use std::path::Path;

use baton_report::OperatorError;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Where the certificates of authorities are.
#[derive(Clone, Copy, Debug)]
pub struct Authorities<'a> {
    /// A PEM file, or those that the system trusts.
    pub file: Option<&'a Path>,
    /// What the file has, for messages: `etcd's authorities`.
    pub what: &'a str,
    /// What to do about a file that cannot be used.
    pub remedy: &'a str,
}

impl Authorities<'_> {
    /// Reads them. A file without any is refused: a client that trusts no server would fail with each request instead.
    pub(crate) fn read(&self) -> Result<Vec<CertificateDer<'static>>, OperatorError> {
        let Some(file) = self.file else { return baton_tls::system_authorities() };
        let failed = |reason: &dyn Display| {
            let (what, file) = (self.what, file.display());
            OperatorError::new(format!("cannot read {what} from {file}: {reason}")).remedy(self.remedy)
        };
        let found = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
        let found: Vec<_> = found.map_err(|error| failed(&error))?;
        if found.is_empty() { Err(failed(&"there is none in it")) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        let dir = tempfile::tempdir().unwrap();
        let file = |text: &str| {
            let path = dir.path().join("ca.pem");
            std::fs::write(&path, text).unwrap();
            path
        };
        let why = |path: &Path| {
            let authorities = Authorities { file: Some(path), what: "authorities", remedy: "name another" };
            authorities.read().unwrap_err().to_string().replace(dir.path().to_str().unwrap(), "DIR")
        };
        for empty in ["", "no certificate\n"] {
            assert_eq!(
                why(&file(empty)),
                "cannot read authorities from DIR/ca.pem: there is none in it\n  remedy: name another"
            );
        }
        assert!(why(&file("-----BEGIN CERTIFICATE-----\n")).contains("ca.pem: "));
        assert!(why(&dir.path().join("none")).contains("No such file"));
    }
}
