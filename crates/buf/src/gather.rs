//! Hands many pieces to the kernel by address, with one call.
//!
//! This is the only way to send bytes of a [`Region`](baton_pool::Region): Rust never borrows them, and the loans are
//! locked only while the kernel copies.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, MutexGuard};

use rustix::io::Errno;

use crate::shared::LoanedBytes;
use crate::{Loan, Piece};

/// Most pieces of one call. More gain nothing: a pipelining client's batch is bounded, too.
pub const GATHERED_MAX: usize = 64;

/// Most descriptors of one call: the way of an answer, a pool, and the file of a body.
pub const DESCRIPTORS_MAX: usize = 3;

/// Sends what is in front of the first range of a file, without waiting: at most [`GATHERED_MAX`] pieces, and with the
/// first byte copies of `descriptors`, at most [`DESCRIPTORS_MAX`]. `more`: other bytes follow at once, even if all of these are sent. Returns how many
/// bytes the socket took.
///
/// # Errors
/// `EAGAIN` if the socket takes nothing now; `EPIPE`, `ECONNRESET` and the like if the peer is gone.
pub(crate) fn send<'a>(
    socket: impl AsFd,
    pieces: impl Iterator<Item = &'a Piece>,
    more: bool,
    descriptors: &[BorrowedFd<'_>],
) -> Result<u64, Errno> {
    let gathered = Gathered::new(pieces);
    let mut flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    if more || gathered.is_cut {
        flags |= libc::MSG_MORE;
    }
    // SAFETY: a message of zeroes is one without address, bytes and control data.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = gathered.vectors.as_ptr().cast_mut();
    message.msg_iovlen = gathered.count as _;
    let mut rights = Rights::new(descriptors);
    if !descriptors.is_empty() {
        message.msg_control = (&raw mut rights).cast();
        message.msg_controllen = rights.header.cmsg_len as _;
    }
    // SAFETY: the kernel reads `count` vectors, each of which describes bytes that `gathered` keeps where they are, and a
    // control message that lives until the end of this function.
    let sent = unsafe { libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const message, flags) };
    u64::try_from(sent).map_err(|_| Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
}

/// A control message with descriptors, as the kernel reads it (`cmsg(3)`).
#[repr(C)]
struct Rights {
    header: libc::cmsghdr,
    descriptors: [RawFd; DESCRIPTORS_MAX],
}

impl Rights {
    fn new(descriptors: &[BorrowedFd<'_>]) -> Self {
        // SAFETY: a header of zeroes is a header.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_level = libc::SOL_SOCKET;
        header.cmsg_type = libc::SCM_RIGHTS;
        // SAFETY: this only calculates.
        header.cmsg_len = unsafe { libc::CMSG_LEN((descriptors.len() * size_of::<RawFd>()) as u32) } as _;
        let mut numbers = [-1; DESCRIPTORS_MAX];
        for (number, descriptor) in numbers[..descriptors.len()].iter_mut().zip(descriptors) {
            *number = descriptor.as_raw_fd();
        }
        Self { header, descriptors: numbers }
    }
}

/// Writes the pieces before the first range of a file, at most [`GATHERED_MAX`], to another file at `offset`. Returns
/// how many bytes were written.
///
/// # Errors
/// `ENOSPC`, `EFBIG`, `EIO` and the like.
pub fn write_at<'a>(
    file: impl AsFd,
    pieces: impl Iterator<Item = &'a Piece>,
    offset: u64,
) -> io::Result<usize> {
    let gathered = Gathered::new(pieces);
    // SAFETY: the kernel reads `count` vectors, each of which describes bytes that `gathered` keeps where they are.
    let written = unsafe {
        libc::pwritev(
            file.as_fd().as_raw_fd(),
            gathered.vectors.as_ptr(),
            gathered.count as libc::c_int,
            offset as libc::off_t,
        )
    };
    usize::try_from(written).map_err(|_| io::Error::last_os_error())
}

/// Addresses of pieces, and what keeps them valid.
struct Gathered<'a> {
    vectors: [libc::iovec; GATHERED_MAX],
    count: usize,
    /// Whether there were more pieces in memory than fit.
    is_cut: bool,
    /// One per loan, for any number of its slices.
    held: [Option<(&'a Arc<Loan>, MutexGuard<'a, LoanedBytes>)>; LOANS_MAX],
}

impl<'a> Gathered<'a> {
    fn new(pieces: impl Iterator<Item = &'a Piece>) -> Self {
        const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let mut gathered = Self {
            vectors: [NOTHING; GATHERED_MAX],
            count: 0,
            is_cut: false,
            held: [const { None }; LOANS_MAX],
        };
        for piece in pieces {
            let bytes = match piece {
                Piece::Memory(slice) => Some((slice.as_ptr(), slice.len())),
                Piece::Shared(slice) => {
                    gathered.hold(slice.loan()).map(|place| (slice.address(place), slice.len()))
                }
                Piece::File(_) | Piece::Piped(_) => break,
            };
            let (Some((address, len)), Some(vector)) = (bytes, gathered.vectors.get_mut(gathered.count))
            else {
                gathered.is_cut = true;
                break;
            };
            *vector = libc::iovec { iov_base: address.cast_mut().cast(), iov_len: len };
            gathered.count += 1;
        }
        gathered
    }

    /// Keeps the bytes of a loan in place; `None` if too many loans are held already.
    fn hold(&mut self, loan: &'a Arc<Loan>) -> Option<&LoanedBytes> {
        let is_its = |held: &Option<(&Arc<Loan>, _)>| match held {
            Some((other, _)) => Arc::ptr_eq(other, loan),
            None => true,
        };
        let index = self.held.iter().position(is_its)?;
        let (_, place) = self.held[index].get_or_insert_with(|| (loan, loan.lock()));
        Some(place)
    }
}

/// Most loans that one call holds. An application announces its output in a few large pieces.
const LOANS_MAX: usize = 16;
