//! One line of an access log of JSON objects: Baton's own (`log.format = "json"`), or Caddy's.
//!
//! ```text
//! {"time":"2000-10-10T20:55:36.123Z","peer":"192.0.2.1","request":"GET /a?b HTTP/1.1","status":200,"body_bytes":2326,…,"referer":"http://…"}
//! {"level":"info","ts":971211336.52,…,"request":{…,"method":"GET","uri":"/a?b","headers":{"Referer":["http://…"]}},"size":2326,"status":200}
//! ```

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;

use super::access_log::{
    BYTES_MAX, BadLine, LogEntry, Method, days_since_1970, method_of, parse_request, range_start,
};

#[derive(Deserialize)]
struct OfBaton<'a> {
    #[serde(borrow)]
    time: Time<'a>,
    #[serde(borrow, default)]
    peer: Cow<'a, str>,
    #[serde(borrow)]
    request: Cow<'a, str>,
    status: u64,
    body_bytes: u64,
    #[serde(borrow, default)]
    referer: Cow<'a, str>,
    #[serde(borrow, default, rename = "request_header.Range")]
    range: Cow<'a, str>,
    #[serde(default)]
    duration_us: u64,
}

#[derive(Deserialize)]
struct OfCaddy<'a> {
    #[serde(borrow)]
    ts: Time<'a>,
    #[serde(borrow)]
    request: TraceRequest<'a>,
    status: u64,
    size: u64,
    /// Seconds; Caddy can be told to write it as a text.
    #[serde(borrow, default)]
    duration: Option<Time<'a>>,
}

#[derive(Deserialize)]
struct TraceRequest<'a> {
    #[serde(borrow, default)]
    client_ip: Cow<'a, str>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    uri: Cow<'a, str>,
    #[serde(borrow, default)]
    headers: Headers<'a>,
}

#[derive(Default, Deserialize)]
struct Headers<'a> {
    #[serde(borrow, default, rename = "Referer")]
    referer: Vec<Cow<'a, str>>,
    #[serde(borrow, default, rename = "Range")]
    range: Vec<Cow<'a, str>>,
}

/// Seconds, or one of Caddy's other formats.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time<'a> {
    Number(f64),
    Text(#[serde(borrow)] Cow<'a, str>),
}

/// Takes a line apart that begins with `{`.
///
/// # Errors
/// The first thing that does not fit.
pub(super) fn parse_json(line: &[u8]) -> Result<LogEntry<'_>, BadLine> {
    // Only in Caddy's the request has parts.
    if memmem::find(line, b"\"request\":{").is_some() {
        of_caddy(serde_json::from_slice(line).map_err(|_| BadLine::BadJson)?)
    } else {
        of_baton(serde_json::from_slice(line).map_err(|_| BadLine::BadJson)?)
    }
}

