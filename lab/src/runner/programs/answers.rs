//! Whether a server answers rightly, before it is measured: `curl` compares bodies byte for byte.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::protocol::names;
use crate::experiment::ProtocolName;
use crate::rig::{Certificate, loopback, output_of};

/// Requests the file with this version of HTTP, and compares the answer with it. A path with a query is a program's, which
/// answers something.
///
/// # Errors
/// If `curl` is missing or refuses the certificate, the server has not this version, or the body differs.
pub(super) fn check(
    protocol: ProtocolName,
    port: u16,
    certificate: &Certificate,
    root: &Path,
    path: &str,
) -> Result<()> {
    let (version, flag) = match protocol {
        ProtocolName::Http1Tls => ("1.1", "--http1.1"),
        ProtocolName::Http2Tls => ("2", "--http2"),
        ProtocolName::Http2Clear => ("2", "--http2-prior-knowledge"),
    };
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", flag, "--cacert"]).arg(&certificate.chain);
    // Behind the body.
    curl.args(["--write-out", "%{http_version}"]);
    let output = output_of(curl.arg(format!("{}://{}{path}", names(protocol).0, loopback(port))))?;
    let body = output.strip_suffix(version.as_bytes());
    let body = body.with_context(|| format!("it does not answer over HTTP/{version}"))?;
    if path.contains('?') {
        ensure!(!body.is_empty(), "{path} is empty");
        return Ok(());
    }
    let file = root.join(path.trim_start_matches('/'));
    let expected = fs::read(&file).with_context(|| file.display().to_string())?;
    ensure!(body == expected, "{path} has other bytes than its file");
    Ok(())
}
