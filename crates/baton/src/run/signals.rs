//! What signals ask of the master. docs/operation.md has the table for users.

use std::io;

use baton_sys::signals::SignalQueue;
use rustix::process::Signal;

use super::control::Command;

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The same as a command through the control socket.
    Command(Command),
    /// To look which workers have ended.
    Reap,
}

const MEANINGS: [(Signal, Asked); 6] = [
    (Signal::TERM, Asked::Command(Command::Stop)),
    (Signal::INT, Asked::Command(Command::Stop)),
    (Signal::QUIT, Asked::Command(Command::Drain)),
    (Signal::HUP, Asked::Command(Command::Reload)),
    (Signal::USR1, Asked::Command(Command::ReopenLogs)),
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
/// that the terminal is gone.
pub(super) fn meaning(signal: i32, hangup_ends: bool) -> Option<Asked> {
    if hangup_ends && signal == Signal::HUP.as_raw() {
        return Some(Asked::Command(Command::Stop));
    }
    MEANINGS.iter().find(|(known, _)| known.as_raw() == signal).map(|&(_, asked)| asked)
}

/// A signal's number and, of those that the master or a worker gets, its name.
pub(super) fn describe(signal: i32) -> String {
    const NAMES: [(Signal, &str); 14] = [
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::HUP, "SIGHUP"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::KILL, "SIGKILL"),
        (Signal::TERM, "SIGTERM"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::BUS, "SIGBUS"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::ILL, "SIGILL"),
        (Signal::FPE, "SIGFPE"),
        (Signal::SYS, "SIGSYS"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::XCPU, "SIGXCPU"),
    ];
    match NAMES.iter().find(|(known, _)| known.as_raw() == signal) {
        Some((_, name)) => format!("signal {signal} ({name})"),
        None => format!("signal {signal}"),
    }
}