fn of_baton(line: OfBaton<'_>) -> Result<LogEntry<'_>, BadLine> {
    let (method, target) = match line.request {
        Cow::Borrowed(request) => {
            let parsed = parse_request(request.as_bytes());
            parsed.map(|(method, target)| (method, Cow::Borrowed(target)))
        }
        Cow::Owned(request) => {
            let request = latin1(&request);
            parse_request(&request).map(|(method, target)| (method, Cow::Owned(target.to_vec())))
        }
    }
    .ok_or(BadLine::BadRequest)?;
    let referrer = (!line.referer.is_empty()).then(|| bytes(line.referer));
    let range_start = range_start(line.range.as_bytes());
    let entry = entry(bytes(line.peer), &line.time, method, target, line.status, line.body_bytes, referrer)?;
    Ok(LogEntry { range_start, duration_ms: line.duration_us / 1000, ..entry })
}

fn of_caddy(line: OfCaddy<'_>) -> Result<LogEntry<'_>, BadLine> {
    let TraceRequest { client_ip, method, uri, headers } = line.request;
    if uri.is_empty() {
        return Err(BadLine::BadRequest);
    }
    let range_start = headers.range.first().and_then(|range| range_start(range.as_bytes()));
    let duration_ms = match line.duration {
        Some(Time::Number(seconds)) => (seconds * 1000.0) as u64,
        _ => 0,
    };
    let referrer = headers.referer.into_iter().next().map(bytes);
    let entry = entry(
        bytes(client_ip),
        &line.ts,
        method_of(method.as_bytes()),
        bytes(uri),
        line.status,
        line.size,
        referrer,
    )?;
    Ok(LogEntry { range_start, duration_ms, ..entry })
}

fn entry<'a>(
    client: Cow<'a, [u8]>,
    time: &Time<'_>,
    method: Method,
    target: Cow<'a, [u8]>,
    status: u64,
    bytes: u64,
    referrer: Option<Cow<'a, [u8]>>,
) -> Result<LogEntry<'a>, BadLine> {
    let time_s = seconds(time).ok_or(BadLine::BadTime)?;
    let status = u16::try_from(status).ok().filter(|status| (100..1000).contains(status));
    let status = status.ok_or(BadLine::BadStatus)?;
    if bytes > BYTES_MAX {
        return Err(BadLine::BadBytes);
    }
    let (range_start, duration_ms) = (None, 0);
    Ok(LogEntry { client, time_s, method, target, status, bytes, referrer, range_start, duration_ms })
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

/// Baton shows a byte that is not ASCII as the character of the same number.
fn latin1(text: &str) -> Vec<u8> {
    let byte = |c: char| u8::try_from(c).unwrap_or(b'?');
    text.chars().map(byte).collect()
}

/// Seconds since 1970. Numbers are also counted in thousandths, millionths and so on: which, their size tells.
fn seconds(time: &Time<'_>) -> Option<i64> {
    match time {
        Time::Number(number) if (0.0..1e20).contains(number) => {
            let unit = [1e17, 1e14, 1e11].into_iter().zip([1e9, 1e6, 1e3]).find(|(least, _)| number >= least);
            Some((number / unit.map_or(1.0, |(_, unit)| unit)) as i64)
        }
        Time::Number(_) => None,
        Time::Text(text) => parse_text(text),
    }
}

/// `2000-10-10T13:55:36.52-0700` or `…-07:00` or `…Z`, also with other separators and without a zone.
fn parse_text(text: &str) -> Option<i64> {
    let (moment, rest) = text.split_at_checked(19)?;
    let numbers: Option<Vec<i64>> =
        moment.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse().ok()).collect();
    let [year, month, day, hour, minute, second] = numbers?[..] else { return None };
    let fits = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !fits || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let zone = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit()).trim_start();
    let offset_minutes = match zone.split_at_checked(1) {
        None | Some(("Z", "")) => 0,
        Some((sign @ ("+" | "-"), zone)) => {
            let digits = zone.replace(':', "");
            let number: i64 =
                digits.parse().ok().filter(|_| digits.len() == 4 && !digits.starts_with(['+', '-']))?;
            let minutes = number / 100 * 60 + number % 100;
            if sign == "-" { -minutes } else { minutes }
        }
        Some(_) => return None,
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(seconds - offset_minutes * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BATON: &str = r#"{"time":971211336,"peer":"192.0.2.1","site":"main","request":"GET /a?b HTTP/1.1","status":206,"body_bytes":2326,"duration_us":4200,"request_header.Range":"bytes=70-","outcome":"complete","referer":"http://s/","user_agent":"x"}"#;
    const CADDY: &str = r#"{"level":"info","ts":971211336.5241024,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"127.0.0.1","client_ip":"192.0.2.1","proto":"HTTP/2.0","method":"GET","host":"localhost","uri":"/a?b","headers":{"User-Agent":["curl/7.82.0"],"Range":["bytes=70-2395"],"Referer":["http://s/"]},"tls":{"resumed":false}},"bytes_read":0,"user_id":"","duration":0.004929675,"size":2326,"status":206,"resp_headers":{"Server":["Caddy"]}}"#;

    #[test]
    fn both_say_the_same() {
        let expected = LogEntry {
            client: b"192.0.2.1".into(),
            time_s: 971_211_336,
            method: Method::Get,
            target: b"/a?b".into(),
            status: 206,
            bytes: 2326,
            referrer: Some(b"http://s/".into()),
            range_start: Some(70),
            duration_ms: 4,
        };
        for line in [BATON, CADDY] {
            assert_eq!(parse_json(line.as_bytes()), Ok(expected.clone()), "{line}");
        }
        let none = BATON.replace("http://s/", "");
        assert_eq!(parse_json(none.as_bytes()).unwrap().referrer, None);
        let none = CADDY.replace(r#","Referer":["http://s/"]"#, "");
        assert_eq!(parse_json(none.as_bytes()).unwrap().referrer, None);
        let escaped = BATON.replace("/a?b", r#"/\"\u00e4"#);
        assert_eq!(parse_json(escaped.as_bytes()).unwrap().target, &b"/\"\xe4"[..]);
    }

    #[test]
    fn lines_that_are_no_entries() {
        for (line, expected) in [
            ("{", BadLine::BadJson),
            (r#"{"level":"info","ts":1,"logger":"admin","msg":"started"}"#, BadLine::BadJson),
            (&CADDY[..CADDY.len() - 9], BadLine::BadJson),
            (&BATON.replace(r#""GET /a?b HTTP/1.1""#, r#""\u0016\u0003""#), BadLine::BadRequest),
            (&BATON.replace(":206", ":7"), BadLine::BadStatus),
            (&CADDY.replace(":206", ":0"), BadLine::BadStatus),
            (&CADDY.replace(":2326", ":1099511627777"), BadLine::BadBytes),
            (&CADDY.replace("971211336.5241024", "\"yesterday\""), BadLine::BadTime),
            (&CADDY.replace("971211336.5241024", "-1"), BadLine::BadTime),
        ] {
            assert_eq!(parse_json(line.as_bytes()), Err(expected), "{line}");
        }
    }

    #[test]
    fn times_in_all_formats_of_caddy() {
        for time in [
            "971211336",
            "971211336524.1024",
            "971211336524102400",
            "\"2000-10-10T13:55:36.524-0700\"",
            "\"2000-10-10T20:55:36Z\"",
            "\"2000-10-10T21:55:36.5+01:00\"",
            "\"2000/10/10 20:55:36\"",
            "\"2000/10/10 20:55:36.524\"",
        ] {
            let line = CADDY.replace("971211336.5241024", time);
            assert_eq!(parse_json(line.as_bytes()).map(|entry| entry.time_s), Ok(971_211_336), "{time}");
        }
        for time in
            ["\"2000-13-10T13:55:36Z\"", "\"2000-10-10\"", "\"2000-10-10T13:55:36 x\"", "\"äääääääääää\""]
        {
            let line = CADDY.replace("971211336.5241024", time);
            assert_eq!(parse_json(line.as_bytes()), Err(BadLine::BadTime), "{time}");
        }
    }
}
