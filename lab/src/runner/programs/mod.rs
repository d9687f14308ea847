//! Loads that other people's programs make: `h2load` for HTTP/2 and TLS, `openssl` for handshakes.
//!
//! They read what they receive, and sleep when there is nothing to read, so their figures compare among themselves only. All
//! servers have the same certificate (ECDSA, P-256), and all connections the same version, key exchange and cipher.

mod answers;
mod h2load;
mod handshakes;
mod idle;
mod program;
mod protocol;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

pub(super) use self::protocol::Made;
use self::protocol::SMALL;
use super::site::of_path;
use crate::experiment::{LoadText, ProtocolName};
use crate::rig::Certificate;
use crate::servers::RunningServer;

/// Makes the load. The second part is the memory of an idle connection, where the load has some.
///
/// # Errors
/// If the program is missing, or the server gives a wrong answer.
pub(super) fn load(
    load: &LoadText,
    server: &RunningServer,
    certificate: &Certificate,
    duration: Duration,
) -> Result<(Made, Option<f64>)> {
    let port = server.address.port();
    match load {
        LoadText::H2load(requests) => {
            let bytes = of_path(&requests.path)?.bytes;
            let bytes = bytes.with_context(|| format!("the length of {} is not known", requests.path))?;
            Ok((h2load::load(requests, bytes, port, duration)?, None))
        }
        LoadText::Handshakes { resumed } => Ok((handshakes::load(*resumed, port, duration)?, None)),
        LoadText::IdleTls { connections } => {
            let (made, bytes) = idle::load(server, certificate, *connections)?;
            Ok((made, Some(bytes)))
        }
        _ => bail!("this is no load of another program"),
    }
}

/// Whether it is a load of another program.
pub(super) fn makes(load: &LoadText) -> bool {
    matches!(load, LoadText::H2load(_) | LoadText::Handshakes { .. } | LoadText::IdleTls { .. })
}

/// Whether the server answers rightly by the load's protocol: `curl` compares a body byte for byte.
///
/// # Errors
/// If it does not, or `curl` is missing.
pub(super) fn check(
    load: &LoadText,
    server: &RunningServer,
    certificate: &Certificate,
    root: &Path,
) -> Result<()> {
    let (protocol, path) = match load {
        LoadText::H2load(requests) => (requests.protocol, requests.path.as_str()),
        _ => (ProtocolName::Http1Tls, SMALL.0),
    };
    answers::check(protocol, server.address.port(), certificate, root, path)
}
