//! Messages between a supervisor and its child: JSON, with descriptors, over a pair of sockets that keep message
//! boundaries.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use baton_sys::passing;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest message: a worker's status with everything in it is a few kilobytes, and so is a chain of certificates.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Sends a message.
///
/// # Errors
/// `EPIPE` if the other side has ended, `EAGAIN` if the socket's buffer is full and the socket does not block,
/// `EMSGSIZE` above [`MESSAGE_BYTES_MAX`].
pub fn send(socket: impl AsFd, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let message = serde_json::to_vec(message)?;
    if message.len() > MESSAGE_BYTES_MAX {
        return Err(rustix::io::Errno::MSGSIZE.into());
    }
    passing::send(socket, &message, descriptors)
}

/// Receives a message and its descriptors; `None` if the other side has ended. `buffer` has at least
/// [`MESSAGE_BYTES_MAX`] bytes.
///
/// # Errors
/// `EAGAIN` if there is none and the socket does not block; `InvalidData` if it is not of this kind.
pub fn receive<M: DeserializeOwned>(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> io::Result<Option<(M, Vec<OwnedFd>)>> {
    let (len, descriptors) = loop {
        match passing::receive(&socket, buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // The other side ended with unread messages. The kernel reports that once, before it delivers what that
            // side had sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            other => break other?,
        }
    };
    match len {
        0 => Ok(None),
        len => Ok(Some((serde_json::from_slice(&buffer[..len])?, descriptors))),
    }
}
