//! The reader of access logs in `baton-sim`: no content of a log stops it or hides later lines.

use baton_sim::trace::{BadLine, LogReader, LogSummary, Method, Trace, parse_line};

/// A line counts as a request or as an error; and an entry in the next line is read in any case.
pub fn access_log(input: &[u8]) {
    one_line(input);
    let Some((trace, summary)) = read(input) else { return };
    let counted = summary.requests + summary.bad_lines() + summary.left_out.values().sum::<u64>();
    assert_eq!(summary.lines, counted, "each line is counted once");
    assert_eq!(trace.requests().len() as u64, summary.requests);
    for request in trace.requests() {
        assert!((request.target() as usize) < trace.targets().len());
    }
    assert!(summary.busiest_second <= summary.busiest_minute && summary.busiest_minute <= summary.requests);
    tells_each_fault_once(&summary);

    if input.starts_with(&[0x1f, 0x8b]) {
        // Compressed: to its end, or to the damage.
        return;
    }
    assert_eq!(summary.cut_off.len(), 0);
    let lines = input.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    assert_eq!(summary.lines, lines.count() as u64);
    let followed = [input, b"\n", ENTRY, b"\n"].concat();
    let (_, followed) = read(&followed).expect("it begins as the input does");
    assert_eq!((followed.lines, followed.requests), (summary.lines + 1, summary.requests + 1));
    assert_eq!(followed.bad_lines(), summary.bad_lines());
}

const ENTRY: &[u8] = b"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /a HTTP/1.1\" 200 2326";

/// A log of this content; none if it says that it is compressed by a program that the reader does not know.
fn read(log: &[u8]) -> Option<(Trace, LogSummary)> {
    let mut reader = LogReader::default();
    reader.read("log", log).ok()?;
    Some(reader.finish("log"))
}

fn one_line(line: &[u8]) {
    let Ok(entry) = parse_line(line) else { return };
    assert!((100..1000).contains(&entry.status));
    assert!(!entry.target.is_empty());
    if line.starts_with(b"{") {
        // Strings of JSON have escapes.
        return;
    }
    assert!(line.windows(entry.target.len()).any(|part| part == &*entry.target), "a part of the line");
    if entry.method == Method::Get {
        assert!(line.windows(4).any(|part| part == b"GET "));
    }
}

/// The excerpt of a bad line cannot affect a terminal, and is a single line.
fn tells_each_fault_once(summary: &LogSummary) {
    let words = summary.words();
    for fault in BadLine::ALL {
        let told = words
            .iter()
            .filter(|words| words.starts_with("Skipped") && words.contains(&format!(": {fault}. The first")));
        assert_eq!(told.count(), usize::from(summary.bad.contains_key(&fault)), "{fault}");
    }
    for words in &words {
        assert!(words.len() < 1000 && words.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
    }
}
