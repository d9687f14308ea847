//! What threads send to an event loop: messages, announced by a descriptor in the loop's interest set.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::EventfdFlags;

/// Messages for one loop, from any number of threads. Who sends bounds them: each client of a loop waits for one at most.
#[derive(Debug)]
pub struct Mailbox<T> {
    messages: Mutex<Vec<T>>,
    waker: OwnedFd,
}

impl<T> Mailbox<T> {
    /// An empty one.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn new() -> io::Result<Self> {
        let waker = rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { messages: Mutex::default(), waker })
    }

    /// Readable when there are messages.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    /// Adds messages. The waker is signalled only when the mailbox was empty.
    pub fn send(&self, new: impl IntoIterator<Item = T>) {
        let mut messages = self.lock();
        let was_empty = messages.is_empty();
        messages.extend(new);
        let is_announced = !was_empty || messages.is_empty();
        drop(messages);
        if !is_announced {
            // It can only fail because 2^64 - 1 wake-ups are pending.
            let _ = rustix::io::write(&self.waker, &1_u64.to_ne_bytes());
        }
    }

    /// Takes all messages, in the order in which they came.
    pub fn take(&self, into: &mut Vec<T>) {
        let _ = rustix::io::read(&self.waker, &mut [0; 8]);
        into.append(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
