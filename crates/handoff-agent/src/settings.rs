//! What a server's settings mean here: the key, and the socket for other agents.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use baton_report::OperatorError;
use baton_tls::{MemberKey, PemFile};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};

/// A certificate and a key have some kilobytes.
const KEY_BYTES_MAX: u64 = 64 * 1024;

/// Waiting connections of other agents: all front-ends of a cluster at once.
const BACKLOG: i32 = 128;

/// Reads this member's file.
pub(crate) fn load_key(path: &Path, revoked: &[String]) -> Result<MemberKey, OperatorError> {
    let name = path.display();
    let read = || {
        let file = File::open(path)?;
        let mode = file.metadata()?.mode();
        let mut bytes = Vec::new();
        file.take(KEY_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>((mode, bytes))
    };
    let (mode, bytes) = read().map_err(|error| {
        OperatorError::of(format_args!("read the cluster's key at {name}"), &error)
            .cause(
                "it is not there, or does not belong to root: the handoff agent may read root's files only",
            )
            .remedy(format!("`baton cluster key {name}` makes one; copy it to all members"))
    })?;
    if mode & 0o077 != 0 {
        return Err(OperatorError::new(format!("{name}: others than its owner may read the cluster's key"))
            .remedy(format!("`chmod 600 {name}`")));
    }
    MemberKey::load(&PemFile::new(name.to_string(), bytes), revoked)
}

/// Listens for other agents.
pub(crate) fn listen(address: SocketAddr) -> Result<OwnedFd, OperatorError> {
    let listen = || {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok::<_, io::Error>(socket)
    };
    listen().map_err(|error| {
        let trouble =
            OperatorError::of(format_args!("listen for handoff agents of other hosts at {address}"), &error);
        match error.kind() {
            io::ErrorKind::AddrInUse => trouble
                .cause("another process, perhaps another server's handoff agent, listens there")
                .remedy("choose another port with `listen` in [cluster]"),
            io::ErrorKind::AddrNotAvailable => {
                trouble.cause("this host does not have the address").remedy("correct `listen` in [cluster]")
            }
            _ => trouble,
        }
    })
}
