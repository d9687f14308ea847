//! The error log: what the server has to say to whoever runs it, a line or a few at a time.
//!
//! The log *is* standard error. When it goes to a file, that file takes the place of descriptor 2, so that whatever
//! else writes there (a panic, a library) lands in it too, in the workers as well as in the master.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
    Notice,
}

/// Something failed.
pub(crate) fn error(message: impl fmt::Display) {
    write(Level::Error, &message.to_string());
}

/// Something works, but not as it could.
pub(crate) fn warning(message: impl fmt::Display) {
    write(Level::Warning, &message.to_string());
}

/// Something happened that one may want to know later.
pub(crate) fn notice(message: impl fmt::Display) {
    write(Level::Notice, &message.to_string());
}

/// Opens a log file for appending; it is readable by its owner and group only, since it names clients.
///
/// # Errors
/// What open(2) says.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).mode(0o640).open(path)
}

/// Lets `file` take the place of standard error.
///
/// # Errors
/// `EMFILE`.
pub(super) fn redirect_to(file: impl AsFd) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(file)?)
}

/// Entries that were not written since one was, because standard error took nothing: it is a pipe, and nobody reads it.
static LOST: AtomicU64 = AtomicU64::new(0);

/// One call per entry, so that the lines of several processes do not mix; and none that waits, since event loops have
/// things to say, too: what cannot be written now is lost, and the next entry says so.
fn write(level: Level, message: &str) {
    let now = SystemTime::now();
    let lost = LOST.swap(0, Ordering::Relaxed);
    let text = gap(now, lost) + &entry(now, level, message);
    let stderr = io::stderr();
    if takes_an_entry(stderr.as_fd()) {
        // Nobody is left to tell if the log itself cannot be written.
        let _ = stderr.lock().write_all(text.as_bytes());
    } else {
        LOST.fetch_add(lost + 1, Ordering::Relaxed);
    }
}

/// What is said before the next entry if some are lost.
fn gap(now: SystemTime, lost: u64) -> String {
    if lost == 0 {
        return String::new();
    }
    let message = format!("{lost} entries of this process are lost: nobody read the error log");
    entry(now, Level::Warning, &message)
}

/// Whether an entry can be written without waiting. A pipe that says so has room for `PIPE_BUF`, which is more than an
/// entry takes. (Processes that share a pipe may find the same room; then one of them waits.)
fn takes_an_entry(log: BorrowedFd<'_>) -> bool {
    const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::from_borrowed_fd(log, PollFlags::OUT)];
    match poll(&mut polled, Some(&AT_ONCE)) {
        Ok(_) => polled[0].revents().contains(PollFlags::OUT),
        // What is no reason to wait is no reason to be silent.
        Err(_) => true,
    }
}

/// Bytes of a message that are kept: with all that is put around it less than `PIPE_BUF`, up to which a pipe takes all or
/// nothing, and does not mix the entries of several processes.
const MESSAGE_BYTES_MAX: usize = 3800;

/// The text of an entry. Further lines of a message are indented, and control characters escaped, so that nothing
/// that a message quotes can pass for an entry of its own.
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

/// A time as in RFC 3339, in UTC, to the millisecond.
pub(super) fn utc(at: SystemTime) -> String {
    let since_epoch = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = since_epoch.as_secs();
    let (year, month, day) = civil(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let mut text = String::with_capacity(24);
    let _ = write!(
        text,
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        since_epoch.subsec_millis()
    );
    text
}

/// Year, month and day of the n-th day after 1 January 1970: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`, for days that are not before it. Years begin in March, leap days end them.
fn civil(days: u64) -> (u64, u64, u64) {
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_PER_ERA: u64 = 146_097;
    let days = days + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn times_are_utc_with_leap_days() {
        assert_eq!(utc(at(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(at(951_782_400)), "2000-02-29T00:00:00.000Z");
        assert_eq!(utc(at(1_709_251_199)), "2024-02-29T23:59:59.000Z");
        assert_eq!(utc(at(1_709_251_200)), "2024-03-01T00:00:00.000Z");
        assert_eq!(utc(at(4_107_542_399)), "2100-02-28T23:59:59.000Z");
        assert_eq!(utc(at(4_107_542_400)), "2100-03-01T00:00:00.000Z", "2100 is no leap year");
        assert_eq!(utc(at(1) + Duration::from_micros(1_999)), "1970-01-01T00:00:01.001Z");
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
