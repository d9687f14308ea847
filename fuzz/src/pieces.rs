//! A connection on which an input arrives in pieces of known sizes: for readers that hold the socket themselves.

use std::os::fd::OwnedFd;
use std::thread;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, recv, send, shutdown, socketpair,
};

/// Gives `read` a socket on which `input` arrives in pieces of this size, and then its end. What is written to the
/// socket is thrown away.
pub fn with_pieces<R>(input: &[u8], piece_bytes: usize, read: impl FnOnce(OwnedFd) -> R) -> R {
    // Each of its messages is received alone, as nothing on a stream is.
    let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.expect("two descriptors");
    thread::scope(|scope| {
        scope.spawn(|| {
            for piece in input.chunks(piece_bytes) {
                // It fails when the reader has closed its end, having read what it does not like.
                if send(&ours, piece, SendFlags::NOSIGNAL).is_err() {
                    break;
                }
            }
            let _ = shutdown(&ours, Shutdown::Write);
        });
        scope
            .spawn(|| while recv(&ours, &mut [0; 4096], RecvFlags::empty()).is_ok_and(|(_, len)| len > 0) {});
        read(theirs)
    })
}
