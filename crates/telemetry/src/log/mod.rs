//! The access logs: one line for each request, buffered, written by threads of their own.
//!
//! A loop formats lines into its buffer and hands full buffers to the writer. It never touches the file: a slow disk, a
//! full disk or a pipe without a reader costs log lines, which are counted, but never a request. A site with a log of its
//! own has a buffer and a writer of its own, so that its disk costs the others nothing.

mod field;
mod line;
mod outcome;
mod site_logs;
mod syslog;
mod text;
mod writer;

use std::sync::{Arc, Weak};

use baton_http::{RequestHead, Stamp, as_uri};
use baton_passport::parcel::{Packer, Unpacker};

pub use field::{LineField, LogField};
pub use line::{Ending, OriginPart};
pub use line::{LineFormat, LogFormat};
pub use outcome::Outcome;
pub use site_logs::{SiteLog, SiteLogFile, SiteLogs};
pub use syslog::SyslogForm;
use text::RequestText;
pub use writer::LogSettings;
pub use writer::LogWriter;

/// What a line will say of a request that has not ended.
#[derive(Debug)]
pub struct NotedRequest {
    text: RequestText,
    /// Where the line goes; `None`: into the server's log.
    own_log: Option<Arc<SiteLogFile>>,
}

impl NotedRequest {
    /// Packs it for the process that writes the line.
    pub fn pack(&self, packer: &mut Packer) {
        self.text.pack(packer);
    }

    /// What another process has packed of a request. `log`: where its site logs in this one; `None`: it has no site here.
    pub fn unpack(packed: &mut Unpacker<'_>, log: Option<&SiteLog>) -> Option<Self> {
        let own_log = match log {
            Some(SiteLog::Own(file)) => Some(Arc::clone(file)),
            Some(SiteLog::Off | SiteLog::Main) | None => None,
        };
        Some(Self { text: RequestText::unpack(packed)?, own_log })
    }
}

/// One loop's part of the access logs.
#[derive(Debug, Default)]
pub struct AccessLogs {
    /// The server's, if it has one.
    main: Option<AccessLog>,
    /// The access logs of sites.
    own: Vec<(Weak<SiteLogFile>, AccessLog)>,
    /// Texts of ended requests, whose memory the next ones use.
    spare: Vec<RequestText>,
    /// A log says fields of responses.
    says_responses: bool,
    /// If so: the lines of the head that was finished last, until its request takes them.
    response_lines: Vec<u8>,
}

/// One loop's part of one access log.
#[derive(Debug)]
struct AccessLog {
    writer: Arc<LogWriter>,
    buffer: Vec<u8>,
    oldest_ms: Option<u64>,
}

impl AccessLogs {
    /// With the server's log, if it has one.
    pub fn new(main: Option<Arc<LogWriter>>) -> Self {
        Self { main: main.map(AccessLog::new), ..Self::default() }
    }

    /// Keeps what the line will say of a request. `log`: where its site logs; `None`: it has no site.
    pub fn note(&mut self, head: &RequestHead<'_>, log: Option<&SiteLog>) -> Option<NotedRequest> {
        let own_log = match log {
            Some(SiteLog::Off) => return None,
            Some(SiteLog::Own(file)) => Some(Arc::clone(file)),
            Some(SiteLog::Main) | None if self.main.is_none() => return None,
            Some(SiteLog::Main) | None => None,
        };
        let own = own_log.as_ref().map(|file| &file.writer);
        let writer = own.or(self.main.as_ref().map(|main| &main.writer));
        let mut text = self.spare.pop().unwrap_or_default();
        text.fill(&as_uri(head.line), head.host, head.referer, head.user_agent);
        if let Some(writer) = writer {
            text.keep(writer.lines.of_request(), head);
            self.says_responses |= writer.lines.of_response().next().is_some();
        }
        Some(NotedRequest { text, own_log })
    }

    /// Keeps what the line will say of a request whose head could not be read.
    pub fn note_unreadable(&mut self, input: &[u8]) -> Option<NotedRequest> {
        self.main.as_ref()?;
        let first_line = input.split(|&byte| byte == b'\n' || byte == b'\r').next().unwrap_or_default();
        let mut text = self.spare.pop().unwrap_or_default();
        text.fill(&first_line[..first_line.len().min(UNREADABLE_BYTES_MAX)], None, None, None);
        Some(NotedRequest { text, own_log: None })
    }

