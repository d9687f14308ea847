//! A connection on which an input arrives in pieces of known sizes: for readers that hold the socket themselves.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
    sendmsg, shutdown, socketpair, sockopt,
};

/// Fits into a socket's queue in any pieces, also of single bytes. A reader answers at most each record, of which
/// there are fewer.
pub const INPUT_BYTES_MAX: usize = 2048;
/// The most pieces: each takes most of a kilobyte of the queue.
const PIECES_MAX: usize = 300;

/// Gives `read` a socket on which `input`, of at most [`INPUT_BYTES_MAX`] bytes, arrives in pieces of this size
/// (larger ones if they would be too many), and then its end. The descriptors, at most eight, come with the first piece.
/// Bytes written to the socket are not read.
pub fn with_pieces<R>(
    input: &[u8],
    piece_bytes: usize,
    mut descriptors: &[BorrowedFd<'_>],
    read: impl FnOnce(OwnedFd) -> R,
) -> R {
    assert!(input.len() <= INPUT_BYTES_MAX);
    // Each of its messages is received alone, as nothing on a stream is. All wait there: a thread that sent them would
    // be taken for a leak while it ends.
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.expect("two descriptors");
    for socket in [&ours, &theirs] {
        sockopt::set_socket_send_buffer_size(socket, 1 << 18).expect("a socket");
    }
    for piece in input.chunks(piece_bytes.max(input.len().div_ceil(PIECES_MAX))) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(std::mem::take(&mut descriptors))));
        }
        sendmsg(&ours, &[IoSlice::new(piece)], &mut control, SendFlags::DONTWAIT).expect("room");
    }
    shutdown(&ours, Shutdown::Write).expect("a socket");
    read(theirs)
}
