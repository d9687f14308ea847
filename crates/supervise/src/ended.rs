//! How a process ended, in words.

use baton_sys::process::Ended;
use rustix::process::Signal;

/// A signal's number and, of those that the master or a worker gets, its name.
pub fn describe_signal(signal: i32) -> String {
    const NAMES: [(Signal, &str); 16] = [
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::HUP, "SIGHUP"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::WINCH, "SIGWINCH"),
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

/// How a process ended, as the end of a sentence about it.
pub fn describe_end(ended: Ended) -> String {
    match ended {
        Ended::Exited(status) => format!("exited with status {status}"),
        Ended::Killed(signal) => format!("was killed by {}", describe_signal(signal)),
    }
}
