//! One line of an access log in the common or combined format; one of JSON is [`super::json_log`]'s.
//!
//! ```text
//! 192.0.2.1 - mary [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.1" 200 2326 "http://…" "Mozilla/…"
//! └ host    │ └ user                             └ request           │   └ bytes of the body, or -
//!           └ ident                                                  └ status
//! ```
//!
//! Clients control parts of a log: user names with spaces, halves of TLS handshakes as requests, quotes (escaped by a
//! backslash, or not). A line is parsed from both ends, and errors are named.

use std::borrow::Cow;
use std::fmt;

use memchr::memmem;

/// Largest plausible answer in bytes. A target is as large as its largest answer, so a single overflowed counter
/// would outweigh the rest of a log.
pub(super) const BYTES_MAX: u64 = 1 << 40;

/// The parts of a line that a simulation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry<'a> {
    /// Who asked: an address, or what the log has in its place.
    pub client: Cow<'a, [u8]>,
    /// Seconds since 1970 in UTC.
    pub time_s: i64,
    /// The method.
    pub method: Method,
    /// The request's target as the client sent it: path and query.
    pub target: Cow<'a, [u8]>,
    /// The status.
    pub status: u16,
    /// Bytes of the body that were sent; `-` means none.
    pub bytes: u64,
    /// The field `Referer`, if the line has it; `-` means none.
    pub referrer: Option<Cow<'a, [u8]>>,
    /// The first byte that was asked for, if the line has the field `Range`, and its first range has one.
    pub range_start: Option<u64>,
    /// From the request to the end of the response in milliseconds; 0 if the line does not say it.
    pub duration_ms: u64,
}

impl LogEntry<'_> {
    /// The first byte of the file that was sent; not known of a part if the line does not say it.
    pub(super) fn start(&self) -> Option<u64> {
        if self.status == PARTIAL_CONTENT { self.range_start } else { Some(0) }
    }
}

const PARTIAL_CONTENT: u16 = 206;

/// The methods that matter to a file server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// Any other.
    Other,
}

/// Why a line is not an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BadLine {
    /// Longer than [`super::LogReader`] keeps.
    TooLong,
    /// No time in brackets.
    NoTime,
    /// The time is not `10/Oct/2000:13:55:36 -0700`.
    BadTime,
    /// No request in quotes.
    NoRequest,
    /// The request is not `METHOD target HTTP/…`.
    BadRequest,
    /// The status is not three digits.
    BadStatus,
    /// The number of bytes is neither `-` nor a number up to `BYTES_MAX`.
    BadBytes,
    /// The line begins as an object of JSON, and is no entry of an access log of Baton or Caddy.
    BadJson,
}

impl BadLine {
    /// All reasons.
    pub const ALL: [Self; 8] = [
        Self::TooLong,
        Self::NoTime,
        Self::BadTime,
        Self::NoRequest,
        Self::BadRequest,
        Self::BadStatus,
        Self::BadBytes,
        Self::BadJson,
    ];
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "the line is too long",
            Self::NoTime => "no time in brackets",
            Self::BadTime => "the time is not like 10/Oct/2000:13:55:36 -0700",
            Self::NoRequest => "no request in quotes",
            Self::BadRequest => "the request is not like GET /path HTTP/1.1",
            Self::BadStatus => "the status is not three digits",
            Self::BadBytes => "the number of bytes is neither - nor a number up to 1 TiB",
            Self::BadJson => "not an entry of an access log of Baton or Caddy",
        })
    }
}