    /// The lines of a head that has been finished, for [`note_response`](Self::note_response).
    pub fn see_response<'l>(&mut self, lines: impl IntoIterator<Item = &'l [u8]>) {
        if self.says_responses {
            self.response_lines.clear();
            lines.into_iter().for_each(|some| self.response_lines.extend_from_slice(some));
        }
    }

    /// The head that was seen last begins the response to this request.
    pub fn note_response(&mut self, noted: &mut NotedRequest) {
        if self.says_responses {
            let own = noted.own_log.as_ref().map(|file| &file.writer);
            if let Some(writer) = own.or(self.main.as_ref().map(|main| &main.writer)) {
                noted.text.keep_response(writer.lines.of_response(), &self.response_lines);
            }
            self.response_lines.clear();
        }
    }

    /// Writes the line of a request that has ended.
    pub fn end(&mut self, noted: NotedRequest, ending: &Ending<'_>, now_ms: u64, stamp: &Stamp) {
        let NotedRequest { text, own_log } = noted;
        let log = match own_log {
            Some(file) => Some(self.of_site(&file)),
            None => self.main.as_mut(),
        };
        if let Some(log) = log {
            log.add(&text, ending, now_ms, stamp);
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(text);
        }
    }

    fn of_site(&mut self, file: &Arc<SiteLogFile>) -> &mut AccessLog {
        let known = self.own.iter().position(|(own, _)| Weak::as_ptr(own) == Arc::as_ptr(file));
        let at = known.unwrap_or_else(|| {
            let log = AccessLog::new(Arc::clone(&file.writer));
            self.own.push((Arc::downgrade(file), log));
            self.own.len() - 1
        });
        &mut self.own[at].1
    }

    /// Hands over lines that have waited for `flush_ms`.
    pub fn handle_time(&mut self, now_ms: u64) {
        if let Some(log) = &mut self.main {
            log.handle_time(now_ms);
        }
        // Those of which no plan and no request knows any more end with their last lines.
        self.own.retain_mut(|(file, log)| {
            let is_used = file.strong_count() > 0;
            if is_used {
                log.handle_time(now_ms);
            } else {
                log.flush();
            }
            is_used
        });
    }

    /// When [`handle_time`](Self::handle_time) will have something to do.
    pub fn deadline_ms(&self) -> Option<u64> {
        let own = self.own.iter().map(|(_, log)| log);
        self.main.iter().chain(own).filter_map(AccessLog::deadline_ms).min()
    }

    /// Hands over all lines.
    pub fn flush(&mut self) {
        let own = self.own.iter_mut().map(|(_, log)| log);
        self.main.iter_mut().chain(own).for_each(AccessLog::flush);
    }
}

impl AccessLog {
    fn new(writer: Arc<LogWriter>) -> Self {
        Self { buffer: Vec::with_capacity(writer.buffer_bytes + LINE_BYTES_USUAL), writer, oldest_ms: None }
    }

    fn add(&mut self, text: &RequestText, ending: &Ending<'_>, now_ms: u64, stamp: &Stamp) {
        self.writer.lines.push(&mut self.buffer, text, ending, stamp);
        self.oldest_ms.get_or_insert(now_ms);
        if self.buffer.len() >= self.writer.buffer_bytes {
            self.flush();
        }
    }

    fn handle_time(&mut self, now_ms: u64) {
        if self.deadline_ms().is_some_and(|deadline_ms| now_ms >= deadline_ms) {
            self.flush();
        }
    }

    fn deadline_ms(&self) -> Option<u64> {
        self.oldest_ms.map(|oldest| oldest + self.writer.flush_ms)
    }

    fn flush(&mut self) {
        self.oldest_ms = None;
        if !self.buffer.is_empty() {
            self.buffer = self.writer.write(std::mem::take(&mut self.buffer));
        }
    }
}

/// Spare room, so that the buffer seldom grows.
const LINE_BYTES_USUAL: usize = 1024;

/// Bytes that the log shows of input that was not HTTP.
const UNREADABLE_BYTES_MAX: usize = 256;

/// Texts kept for use again: about as many as there are responses under way at a time.
const SPARE_MAX: usize = 64;
