//! The signals of the master. docs/operation.md has the table for users.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use baton_supervise::describe_signal;
use baton_sys::signals::{Arrived, SignalQueue};
use rustix::process::Signal;

use super::control::Command;

/// What a signal orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SignalOrder {
    /// A command that the control socket has, too.
    Command(Command),
    /// The workers leave, the sockets stay open.
    Withdraw,
    /// A child has ended.
    Reap,
}

static MEANINGS: [(Signal, SignalOrder); 8] = [
    (Signal::TERM, SignalOrder::Command(Command::Stop)),
    (Signal::INT, SignalOrder::Command(Command::Stop)),
    (Signal::QUIT, SignalOrder::Command(Command::Drain)),
    (Signal::HUP, SignalOrder::Command(Command::Reload)),
    (Signal::USR1, SignalOrder::Command(Command::ReopenLogs)),
    (Signal::USR2, SignalOrder::Command(Command::Upgrade)),
    (Signal::WINCH, SignalOrder::Withdraw),
    (Signal::CHILD, SignalOrder::Reap),
];

/// The signals of the master.
#[derive(Debug)]
pub(super) struct Signals {
    queue: SignalQueue,
    /// Whether SIGHUP means that the terminal was closed.
    hangup_ends: bool,
}

impl Signals {
    /// Blocks the signals of the master and queues them. Workers inherit the mask, so only the master answers a Ctrl-C in
    /// the terminal, which goes to all processes.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`, `ENOMEM`.
    pub(super) fn queue(hangup_ends: bool) -> io::Result<Self> {
        let queue = SignalQueue::new(&MEANINGS.each_ref().map(|(signal, _)| signal.as_raw()))?;
        Ok(Self { queue, hangup_ends })
    }

    /// The next signal that has arrived, as a log calls it, and what it orders.
    pub(super) fn next(&self) -> Option<(String, Option<SignalOrder>)> {
        let arrived = self.queue.next().ok()??;
        Some((describe_signal(arrived.signal), meaning(arrived, self.hangup_ends)))
    }

    /// To poll.
    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// What a signal orders. `hangup_ends`: whether SIGHUP means that the terminal was closed, rather than a reload.
/// SIGWINCH counts only if a process sent it, since the kernel sends it when a terminal changes size.
fn meaning(Arrived { signal, sent }: Arrived, hangup_ends: bool) -> Option<SignalOrder> {
    if hangup_ends && signal == Signal::HUP.as_raw() {
        return Some(SignalOrder::Command(Command::Stop));
    }
    if !sent && signal == Signal::WINCH.as_raw() {
        return None;
    }
    MEANINGS.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, order)| order.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_changes_size_means_nothing() {
        let arrived = |signal: Signal, sent| Arrived { signal: signal.as_raw(), sent };
        assert_eq!(meaning(arrived(Signal::WINCH, false), false), None);
        assert_eq!(meaning(arrived(Signal::WINCH, true), false), Some(SignalOrder::Withdraw));
        assert_eq!(meaning(arrived(Signal::CHILD, false), false), Some(SignalOrder::Reap));
    }

    #[test]
    fn a_terminal_that_goes_takes_what_was_started_there_along() {
        let hangup = Arrived { signal: Signal::HUP.as_raw(), sent: false };
        assert_eq!(meaning(hangup, true), Some(SignalOrder::Command(Command::Stop)));
        assert_eq!(meaning(hangup, false), Some(SignalOrder::Command(Command::Reload)));
    }
}