/// Takes a line of the common or combined format apart. It comes without its end of line.
///
/// # Errors
/// The first thing that does not fit.
pub(super) fn parse_combined(line: &[u8]) -> Result<LogEntry<'_>, BadLine> {
    let (time, rest) = bracketed(line)?;
    let time_s = parse_time(time).ok_or(BadLine::BadTime)?;
    let (request, rest) = quoted(rest)?;
    let (method, target) = parse_request(request).ok_or(BadLine::BadRequest)?;

    let mut fields = rest.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let status = fields.next().and_then(parse_status).ok_or(BadLine::BadStatus)?;
    let bytes = match fields.next() {
        Some(b"-") => 0,
        field => field.and_then(parse_number).filter(|bytes| *bytes <= BYTES_MAX).ok_or(BadLine::BadBytes)?,
    };
    let referrer = referrer(rest).map(Cow::Borrowed);
    let client = Cow::Borrowed(client(line));
    let range = memmem::find(rest, RANGE_FIELD).and_then(|at| range_start(&rest[at + RANGE_FIELD.len()..]));
    let target = Cow::Borrowed(target);
    Ok(LogEntry {
        client,
        time_s,
        method,
        target,
        status,
        bytes,
        referrer,
        range_start: range,
        duration_ms: 0,
    })
}

/// As Baton appends it to a line (`log.fields`).
const RANGE_FIELD: &[u8] = b"request_header.Range=\"";

/// The first byte of `bytes=500-999, …`; of `bytes=-500`, the last ones, there is none.
pub(super) fn range_start(field: &[u8]) -> Option<u64> {
    let first = field.strip_prefix(b"bytes=")?.trim_ascii_start();
    parse_number(&first[..memchr::memchr(b'-', first)?]).filter(|start| *start <= BYTES_MAX)
}

/// The first word; the second if the first is a virtual host, and the second an address.
fn client(line: &[u8]) -> &[u8] {
    let mut words = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let is_address =
        |word: &&[u8]| std::str::from_utf8(word).is_ok_and(|word| word.parse::<std::net::IpAddr>().is_ok());
    let first = words.next().unwrap_or_default();
    if is_address(&first) { first } else { words.next().filter(is_address).unwrap_or(first) }
}

/// What is between the first two quotes behind the numbers. A quote ends it: no URL has one.
fn referrer(rest: &[u8]) -> Option<&[u8]> {
    let (_, rest) = split_once(rest, b'"')?;
    let (referrer, _) = split_once(rest, b'"')?;
    (referrer != b"-").then_some(referrer)
}

/// The time is in the first brackets that follow a space and hold a time: a user's name may hold spaces, and brackets.
fn bracketed(line: &[u8]) -> Result<(&[u8], &[u8]), BadLine> {
    let mut found = Err(BadLine::NoTime);
    for start in memmem::find_iter(line, b" [").map(|at| at + 2) {
        let Some(len) = memchr::memchr(b']', &line[start..]) else { break };
        let inside = &line[start..start + len];
        found = Ok((inside, &line[start + len + 1..]));
        if parse_time(inside).is_some() {
            break;
        }
    }
    found
}

/// The request is between quotes; a status follows the last one. Most servers escape quotes within, some do not.
fn quoted(rest: &[u8]) -> Result<(&[u8], &[u8]), BadLine> {
    let rest = rest.trim_ascii_start().strip_prefix(b"\"").ok_or(BadLine::NoRequest)?;
    let mut first = None;
    for end in memmem::find_iter(rest, b"\" ") {
        let after = &rest[end + 2..];
        if after.split(|&byte| byte == b' ').next().and_then(parse_status).is_some() {
            return Ok((&rest[..end], after));
        }
        first.get_or_insert((&rest[..end], after));
    }
    first.ok_or(BadLine::NoRequest)
}

pub(super) fn parse_request(request: &[u8]) -> Option<(Method, &[u8])> {
    let (method, rest) = split_once(request, b' ')?;
    // HTTP/0.9 has no version; a target with a space in it has one more word than it should.
    let target = match memmem::rfind(rest, b" HTTP/") {
        Some(end) => &rest[..end],
        None => rest,
    };
    let plausible = !method.is_empty() && method.iter().all(u8::is_ascii_uppercase) && !target.is_empty();
    plausible.then_some((method_of(method), target))
}

pub(super) fn method_of(name: &[u8]) -> Method {
    match name {
        b"GET" => Method::Get,
        b"HEAD" => Method::Head,
        b"POST" => Method::Post,
        _ => Method::Other,
    }
}

fn parse_status(field: &[u8]) -> Option<u16> {
    match field {
        &[a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
            Some([a, b, c].iter().fold(0, |number, digit| number * 10 + u16::from(digit - b'0')))
        }
        _ => None,
    }
}

