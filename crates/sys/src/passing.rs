//! Descriptors passed between processes, over Unix sockets: with messages, or with the bytes of a stream.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Most descriptors that one message carries; the kernel's own bound is 253.
pub const DESCRIPTORS_MAX: usize = 64;

/// A pair of connected sockets that keep message boundaries, for a process and the child it is about to fork.
///
/// # Errors
/// `EMFILE`, `ENFILE`.
pub fn message_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::net::socketpair(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends one message and references to `descriptors`.
///
/// # Errors
/// `EMSGSIZE` if the message does not fit into the socket's buffer, `EPIPE` if the peer is gone, `EAGAIN` if the
/// socket does not block and is full.
///
/// # Panics
/// If there are more than [`DESCRIPTORS_MAX`] descriptors.
pub fn send(socket: impl AsFd, message: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    assert!(descriptors.len() <= DESCRIPTORS_MAX, "{} descriptors in one message", descriptors.len());
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(message)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives one message into `buffer`: its length and the descriptors that came with it, close-on-exec.
/// A length of 0 means that the peer is gone.
///
/// # Errors
/// `InvalidData` if the message is larger than the buffer; `EAGAIN` if the socket does not block and is empty.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        rustix::net::recvmsg(socket, &mut [IoSliceMut::new(buffer)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message larger than its buffer"));
    }
    Ok((received.bytes, descriptors))
}
