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

use anyhow::{Context, Result, bail};

pub(super) use self::protocol::Made;
use self::protocol::SMALL;
use super::site::of_path;
use super::turn::Turn;
use crate::experiment::{H2loadText, LoadText, ProtocolName, accepts_codings};
use crate::rig::Certificate;
use crate::servers::RunningServer;

/// Makes the load.
///
/// # Errors
/// If the program is missing, or the server gives a wrong answer.
pub(super) fn load(
    load: &LoadText,
    server: &RunningServer,
    certificate: &Certificate,
    turn: Turn,
) -> Result<Made> {
    let (port, Turn { duration, effort, .. }) = (server.address.port(), turn);
    match load {
        LoadText::H2load(requests) => h2load::load(requests, body_bytes(requests)?, port, duration),
        LoadText::Handshakes { resumed } => handshakes::load(*resumed, port, duration),
        LoadText::IdleTls { connections } => {
            idle::load(server, certificate, effort.idle_connections(*connections))
        }
        _ => bail!("this is no load of another program"),
    }
}

/// The length of each body; none if bodies differ, or a coding changes it.
///
/// # Errors
/// All are of one length, which is not known.
fn body_bytes(requests: &H2loadText) -> Result<Option<u64>> {
    match requests.path.paths()[..] {
        [path] if !accepts_codings(&requests.fields) => {
            let bytes = of_path(path)?.bytes;
            Ok(Some(bytes.with_context(|| format!("the length of {path} is not known"))?))
        }
        _ => Ok(None),
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
    let (protocol, paths) = match load {
        LoadText::H2load(requests) => (requests.protocol, requests.path.paths()),
        _ => (ProtocolName::Http1Tls, vec![SMALL.0]),
    };
    let port = server.address.port();
    paths.into_iter().try_for_each(|path| answers::check(protocol, port, certificate, root, path))
}
