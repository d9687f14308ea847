//! Access logs, plain or compressed, into a trace.
//!
//! Entries that do not concern a file server's memory (redirects, errors, other methods) are counted as left out.

use std::io::Read;
use std::path::Path;

use baton_dispatch::target_hash;
use hashbrown::HashMap;

use super::log_lines::{LeftOut, LogError, LogLines, LogSummary};
use super::reads::{LogRead, LogReads};
use super::referrals::{Referral, Referrals};
use super::{LogEntry, Method, TargetFacts, TargetId, Trace, TraceRequest};

/// Reads logs, in any order, and makes one trace of them in the order of time.
#[derive(Debug, Default)]
pub struct LogReader {
    ids: HashMap<u64, TargetId, foldhash::fast::FixedState>,
    targets: Vec<TargetFacts>,
    entries: Vec<(i64, TraceRequest)>,
    /// If they are asked for: they take twice as much memory as the requests.
    referrals: Option<Referrals>,
    /// If they are asked for.
    reads: Option<LogReads>,
    lines: LogLines,
}

impl LogReader {
    /// A reader that also keeps who sent clients where.
    #[must_use]
    pub fn with_referrals() -> Self {
        Self { referrals: Some(Referrals::default()), ..Self::default() }
    }

    /// A reader that also keeps which bytes clients got, and when.
    #[must_use]
    pub fn with_reads() -> Self {
        Self { reads: Some(LogReads::default()), ..Self::default() }
    }

    /// Reads a file; `-` is the standard input.
    ///
    /// # Errors
    /// As [`LogLines::read_path`].
    pub fn read_path(&mut self, path: &Path) -> Result<(), LogError> {
        self.with_lines(|reader, lines| lines.read_path(path, |entry| reader.take_entry(entry)))
    }

    /// Reads a log.
    ///
    /// # Errors
    /// As [`LogLines::read`].
    pub fn read(&mut self, file: &str, source: impl Read) -> Result<(), LogError> {
        self.with_lines(|reader, lines| lines.read(file, source, |entry| reader.take_entry(entry)))
    }

    /// Lends the lines, and the rest of the reader for what they give.
    fn with_lines<T>(&mut self, read: impl FnOnce(&mut Self, &mut LogLines) -> T) -> T {
        let mut lines = std::mem::take(&mut self.lines);
        let result = read(self, &mut lines);
        let left_out = std::mem::take(&mut self.lines.summary.left_out);
        for (reason, count) in left_out {
            *lines.summary.left_out.entry(reason).or_default() += count;
        }
        self.lines = lines;
        result
    }

    fn take_entry(&mut self, entry: &LogEntry<'_>) {
        let with_body = match (entry.method, entry.status) {
            (Method::Other, _) => return self.leave_out(LeftOut::Method),
            (Method::Get | Method::Post, 200..=299) => true,
            (Method::Head, 200..=299) | (_, 304) => false,
            _ => return self.leave_out(LeftOut::Status),
        };
        let path = path_of(&entry.target);
        let hash = target_hash(path);
        let next = self.targets.len() as TargetId;
        let id = *self.ids.entry(hash).or_insert(next);
        if id == next {
            self.targets.push(TargetFacts { hash, bytes: 0, dynamic: false });
        }
        let target = &mut self.targets[id as usize];
        // Clients that hang up get less than the whole, and some ask for a range.
        target.bytes = target.bytes.max(entry.start().unwrap_or(0) + entry.bytes);
        target.dynamic |= is_dynamic(entry.method, path, entry.target.len() > path.len());
        let request = if with_body { TraceRequest::whole(id) } else { TraceRequest::head_only(id) };
        self.entries.push((entry.time_s, request));
        if let Some(reads) = &mut self.reads {
            reads.take(entry, id, path);
        }
        if let Some(referrals) = &mut self.referrals {
            referrals.take(id, path, entry.referrer.as_deref().map(|url| (url, path_of(url))));
        }
    }

    fn leave_out(&mut self, reason: LeftOut) {
        *self.lines.summary.left_out.entry(reason).or_default() += 1;
    }

    /// Who sent clients where: one for each request, in the order of the logs. None unless they were asked for.
    pub fn referrals(&mut self) -> Vec<Referral> {
        let referrals = self.referrals.take().unwrap_or_default();
        referrals.resolve(|path| self.ids.get(&path).copied())
    }