fn parse_number(field: &[u8]) -> Option<u64> {
    let number = std::str::from_utf8(field).ok()?;
    // The sign that `parse` would take.
    if number.starts_with('+') { None } else { number.parse().ok() }
}

/// `10/Oct/2000:13:55:36 -0700`
fn parse_time(time: &[u8]) -> Option<i64> {
    let (date, clock) = split_once(time, b':')?;
    let mut date = date.split(|&byte| byte == b'/');
    let day = two_digits(date.next()?)?;
    let month = MONTHS.iter().position(|&name| Some(&name[..]) == date.clone().next())? as i64 + 1;
    let year = parse_number(date.nth(1)?).filter(|year| (1970..10_000).contains(year))? as i64;
    if date.next().is_some() || !(1..=31).contains(&day) {
        return None;
    }

    let (clock, zone) = split_once(clock, b' ')?;
    let mut clock = clock.split(|&byte| byte == b':');
    let [hour, minute, second] = [clock.next()?, clock.next()?, clock.next()?].map(two_digits);
    let (hour, minute, second) = (hour?, minute?, second?);
    // 60: a leap second.
    if clock.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }

    let (sign, zone) = match zone {
        [b'+', zone @ ..] => (1, zone),
        [b'-', zone @ ..] => (-1, zone),
        _ => return None,
    };
    let offset_minutes = match zone {
        [a, b, c, d] => two_digits(&[*a, *b])? * 60 + two_digits(&[*c, *d])?,
        _ => return None,
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds - sign * offset_minutes * 60)
}

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Days of the Gregorian calendar. A year begins in March here, so that the leap day is its last.
pub(super) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468
}

