//! The signals of the master. docs/operation.md has the table for users.

use std::io;

use baton_sys::signals::{Arrived, SignalQueue};
use rustix::process::Signal;

use super::control::Command;

/// The command of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// A command that the control socket has, too.
    Command(Command),
    /// The workers leave, the sockets stay open.
    Withdraw,
    /// A child has ended.
    Reap,
}

static MEANINGS: [(Signal, Asked); 8] = [
    (Signal::TERM, Asked::Command(Command::Stop)),
    (Signal::INT, Asked::Command(Command::Stop)),
    (Signal::QUIT, Asked::Command(Command::Drain)),
    (Signal::HUP, Asked::Command(Command::Reload)),
    (Signal::USR1, Asked::Command(Command::ReopenLogs)),
    (Signal::USR2, Asked::Command(Command::Upgrade)),
    (Signal::WINCH, Asked::Withdraw),
    (Signal::CHILD, Asked::Reap),
];

/// Blocks the signals of the master and queues them. Workers inherit the mask, so only the master answers a Ctrl-C in
/// the terminal, which goes to all processes.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub(super) fn queue() -> io::Result<SignalQueue> {
    SignalQueue::new(&MEANINGS.each_ref().map(|(signal, _)| signal.as_raw()))
}

/// The command of a signal. `hangup_ends`: whether SIGHUP means that the terminal was closed, rather than a reload.
/// SIGWINCH counts only if a process sent it, since the kernel sends it when a terminal changes size.
pub(super) fn meaning(Arrived { signal, sent }: Arrived, hangup_ends: bool) -> Option<Asked> {
    if hangup_ends && signal == Signal::HUP.as_raw() {
        return Some(Asked::Command(Command::Stop));
    }
    if !sent && signal == Signal::WINCH.as_raw() {
        return None;
    }
    MEANINGS.iter().find(|(known, _)| known.as_raw() == signal).map(|(_, asked)| asked.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_changes_size_means_nothing() {
        let arrived = |signal: Signal, sent| Arrived { signal: signal.as_raw(), sent };
        assert_eq!(meaning(arrived(Signal::WINCH, false), false), None);
        assert_eq!(meaning(arrived(Signal::WINCH, true), false), Some(Asked::Withdraw));
        assert_eq!(meaning(arrived(Signal::CHILD, false), false), Some(Asked::Reap));
    }

    #[test]
    fn a_terminal_that_goes_takes_what_was_started_there_along() {
        let hangup = Arrived { signal: Signal::HUP.as_raw(), sent: false };
        assert_eq!(meaning(hangup, true), Some(Asked::Command(Command::Stop)));
        assert_eq!(meaning(hangup, false), Some(Asked::Command(Command::Reload)));
    }
}