    /// What clients got, in the order of the logs. None unless this was asked for.
    pub fn reads(&mut self) -> Vec<LogRead> {
        self.reads.take().map(|reads| reads.list).unwrap_or_default()
    }

    /// The trace and the summary.
    #[must_use]
    pub fn finish(mut self, name: &str) -> (Trace, LogSummary) {
        // Servers write an entry when the answer is complete, so neighbours may be out of order; and the shell
        // decides the order of a month's files.
        self.entries.sort_by_key(|(time_s, _)| *time_s);
        let mut summary = self.lines.summary;
        let times = || self.entries.iter().map(|(time_s, _)| *time_s);
        summary.requests = self.entries.len() as u64;
        summary.span_s = match (self.entries.first(), self.entries.last()) {
            (Some((first, _)), Some((last, _))) => first.abs_diff(*last) + 1,
            _ => 0,
        };
        summary.busiest_second = longest_run(times());
        summary.busiest_minute = longest_run(times().map(|time_s| time_s.div_euclid(60)));
        let requests = self.entries.iter().map(|(_, request)| *request).collect();
        (Trace::new(name.to_owned(), self.targets, requests), summary)
    }
}

/// The path within a request's target, which may be a whole URL, without its query.
fn path_of(target: &[u8]) -> &[u8] {
    let target = match memchr::memmem::find(target, b"://") {
        Some(at) if !target.starts_with(b"/") => {
            let authority = &target[at + 3..];
            memchr::memchr(b'/', authority).map_or(&b"/"[..], |path| &authority[path..])
        }
        _ => target,
    };
    memchr::memchr2(b'?', b'#', target).map_or(target, |end| &target[..end])
}

/// Whether an application makes the answer, by the looks of the request: logs do not say.
fn is_dynamic(method: Method, path: &[u8], has_query: bool) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let extension = memchr::memrchr(b'.', name).map(|dot| &name[dot + 1..]);
    method == Method::Post
        || extension.is_some_and(|extension| PROGRAMS.iter().any(|known| known.eq_ignore_ascii_case(extension)))
        || memchr::memmem::find(path, b"/cgi-bin/").is_some()
        // `style.css?v=3` is a file, `search?q=3` is not.
        || (has_query && extension.is_none())
}

const PROGRAMS: [&[u8]; 10] = [b"php", b"cgi", b"pl", b"py", b"asp", b"aspx", b"jsp", b"do", b"fcgi", b"cfm"];

