//! What a sender does to its queue, and how it stops.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use baton_buf::{Buffer, FileSlice, Sender, Stop};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

/// Goal: a descriptor arrives once, with the first byte, however many pieces leave with it.
#[test]
fn a_descriptor_goes_with_the_first_byte() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (passed, mut other_end) = UnixStream::pair().unwrap();
    let mut sender = Sender::default();
    for piece in ["one ", "two"] {
        sender.queue.push(Buffer::new(piece.into()));
    }
    sender.send_memory(&ours.as_fd(), false, &[passed.as_fd()]).unwrap();
    drop(passed);
    assert_eq!((sender.sent(), sender.queue.len()), (7, 0));
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 100];
    let mut into = [std::io::IoSliceMut::new(&mut bytes)];
    let received = rustix::net::recvmsg(&theirs, &mut into, &mut control, RecvFlags::empty()).unwrap();
    assert_eq!(&bytes[..received.bytes], b"one two");
    let mut descriptors: Vec<OwnedFd> = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    let [descriptor] = &descriptors[..] else { panic!("{descriptors:?}") };
    other_end.write_all(b"x").unwrap();
    assert_eq!(rustix::io::read(descriptor, &mut [0; 2]).unwrap(), 1, "it is another socket");
}

/// Goal: a full socket, a file that ends early and a peer that is gone are told apart, and nothing is counted that was
/// not sent.
#[test]
fn why_nothing_was_sent() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut sender = Sender::default();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"12345").unwrap();
    sender.queue.push(FileSlice::new(Arc::new(OwnedFd::from(file).into()), 0, 10));
    let send_file = |sender: &mut Sender| sender.send_file(&ours.as_fd(), u64::MAX, None, false);
    assert_eq!((send_file(&mut sender), sender.sent()), (Ok(()), 5));
    assert_eq!((send_file(&mut sender), sender.sent()), (Err(Stop::FileShrank), 5));
    sender.queue.clear();
    sender.queue.push(Buffer::new(vec![0; 8 << 20]));
    let stop = loop {
        if let Err(stop) = sender.send_memory(&ours.as_fd(), false, &[]) {
            break stop;
        }
    };
    assert_eq!((stop, sender.sent() + sender.queue.len()), (Stop::Full, 5 + (8 << 20)));
    drop(theirs);
    assert_eq!(sender.send_memory(&ours.as_fd(), false, &[]), Err(Stop::PeerGone));
}
