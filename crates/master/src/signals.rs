//! What signals ask of the master. docs/operation.md has the table for users.

use std::io;

use baton_sys::signals::{Arrived, SignalQueue};
use rustix::process::Signal;

use super::control::Command;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The same as a command through the control socket.
    Command(Command),
    /// That the workers leave, while the sockets stay open.
    Withdraw,
    /// To look which workers have ended.
    Reap,
}

const MEANINGS: [(Signal, Asked); 8] = [
    (Signal::TERM, Asked::Command(Command::Stop)),
    (Signal::INT, Asked::Command(Command::Stop)),
    (Signal::QUIT, Asked::Command(Command::Drain)),
    (Signal::HUP, Asked::Command(Command::Reload)),
    (Signal::USR1, Asked::Command(Command::ReopenLogs)),
    (Signal::USR2, Asked::Command(Command::Upgrade)),
    (Signal::WINCH, Asked::Withdraw),
    (Signal::CHILD, Asked::Reap),
];

/// Queues the signals that mean something. Workers inherit that they are blocked, so that a Ctrl-C in the terminal,
/// which goes to all processes, is answered by the master alone.
///
/// # Errors
/// `EMFILE`, `ENFILE`, `ENOMEM`.
pub(super) fn queue() -> io::Result<SignalQueue> {
    SignalQueue::new(&MEANINGS.map(|(signal, _)| signal.as_raw()))
}

/// What a signal asks for. `hangup_ends`: whether SIGHUP means what it meant before daemons found another use for it,
/// that the terminal is gone. SIGWINCH counts only if a process sent it: the kernel sends it, too, when a terminal
/// changes size.
pub(super) fn meaning(Arrived { signal, sent }: Arrived, hangup_ends: bool) -> Option<Asked> {
    if hangup_ends && signal == Signal::HUP.as_raw() {
        return Some(Asked::Command(Command::Stop));
    }
    if !sent && signal == Signal::WINCH.as_raw() {
        return None;
    }
    MEANINGS.iter().find(|(known, _)| known.as_raw() == signal).map(|&(_, asked)| asked)
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