/// The length of the longest run of equal neighbours.
fn longest_run(values: impl Iterator<Item = i64>) -> u64 {
    let (mut longest, mut run, mut last) = (0, 0, None);
    for value in values {
        run = if last == Some(value) { run + 1 } else { 1 };
        last = Some(value);
        longest = longest.max(run);
    }
    longest
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Write;

    use super::super::BadLine;
    use super::super::log_lines::LINE_BYTES_MAX;
    use super::*;

    fn line(second: u8, request: &str, status: u16, bytes: u64) -> String {
        format!("h - - [10/Oct/2000:13:55:{second:02} +0000] \"{request}\" {status} {bytes}\n")
    }

    fn read(logs: &[&[u8]]) -> (Trace, LogSummary) {
        let mut reader = LogReader::default();
        for (number, log) in logs.iter().enumerate() {
            reader.read(&format!("log{number}"), *log).unwrap();
        }
        reader.finish("test")
    }

    #[test]
    fn entries_become_requests_in_order_of_time() {
        let later = line(9, "GET /a HTTP/1.1", 200, 500) + &line(9, "GET /b HTTP/1.1", 200, 70);
        let earlier = line(1, "GET http://site.example/a?x HTTP/1.1", 206, 100)
            + &line(2, "HEAD /b HTTP/1.1", 200, 0)
            + &line(3, "GET /b HTTP/1.1", 304, 0);
        let (trace, summary) = read(&[later.as_bytes(), earlier.as_bytes()]);
        let [a, b] = [0, 1];
        let expected = [
            TraceRequest::whole(a),
            TraceRequest::head_only(b),
            TraceRequest::head_only(b),
            TraceRequest::whole(a),
            TraceRequest::whole(b),
        ];
        assert_eq!(trace.requests(), expected);
        assert_eq!(trace.target(a).bytes, 500, "the whole, not the range");
        assert_eq!((summary.span_s, summary.busiest_second, summary.busiest_minute), (9, 2, 5));
    }

    #[test]
    fn referrals_name_pages_of_the_same_site() {
        let from = |referrer: &str| {
            line(1, "GET /b.png HTTP/1.1", 200, 5).replace('\n', &format!(" \"{referrer}\" \"x\"\n"))
        };
        let log =
            line(1, "GET /a HTTP/1.1", 200, 5) + &from("http://s/a?q") + &from("http://s/c") + &from("-");
        let mut reader = LogReader::with_referrals();
        reader.read("log", log.as_bytes()).unwrap();
        let [a, b] = [0, 1];
        let expected = [(a, None, false), (b, Some(a), true), (b, None, true), (b, None, true)];
        let expected = expected.map(|(to, from, is_embedded)| Referral { to, from, is_embedded });
        assert_eq!(reader.referrals(), expected);
        assert_eq!(reader.finish("").0.requests().len(), 4);
        assert!(LogReader::default().referrals().is_empty());
    }

    #[test]
    fn bad_lines_are_counted_and_the_first_is_shown() {
        let mut log = line(1, "GET /a HTTP/1.1", 200, 5).into_bytes();
        log.extend(b"\x16\x03\x01\xff\n\n");
        log.extend(b"nothing here either\n");
        log.extend(vec![b'x'; 3 * LINE_BYTES_MAX as usize]);
        log.extend(b"\n");
        log.extend(line(1, "BREW /pot HTCPCP/1.0", 418, 0).bytes());
        log.extend(line(1, "GET /gone HTTP/1.1", 404, 9).bytes());
        log.extend(line(2, "GET /a HTTP/1.1", 200, 5).trim_end().bytes());
        let (trace, summary) = read(&[&log]);
        assert_eq!(trace.requests().len(), 2, "the last line needs no end");
        assert_eq!((summary.lines, summary.bad_lines()), (7, 3));
        let (count, first) = &summary.bad[&BadLine::NoTime];
        assert_eq!((*count, first.line, first.excerpt.as_str()), (2, 2, r"\x16\x03\x01\xff"));
        assert_eq!(summary.bad[&BadLine::TooLong].1.line, 5);
        assert_eq!(summary.left_out, BTreeMap::from([(LeftOut::Method, 1), (LeftOut::Status, 1)]));
        let words = summary.words().join("\n");
        assert!(
            words.contains(
                "Skipped 2 bad lines: no time in brackets. The first is log0:2: \\x16\\x03\\x01\\xff"
            )
        );
    }

    #[test]
    fn compressed_logs_are_read_also_in_several_members_and_cut_off() {
        let member = |text: &str| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            encoder.finish().unwrap()
        };
        let mut whole = member(&line(1, "GET /a HTTP/1.1", 200, 5));
        whole.extend(member(&line(2, "GET /b HTTP/1.1", 200, 5)));
        let (trace, summary) = read(&[&whole]);
        assert_eq!((trace.requests().len(), summary.cut_off.len()), (2, 0));
        let (trace, summary) = read(&[&whole[..whole.len() - 3]]);
        assert_eq!((trace.requests().len(), summary.cut_off), (2, vec!["log0".to_owned()]));
        let (trace, summary) = read(&[&[&whole[..], b"not compressed"].concat()]);
        assert_eq!((trace.requests().len(), summary.cut_off), (2, vec!["log0".to_owned()]));
        let refused = LogReader::default().read("a.zst", &b"\x28\xb5\x2f\xfd..."[..]).unwrap_err();
        assert!(refused.to_string().contains("zstdcat a.zst |"), "{refused}");
    }

    #[test]
    fn programs_are_told_from_files() {
        let cases = [
            ("/a.html", false, false),
            ("/style.css", true, false),
            ("/search", true, true),
            ("/search", false, false),
            ("/index.PHP", false, true),
            ("/cgi-bin/env", false, true),
        ];
        for (path, query, expected) in cases {
            assert_eq!(is_dynamic(Method::Get, path.as_bytes(), query), expected, "{path} {query}");
        }
        assert!(is_dynamic(Method::Post, b"/a.html", false));
    }
}
