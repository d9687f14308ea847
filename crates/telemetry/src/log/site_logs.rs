//! Access logs that sites have for themselves. The master opens their files; the plans of a worker share their writers.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::line::LineFormat;
use super::syslog::SyslogForm;
use super::writer::{LogSettings, LogWriter};
use crate::metrics::Counters;

/// Where the requests of a site are logged.
#[derive(Clone, Debug)]
pub enum SiteLog {
    /// Nowhere.
    Off,
    /// In the server's access log, if it has one.
    Main,
    /// In a log of its own.
    Own(Arc<SiteLogFile>),
}

/// A log that sites write to; its thread ends when no plan has it any more.
#[derive(Debug)]
pub struct SiteLogFile {
    pub(super) writer: Arc<LogWriter>,
}

/// The logs of the sites of a worker process, from one configuration to the next.
#[derive(Debug)]
pub struct SiteLogs {
    counters: Counters,
    buffer_bytes: usize,
    flush_ms: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Files and sockets for logs that the next plan may need.
    files: HashMap<PathBuf, OwnedFd>,
    open: Vec<(PathBuf, LineFormat, Weak<SiteLogFile>)>,
}

impl SiteLogs {
    /// None yet. Each loop collects so many bytes for a log before it hands them to the writer, for at most `flush_ms`.
    pub fn new(counters: Counters, buffer_bytes: usize, flush_ms: u64) -> Self {
        Self { counters, buffer_bytes, flush_ms, state: Mutex::default() }
    }

    /// The next plan may need the log with this name, which is a path unless it is a syslog daemon's.
    pub fn put(&self, path: PathBuf, file: OwnedFd) {
        self.lock().files.insert(path, file);
    }

    /// Goes on with the log at this path in another file, after the old one was renamed.
    ///
    /// # Errors
    /// `EMFILE`.
    pub fn reopen(&self, path: &Path, file: OwnedFd) -> io::Result<()> {
        for log in self.lock().at(path) {
            log.writer.reopen(file.try_clone()?);
        }
        Ok(())
    }

    /// The log with this name. `syslog`: how lines are sent, if it is a daemon's.
    ///
    /// # Errors
    /// Its file was never put here, or there can be no further thread.
    pub fn log(&self, path: &Path, lines: &LineFormat, syslog: Option<SyslogForm>) -> io::Result<SiteLog> {
        let mut state = self.lock();
        state.open.retain(|(.., log)| log.strong_count() > 0);
        let known = state.open.iter().find(|(own, format, _)| own == path && format == lines);
        let known = known.and_then(|(.., log)| log.upgrade());
        let file = state.files.remove(path);
        if let Some(log) = known {
            return Ok(SiteLog::Own(log));
        }
        let file = file.ok_or_else(|| io::Error::other(format!("the log {} is missing", path.display())))?;
        let settings = LogSettings {
            file,
            syslog,
            lines: lines.clone(),
            buffer_bytes: self.buffer_bytes,
            flush_ms: self.flush_ms,
        };
        let log = Arc::new(SiteLogFile { writer: LogWriter::start(settings, self.counters)? });
        state.open.push((path.to_owned(), lines.clone(), Arc::downgrade(&log)));
        Ok(SiteLog::Own(log))
    }

    /// Waits until everything handed over has been written.
    pub fn sync(&self) {
        let open: Vec<_> = self.lock().open.iter().filter_map(|(.., log)| log.upgrade()).collect();
        for log in open {
            log.writer.sync();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn at(&self, path: &Path) -> impl Iterator<Item = Arc<SiteLogFile>> {
        self.open.iter().filter(move |(own, ..)| own == path).filter_map(|(.., log)| log.upgrade())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: sites share a log, and a log is opened once. Method: the same path twice, with one file.
    #[test]
    fn a_log_is_kept_from_plan_to_plan() {
        let logs = SiteLogs::new(Counters::allocate(1).unwrap().remove(0), 1024, 1000);
        let lines = LineFormat::default();
        let path = Path::new("/log");
        assert!(logs.log(path, &lines, None).is_err());
        logs.put(path.into(), tempfile::tempfile().unwrap().into());
        let SiteLog::Own(first) = logs.log(path, &lines, None).unwrap() else { panic!("no log") };
        let SiteLog::Own(second) = logs.log(path, &lines, None).unwrap() else { panic!("no log") };
        assert!(Arc::ptr_eq(&first, &second));
        drop((first, second));
        assert!(logs.log(path, &lines, None).is_err(), "no plan had it any more");
    }
}
