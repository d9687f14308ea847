//! What the connections of a thread have in common, and how one of them is opened.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use anyhow::{Context, Result};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

use super::targets::Targets;

/// What the connections of a thread have in common.
#[derive(Debug)]
pub(super) struct Wire {
    pub(super) epoll: OwnedFd,
    pub(super) address: SocketAddr,
    pub(super) targets: Targets,
    pub(super) connection_per_request: bool,
    /// Every body is read and compared with what its file or the first reply had.
    pub(super) verify: bool,
    pub(super) scratch: Vec<u8>,
    /// Bytes of bodies received.
    pub(super) bytes: u64,
    /// Connections opened.
    pub(super) connections: u64,
}

impl Wire {
    pub(super) fn new(
        address: SocketAddr,
        targets: Targets,
        connection_per_request: bool,
        verify: bool,
    ) -> Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll_create1")?,
            address,
            targets,
            connection_per_request,
            verify,
            scratch: vec![0; SCRATCH_BYTES],
            bytes: 0,
            connections: 0,
        })
    }

    /// A new connection, perhaps still being opened, registered once for everything that can happen to it.
    pub(super) fn connect(&mut self, token: u64) -> Result<OwnedFd> {
        let family = if self.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP)).context("opening a socket")?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        match connect(&socket, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno).with_context(|| format!("connecting to {}", self.address)),
        }
        register(&self.epoll, &socket, token)?;
        self.connections += 1;
        Ok(socket)
    }
}

/// Registers a socket once for everything; edge-triggered, so that no later epoll_ctl is needed.
fn register(epoll: &OwnedFd, socket: &OwnedFd, token: u64) -> rustix::io::Result<()> {
    let flags =
        epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::RDHUP | epoll::EventFlags::ET;
    epoll::add(epoll, socket, epoll::EventData::new_u64(token), flags)
}

/// Room for what one receive call may take or drop. Dropped bytes never touch it.
pub(super) const SCRATCH_BYTES: usize = 1 << 20;
