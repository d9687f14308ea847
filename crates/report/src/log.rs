//! The error log: messages for the people who run the server, in entries of one or a few lines.
//!
//! The log *is* standard error. A log file replaces descriptor 2, so that it also gets what a panic or a library
//! writes there, in the workers as in the master.

use std::fmt;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::count::counted;
use crate::time::utc;

/// How much an entry matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
    Notice,
}

/// Something failed.
pub fn error(message: impl fmt::Display) {
    write(Level::Error, &message.to_string());
}

/// Something works, but not as it could.
pub fn warning(message: impl fmt::Display) {
    write(Level::Warning, &message.to_string());
}

/// Something happened that an operator may want to know later.
pub fn notice(message: impl fmt::Display) {
    write(Level::Notice, &message.to_string());
}

/// Opens a log file for appending; it is readable by its owner and group only, since it names clients.
///
/// # Errors
/// What open(2) says.
pub fn open(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o640).open(path)
}

/// Lets `file` take the place of standard error.
///
/// # Errors
/// `EMFILE`.
pub fn redirect_to(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// Entries lost since the last one written, because standard error is a pipe whose reader does not keep up.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Writes an entry with one call, so that entries of several processes do not mix. Event loops log too, so the call
/// must not wait: an entry that cannot be written now is lost, and the next entry says so.
fn write(level: Level, message: &str) {
    let now = SystemTime::now();
    let lost = LOST.swap(0, Ordering::Relaxed);
    let text = gap(now, lost) + &entry(now, level, message);
    let stderr = io::stderr();
    if takes_an_entry(stderr.as_fd()) {
        // If the log cannot be written, no place is left to report that.
        let _ = stderr.lock().write_all(text.as_bytes());
    } else {
        LOST.fetch_add(lost + 1, Ordering::Relaxed);
    }
}

/// The entry in front of the next one if some were lost.
fn gap(now: SystemTime, lost: u64) -> String {
    if lost == 0 {
        return String::new();
    }
    let message =
        format!("lost {} of this process: the reader of the error log was too slow", counted(lost, "entry"));
    entry(now, Level::Warning, &message)
}

/// Whether an entry can be written without waiting. A pipe that polls writable has room for `PIPE_BUF` bytes, more
/// than an entry takes. (Processes that share a pipe may see the same room; then one of them waits.)
fn takes_an_entry(log: BorrowedFd<'_>) -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::from_borrowed_fd(log, PollFlags::OUT)];
    match poll(&mut polled, Some(&AT_ONCE)) {
        Ok(_) => polled[0].revents().contains(PollFlags::OUT),
        // If poll fails, write anyway.
        Err(_) => true,
    }
}

/// Bytes of a message that are kept. A whole entry stays below `PIPE_BUF`, up to which writes to a pipe are atomic.
const MESSAGE_BYTES_MAX: usize = 3800;

/// The text of an entry. Further lines of a message are indented and control characters escaped, so that quoted text
/// cannot pass for an entry.
fn entry(at: SystemTime, level: Level, message: &str) -> String {
    let word = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    let mut text = format!("{} {word}: ", utc(at));
    let end = text.len() + MESSAGE_BYTES_MAX;
    for c in message.trim_end().chars() {
        if text.len() >= end {
            text.push_str(" [...]");
            break;
        }
        match c {
            '\n' => text.push_str("\n    "),
            c if c.is_control() => text.extend(c.escape_default()),
            c => text.push(c),
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn no_message_can_forge_an_entry() {
        let text = entry(at(0), Level::Error, "a\n1970-01-01T00:00:00.000Z notice: b\x1b[2J\r\n");
        assert_eq!(
            text,
            "1970-01-01T00:00:00.000Z error: a\n    1970-01-01T00:00:00.000Z notice: b\\u{1b}[2J\n"
        );
    }

    #[test]
    fn long_messages_are_cut() {
        let text = entry(at(0), Level::Warning, &"ü".repeat(1 << 20));
        assert!(text.len() < MESSAGE_BYTES_MAX + 64, "{} bytes", text.len());
        assert!(text.ends_with("ü [...]\n"));
    }

    #[test]
    fn the_longest_entry_fits_into_a_pipe_that_has_room() {
        // Characters that take most when they are escaped, or one more than fits.
        for longest in ["\u{9f}", "\n", "x"] {
            let text = gap(at(0), u64::MAX) + &entry(at(0), Level::Warning, &longest.repeat(10_000));
            assert!(text.len() <= 4096, "{} bytes of {longest:?}", text.len());
        }
    }
}
