//! Signals as a readable descriptor.

use std::io;
use std::mem::{MaybeUninit, offset_of};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::check;

/// Signals that arrive as data: a descriptor that is readable when one of them is pending.
#[derive(Debug)]
pub struct SignalQueue(OwnedFd);

/// A signal that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Its number.
    pub signal: i32,
    /// Whether a process sent it with kill(2), and not the kernel on its own account, as when a terminal changes size.
    pub sent: bool,
}

impl SignalQueue {
    /// Blocks `signals` for this thread, and those that it starts later, and queues them here instead. Non-blocking.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub fn new(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals);
        // SAFETY: the set is initialised; the descriptor is new and has no other owner.
        unsafe {
            check(libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
            let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC))?;
            Ok(Self(OwnedFd::from_raw_fd(fd)))
        }
    }

    /// The next signal that is pending, if any.
    ///
    /// # Errors
    /// None that a caller could cause.
    pub fn next(&self) -> io::Result<Option<Arrived>> {
        let mut info = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let field =
            |info: &[u8], at: usize| i32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        match rustix::io::read(&self.0, &mut info) {
            Ok(_) => Ok(Some(Arrived {
                signal: field(&info, offset_of!(libc::signalfd_siginfo, ssi_signo)),
                // Signals from the kernel have codes above 0: SI_FROMKERNEL of its headers.
                sent: field(&info, offset_of!(libc::signalfd_siginfo, ssi_code)) <= 0,
            })),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for SignalQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Unblocks `signals`, for a child that runs another program.
///
/// # Errors
/// None that a caller could cause.
pub fn unblock(signals: &[i32]) -> io::Result<()> {
    let set = set_of(signals);
    // SAFETY: the set is initialised.
    check(unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) }).map(drop)
}

/// Unblocks all signals in a child between fork and exec.
pub(crate) fn unblock_all() -> io::Result<()> {
    let none = set_of(&[]);
    // SAFETY: the set is initialised.
    check(unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) })
        .map(drop)
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the set before anything else reads it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        set.assume_init()
    }
}
