//! The thread that writes the log.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::line::LineFormat;
use super::syslog::{Syslog, SyslogForm};
use crate::metrics::{Counters, Metric};

/// An access log, as a worker is given it.
#[derive(Debug)]
pub struct LogSettings {
    /// Where to: a file that is opened for appending, or a socket to a syslog daemon.
    pub file: OwnedFd,
    /// If it is such a socket: how lines are sent on it.
    pub syslog: Option<SyslogForm>,
    /// How lines look, and what they say.
    pub lines: LineFormat,
    /// Bytes that a loop collects before it hands them to the writer.
    pub buffer_bytes: usize,
    /// After which lines are handed over even if the buffer is not full.
    pub flush_ms: u64,
}

/// The file, and the queue to the thread that writes to it; shared by all loops of a process.
#[derive(Debug)]
pub struct LogWriter {
    pub(super) lines: LineFormat,
    pub(super) buffer_bytes: usize,
    pub(super) flush_ms: u64,
    file: Arc<Mutex<Arc<File>>>,
    full: SyncSender<Message>,
    empty: Mutex<Receiver<Vec<u8>>>,
    /// Counts lost lines directly: the loops may all be idle when the writer loses some.
    counters: Counters,
}

#[derive(Debug)]
enum Message {
    Lines(Vec<u8>),
    /// Everything before has been written when this is answered.
    Sync(SyncSender<()>),
}

impl LogWriter {
    /// Starts the thread.
    ///
    /// # Errors
    /// `EAGAIN` if there can be no further thread.
    pub fn start(settings: LogSettings, counters: Counters) -> std::io::Result<Arc<Self>> {
        let (full, lines) = sync_channel(BUFFERS_WAITING_MAX);
        let (written, empty) = sync_channel(BUFFERS_WAITING_MAX);
        let writer = Arc::new(Self {
            lines: settings.lines,
            buffer_bytes: settings.buffer_bytes,
            flush_ms: settings.flush_ms,
            file: Arc::new(Mutex::new(Arc::new(settings.file.into()))),
            full,
            empty: Mutex::new(empty),
            counters,
        });
        let file = Arc::clone(&writer.file);
        let syslog = settings.syslog.map(Syslog::new);
        std::thread::Builder::new()
            .name("access-log".into())
            .stack_size(STACK_BYTES)
            .spawn(move || write_all(&lines, &written, &file, syslog, &counters))?;
        Ok(writer)
    }

    /// Continues in another file, after the old one was renamed.
    pub fn reopen(&self, file: OwnedFd) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(file.into());
    }

    /// Waits until everything handed over has been written.
    pub fn sync(&self) {
        let (done, wait) = sync_channel(1);
        if self.full.send(Message::Sync(done)).is_ok() {
            // An error means that the thread is gone: nothing remains to wait for.
            let _ = wait.recv();
        }
    }

    /// Hands lines over and returns an empty buffer for the next ones. If the writer is too far behind, the lines
    /// are lost.
    pub(super) fn write(&self, lines: Vec<u8>) -> Vec<u8> {
        match self.full.try_send(Message::Lines(lines)) {
            Ok(()) => {
                let empty = self.empty.lock().unwrap_or_else(PoisonError::into_inner).try_recv();
                empty.unwrap_or_else(|_| Vec::with_capacity(self.buffer_bytes))
            }
            Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) => {
                let Message::Lines(mut lines) = message else { return Vec::new() };
                self.counters.add(Metric::LogLinesLost, count_lines(&lines));
                lines.clear();
                lines
            }
        }
    }
}

fn write_all(
    lines: &Receiver<Message>,
    written: &SyncSender<Vec<u8>>,
    file: &Mutex<Arc<File>>,
    mut syslog: Option<Syslog>,
    counters: &Counters,
) {
    let mut torn = false;
    for message in lines {
        let mut buffer = match message {
            Message::Lines(buffer) => buffer,
            Message::Sync(done) => {
                let _ = done.send(());
                continue;
            }
        };
        // The lock is not held while writing: reopening the log must not wait for a pipe without a reader.
        let file = Arc::clone(&file.lock().unwrap_or_else(PoisonError::into_inner));
        let mut file = &*file;
        if let Some(syslog) = &mut syslog {
            counters.add(Metric::LogLinesLost, syslog.send(file, &buffer));
            buffer.clear();
            let _ = written.try_send(buffer);
            continue;
        }
        // After a write that ended within a line, the next line must begin on a new one.
        let mut rest = &buffer[..];
        if torn && file.write_all(b"\n").is_ok() {
            torn = false;
        }
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(count) if count > 0 => {
                    torn = rest[count - 1] != b'\n';
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                _ => {
                    counters.add(Metric::LogLinesLost, count_lines(rest));
                    break;
                }
            }
        }
        buffer.clear();
        let _ = written.try_send(buffer);
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// There may be a thread for each site; it writes, and calls nothing deep.
const STACK_BYTES: usize = 64 << 10;

/// Buffers that may wait for a slow disk; beyond them lines are lost.
const BUFFERS_WAITING_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    fn start(file: OwnedFd) -> (Arc<LogWriter>, impl Fn() -> u64) {
        let lines = LineFormat::default();
        let settings = LogSettings { file, syslog: None, lines, buffer_bytes: 1024, flush_ms: 1000 };
        let counters = Counters::allocate(1).unwrap().remove(0);
        (LogWriter::start(settings, counters).unwrap(), move || counters.get(Metric::LogLinesLost))
    }

    /// A full disk loses the lines that do not fit, and says how many.
    #[test]
    fn a_full_disk_loses_lines_and_counts_them() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (writer, lost) = start(full.into());
        writer.write(b"one\ntwo\nthree\n".to_vec());
        writer.sync();
        assert_eq!(lost(), 3);

        // The disk has room again.
        let file = tempfile::NamedTempFile::new().unwrap();
        writer.reopen(file.as_file().as_fd().try_clone_to_owned().unwrap());
        writer.write(b"four\n".to_vec());
        writer.sync();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"four\n");
        assert_eq!(lost(), 3);
    }

    /// A pipe without a reader stops the writer, but never the loop.
    #[test]
    fn a_stuck_writer_does_not_block_the_loop() {
        let (_reader, pipe) = rustix::pipe::pipe().unwrap();
        let (writer, lost) = start(pipe);
        let buffer = vec![b'\n'; 60_000];
        for _ in 0..BUFFERS_WAITING_MAX * 2 {
            writer.write(buffer.clone());
        }
        assert!(lost() > 0);
    }
}
