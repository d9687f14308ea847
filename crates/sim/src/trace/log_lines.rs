//! The entries of access logs, plain or compressed.
//!
//! Bad lines do not stop the reading: they are counted by kind, and the first of each kind is kept as an example.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::{BadLine, LogEntry, parse_line};

/// Reads logs line by line, and counts what is wrong with them.
#[derive(Debug, Default)]
pub struct LogLines {
    pub(super) summary: LogSummary,
}

/// A summary of logs.
#[derive(Clone, Debug, Default)]
pub struct LogSummary {
    /// Lines, bad ones included.
    pub lines: u64,
    /// Entries that are in the trace.
    pub requests: u64,
    /// Bad lines by fault: how many, and the first one.
    pub bad: BTreeMap<BadLine, (u64, FirstBad)>,
    /// Entries that are not in the trace, by reason.
    pub left_out: BTreeMap<LeftOut, u64>,
    /// Compressed files that could not be read to their end: cut off, as one is that is being written, or damaged.
    pub cut_off: Vec<String>,
    /// From the first entry to the last, in seconds, both included.
    pub span_s: u64,
    /// The most requests within one second of the clock.
    pub busiest_second: u64,
    /// The most requests within one minute of the clock.
    pub busiest_minute: u64,
}

/// Where the first bad line of its kind is, and how it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstBad {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// How the line begins, bytes that cannot be printed escaped.
    pub excerpt: String,
}

/// Why an entry is not in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// Neither `GET`, `HEAD` nor `POST`.
    Method,
    /// Neither success nor `304`: a redirect, or an error.
    Status,
}

/// A log could not be read at all.
#[derive(Debug)]
pub struct LogError {
    file: String,
    error: io::Error,
}

impl std::fmt::Display for LogError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot read the log {}: {}", self.file, self.error)
    }
}

impl std::error::Error for LogError {}

impl LogLines {
    /// A summary of what was read.
    #[must_use]
    pub fn summary(&self) -> &LogSummary {
        &self.summary
    }

    /// Gives the entries of a file to `take`; `-` is the standard input.
    ///
    /// # Errors
    /// The file cannot be opened, or reading fails.
    pub fn read_path(&mut self, path: &Path, take: impl FnMut(&LogEntry<'_>)) -> Result<(), LogError> {
        let file = path.display().to_string();
        if path == Path::new("-") {
            return self.read("standard input", io::stdin().lock(), take);
        }
        let opened = File::open(path).map_err(|error| LogError { file: file.clone(), error })?;
        self.read(&file, opened, take)
    }

    /// Gives the entries of a log to `take`; whether it is compressed with gzip is seen from its first bytes.
    ///
    /// # Errors
    /// Reading fails, or the log is compressed otherwise. One whose compressed data end too soon or are damaged is no
    /// error: it is read up to there.
    pub fn read(
        &mut self,
        file: &str,
        source: impl Read,
        take: impl FnMut(&LogEntry<'_>),
    ) -> Result<(), LogError> {
        let mut source = BufReader::with_capacity(BUFFER_BYTES, source);
        let start = source.fill_buf().unwrap_or_default();
        let compressed = start.starts_with(&GZIP_MAGIC);
        if let Some((_, program)) = OTHER_MAGIC.iter().find(|(magic, _)| start.starts_with(magic)) {
            let advice =
                format!("it is compressed, and not with gzip; use {program} {file} | baton sim ... -");
            return Err(LogError { file: file.to_owned(), error: io::Error::other(advice) });
        }
        let result = if compressed {
            self.read_lines(file, BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(source)), take)
        } else {
            self.read_lines(file, source, take)
        };
        match result {
            // A decoder's errors for truncated and for invalid data.
            Err(error)
                if compressed
                    && matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput) =>
            {
                self.summary.cut_off.push(file.to_owned());
                Ok(())
            }
            Err(error) => Err(LogError { file: file.to_owned(), error }),
            Ok(()) => Ok(()),
        }
    }

    fn read_lines(
        &mut self,
        file: &str,
        mut source: impl BufRead,
        mut take: impl FnMut(&LogEntry<'_>),
    ) -> io::Result<()> {
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            if source.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let too_long = line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n");
            if too_long {
                source.skip_until(b'\n')?;
            }
            let line = line.trim_ascii_end();
            if line.is_empty() {
                continue;
            }
            self.summary.lines += 1;
            match if too_long { Err(BadLine::TooLong) } else { parse_line(line) } {
                Ok(entry) => take(&entry),
                Err(fault) => self.count_bad(fault, file, number, line),
            }
        }
        Ok(())
    }

    fn count_bad(&mut self, fault: BadLine, file: &str, line: u64, text: &[u8]) {
        let first = || FirstBad {
            file: file.to_owned(),
            line,
            excerpt: printable(&text[..text.len().min(EXCERPT_BYTES)]),
        };
        self.summary.bad.entry(fault).or_insert_with(|| (0, first())).0 += 1;
    }
}

impl LogSummary {
    /// How many lines are bad.
    #[must_use]
    pub fn bad_lines(&self) -> u64 {
        self.bad.values().map(|(count, _)| count).sum()
    }

    /// The summary in sentences.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let mut words = vec![format!(
            "Read {} lines, {} requests over {:.1} hours; {} in the busiest second, {:.0} a second in the busiest minute.",
            self.lines,
            self.requests,
            self.span_s as f64 / 3600.0,
            self.busiest_second,
            self.busiest_minute as f64 / 60.0
        )];
        if !self.left_out.is_empty() {
            let reasons = self.left_out.iter().map(|(reason, count)| match reason {
                LeftOut::Method => format!("{count} by their method"),
                LeftOut::Status => format!("{count} by their status (redirects, errors)"),
            });
            words.push(format!("Left out: {}.", reasons.collect::<Vec<_>>().join(", ")));
        }
        words.extend(self.complaints());
        words
    }

    /// What could not be read, in sentences.
    #[must_use]
    pub fn complaints(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (fault, (count, first)) in &self.bad {
            let lines = if *count == 1 { "line" } else { "lines" };
            words.push(format!(
                "Skipped {count} bad {lines}: {fault}. The first is {}:{}: {}",
                first.file, first.line, first.excerpt
            ));
        }
        for file in &self.cut_off {
            words.push(format!(
                "The compressed data of {file} are truncated or damaged; the part before was read."
            ));
        }
        words
    }
}

/// A line without bytes that would affect a terminal.
fn printable(text: &[u8]) -> String {
    let byte = |&byte: &u8| match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    text.iter().map(byte).collect()
}

/// The longest line that is looked at, in bytes: four times the longest request head that servers usually take.
pub(super) const LINE_BYTES_MAX: u64 = 32 * 1024;
/// The length of the excerpt of a bad line, in bytes.
const EXCERPT_BYTES: usize = 120;
const BUFFER_BYTES: usize = 256 * 1024;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How files begin that are compressed otherwise, and what unpacks them.
const OTHER_MAGIC: [(&[u8], &str); 3] =
    [(b"\x28\xb5\x2f\xfd", "zstdcat"), (b"\xfd7zXZ", "xzcat"), (b"BZh91AY&SY", "bzcat")];
