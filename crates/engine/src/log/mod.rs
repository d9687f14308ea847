//! The access log: one line for each request, buffered, written by a thread of its own.
//!
//! A loop formats lines into its buffer and hands full buffers to the writer. It never touches the file: a slow disk, a
//! full disk or a pipe without a reader costs log lines, which are counted, but never a request.

mod line;
mod outcome;
mod writer;

use std::sync::Arc;

use baton_http::{RequestHead, Stamp, as_uri};

pub use line::LogFormat;
pub(crate) use line::{Ending, OriginPart, RequestText};
pub use outcome::Outcome;
pub use writer::LogSettings;
pub(crate) use writer::LogWriter;

/// One loop's part of the access log.
#[derive(Debug)]
pub(crate) struct AccessLog {
    writer: Arc<LogWriter>,
    buffer: Vec<u8>,
    oldest_ms: Option<u64>,
    /// Texts of ended requests, whose memory the next ones use.
    spare: Vec<RequestText>,
}

impl AccessLog {
    pub(crate) fn new(writer: Arc<LogWriter>) -> Self {
        Self {
            buffer: Vec::with_capacity(writer.buffer_bytes + LINE_BYTES_USUAL),
            writer,
            oldest_ms: None,
            spare: Vec::new(),
        }
    }

    /// Keeps what the line will say of a request.
    pub(crate) fn note(&mut self, head: &RequestHead<'_>) -> RequestText {
        self.note_parts(&as_uri(head.line), head.referer, head.user_agent)
    }

    /// The same for a request whose head could not be read.
    pub(crate) fn note_unreadable(&mut self, input: &[u8]) -> RequestText {
        let first_line = input.split(|&byte| byte == b'\n' || byte == b'\r').next().unwrap_or_default();
        self.note_parts(&first_line[..first_line.len().min(UNREADABLE_BYTES_MAX)], None, None)
    }

    fn note_parts(&mut self, line: &[u8], referer: Option<&[u8]>, agent: Option<&[u8]>) -> RequestText {
        let mut text = self.spare.pop().unwrap_or_default();
        text.fill(line, referer, agent);
        text
    }

    /// Writes the line of a request that has ended.
    pub(crate) fn end(&mut self, text: RequestText, ending: &Ending<'_>, now_ms: u64, stamp: &Stamp) {
        match self.writer.format {
            LogFormat::Combined => line::combined(&mut self.buffer, &text, ending, stamp),
            LogFormat::Json => line::json(&mut self.buffer, &text, ending, stamp),
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(text);
        }
        self.oldest_ms.get_or_insert(now_ms);
        if self.buffer.len() >= self.writer.buffer_bytes {
            self.flush();
        }
    }

    /// Hands over lines that have waited for `flush_ms`.
    pub(crate) fn handle_time(&mut self, now_ms: u64) {
        if self.oldest_ms.is_some_and(|oldest| now_ms.saturating_sub(oldest) >= self.writer.flush_ms) {
            self.flush();
        }
    }

    /// When [`handle_time`](Self::handle_time) will have something to do.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        self.oldest_ms.map(|oldest| oldest + self.writer.flush_ms)
    }

    /// Hands over all lines.
    pub(crate) fn flush(&mut self) {
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
