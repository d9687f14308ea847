//! A certificate for the servers that speak TLS: self-signed, ECDSA with P-256.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The names of the files, both PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate.
    pub chain: PathBuf,
    /// Its key, where HAProxy looks for it by itself.
    pub key: PathBuf,
}

impl Certificate {
    /// Makes one for `localhost` and 127.0.0.1.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn make(folder: &Path) -> Result<Self> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).context("making a certificate")?;
        let files = Self { chain: folder.join("certificate.pem"), key: folder.join("certificate.pem.key") };
        write(&files.chain, &made.cert.pem(), 0o644)?;
        write(&files.key, &made.signing_key.serialize_pem(), 0o600)?;
        Ok(files)
    }
}

fn write(path: &Path, text: &str, mode: u32) -> Result<()> {
    let _ = fs::remove_file(path);
    let made = fs::File::options().write(true).create_new(true).mode(mode).open(path);
    made.and_then(|mut file| file.write_all(text.as_bytes())).with_context(|| path.display().to_string())
}