fn two_digits(field: &[u8]) -> Option<i64> {
    match field {
        &[a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(i64::from(a - b'0') * 10 + i64::from(b - b'0')),
        _ => None,
    }
}

fn split_once(bytes: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let position = memchr::memchr(at, bytes)?;
    Some((&bytes[..position], &bytes[position + 1..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const COMMON: &str = r#"192.0.2.1 - mary [10/Oct/2000:13:55:36 -0700] "GET /a?b HTTP/1.0" 200 2326"#;

    #[test]
    fn a_line_of_the_common_format() {
        let entry = LogEntry {
            client: b"192.0.2.1".into(),
            time_s: 971_211_336,
            method: Method::Get,
            target: b"/a?b".into(),
            status: 200,
            bytes: 2326,
            referrer: None,
            range_start: None,
            duration_ms: 0,
        };
        assert_eq!(parse_combined(COMMON.as_bytes()), Ok(entry));
    }

    #[test]
    fn a_line_of_the_combined_format_has_a_referrer() {
        let cases: [(&str, Option<&[u8]>); 4] = [
            (r#" "http://site.example/a" "Mozilla/5.0 \"x\"""#, Some(b"http://site.example/a")),
            (r#" "-" "Mozilla/5.0""#, None),
            (r#" "http://site.example/a"#, None),
            (r#" "" """#, Some(b"")),
        ];
        for (end, expected) in cases {
            let line = format!("{COMMON}{end}");
            assert_eq!(parse_combined(line.as_bytes()).unwrap().referrer.as_deref(), expected, "{end}");
        }
    }

    #[test]
    fn the_client_is_the_first_word_or_follows_a_virtual_host() {
        let client = |start: &str| {
            let line = COMMON.replace("192.0.2.1", start);
            String::from_utf8(parse_combined(line.as_bytes()).unwrap().client.into_owned()).unwrap()
        };
        assert_eq!(client("a.example:80 2001:db8::1"), "2001:db8::1");
        assert_eq!(client("pool-7.example"), "pool-7.example");
        assert_eq!(client("192.0.2.9 192.0.2.1"), "192.0.2.9");
    }

    #[test]
    fn lines_as_they_are_met() {
        let parsed = |line: &'static str| {
            let entry = parse_combined(line.as_bytes());
            entry.map(|entry| (String::from_utf8(entry.target.into_owned()).unwrap(), entry.bytes))
        };
        let cases = [
            // Combined, with a referrer that looks like the end of a request.
            (
                r#"::1 - - [01/Jan/1970:00:00:00 +0000] "GET / HTTP/1.1" 304 - "x" 200 5" "a \"b\"""#,
                Ok(("/", 0)),
            ),
            // The virtual host first.
            (
                r#"a.example:80 192.0.2.1 - - [29/Feb/2000:23:59:60 +0000] "HEAD /x HTTP/1.1" 200 0"#,
                Ok(("/x", 0)),
            ),
            // A user's name with spaces and brackets.
            (r#"h - a [b] c [10/Oct/2000:13:55:36 -0700] "GET /u HTTP/1.0" 200 1"#, Ok(("/u", 1))),
            // Quotes in the request, escaped and not.
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /\"q\" HTTP/1.0" 200 1"#, Ok((r#"/\"q\""#, 1))),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /" b" HTTP/1.0" 200 1"#, Ok((r#"/" b""#, 1))),
            // HTTP/0.9; a space in the target.
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /old" 200 7"#, Ok(("/old", 7))),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /a b HTTP/1.1" 200 7"#, Ok(("/a b", 7))),
            // Traces of scanners.
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "\x16\x03\x01" 400 226"#, Err(BadLine::BadRequest)),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "-" 408 -"#, Err(BadLine::BadRequest)),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "" 400 0"#, Err(BadLine::BadRequest)),
            // Cut off by a full disk; two lines run together.
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET /"#, Err(BadLine::NoRequest)),
            (r#"h - - [10/Oct/2000:13:5"#, Err(BadLine::NoTime)),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200"#, Err(BadLine::BadBytes)),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 20h - -"#, Err(BadLine::BadStatus)),
            (r#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 +5"#, Err(BadLine::BadBytes)),
            (
                r#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 99999999999999999999"#,
                Err(BadLine::BadBytes),
            ),
            // A counter that has run over: less than nothing.
            (
                r#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 18446744073709551615"#,
                Err(BadLine::BadBytes),
            ),
            (
                r#"h - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1099511627777"#,
                Err(BadLine::BadBytes),
            ),
            // Other languages, other formats.
            (r#"h - - [10/Okt/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 1"#, Err(BadLine::BadTime)),
            (r#"h - - [2000-10-10T13:55:36Z] "GET / HTTP/1.0" 200 1"#, Err(BadLine::BadTime)),
            ("", Err(BadLine::NoTime)),
        ];
        for (line, expected) in cases {
            let expected = expected.map(|(target, bytes): (&str, u64)| (target.to_owned(), bytes));
            assert_eq!(parsed(line), expected, "{line}");
        }
    }

    #[test]
    fn times_are_utc() {
        let cases = [
            ("01/Jan/1970:00:00:00 +0000", Some(0)),
            ("01/Jan/1970:01:00:00 +0130", Some(-1800)),
            ("01/Mar/2000:00:00:00 +0000", Some(951_868_800)),
            ("31/Dec/2099:23:59:59 -0000", Some(4_102_444_799)),
            ("00/Jan/1970:00:00:00 +0000", None),
            ("01/Jan/1970:24:00:00 +0000", None),
            ("01/Jan/1970:00:00:00", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_time(text.as_bytes()), expected, "{text}");
        }
    }

    proptest! {
        /// Any bytes, and any damage to a good line, cause no panic, and parts of a line are within it.
        #[test]
        fn damaged_lines(noise in prop::collection::vec(any::<u8>(), 0..40), from in 0..76usize, to in 0..76usize) {
            let (from, to) = (from.min(to).min(COMMON.len()), from.max(to).min(COMMON.len()));
            let mut line = COMMON.as_bytes().to_vec();
            line.splice(from..to, noise.iter().copied());
            for line in [&line[..], &noise[..]] {
                if let Ok(entry) = parse_combined(line) {
                    prop_assert!((100..1000).contains(&entry.status));
                    prop_assert!(memmem::find(line, &entry.target).is_some());
                }
            }
        }
    }
}
