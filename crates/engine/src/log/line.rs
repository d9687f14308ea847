//! What a line says, and what it looks like.

use std::io::Write;
use std::net::SocketAddr;

use baton_http::Stamp;
use baton_parcel::{Packer, Unpacker};
use baton_upstream::Trail;

use super::outcome::Outcome;

/// How lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Apache's and nginx's `combined`.
    #[default]
    Combined,
    /// A JSON object per line.
    Json,
}

/// What a line says of the request itself, kept until the response has been sent.
#[derive(Debug, Default)]
pub(crate) struct RequestText {
    bytes: Vec<u8>,
    line_end: usize,
    referer_end: usize,
}

impl RequestText {
    pub(super) fn fill(&mut self, line: &[u8], referer: Option<&[u8]>, agent: Option<&[u8]>) {
        self.bytes.clear();
        self.bytes.extend_from_slice(line);
        self.line_end = self.bytes.len();
        self.bytes.extend_from_slice(referer.unwrap_or_default());
        self.referer_end = self.bytes.len();
        self.bytes.extend_from_slice(agent.unwrap_or_default());
    }

    /// Packs it for the process that writes the line.
    pub(crate) fn pack(&self, packer: &mut Packer) {
        packer.bytes(self.line()).bytes(self.referer()).bytes(self.agent());
    }

    /// The text that another process has packed. `None`: it has packed something else.
    pub(crate) fn unpack(packed: &mut Unpacker<'_>) -> Option<Self> {
        let mut text = Self::default();
        let (line, referer, agent) = (packed.bytes()?, packed.bytes()?, packed.bytes()?);
        text.fill(line, Some(referer), Some(agent));
        Some(text)
    }

    fn line(&self) -> &[u8] {
        &self.bytes[..self.line_end]
    }

    fn referer(&self) -> &[u8] {
        &self.bytes[self.line_end..self.referer_end]
    }

    fn agent(&self) -> &[u8] {
        &self.bytes[self.referer_end..]
    }
}

/// What a line says beside the request.
pub(crate) struct Ending<'a> {
    pub(crate) peer: Option<SocketAddr>,
    /// The user whose password was right.
    pub(crate) user: Option<&'a str>,
    pub(crate) site: &'a str,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) duration_ms: u64,
    pub(crate) outcome: Outcome,
    /// What the shared cache did.
    pub(crate) cache: Option<&'static str>,
    /// The origin that was asked.
    pub(crate) origin: Option<OriginPart<'a>>,
}

/// What a line says of an origin.
pub(crate) struct OriginPart<'a> {
    pub(crate) name: &'a str,
    /// Its name as a node of the cluster.
    pub(crate) node: Option<&'a str>,
    pub(crate) trail: Trail,
    /// Why it has failed.
    pub(crate) failure: Option<&'static str>,
}

/// Apache's and nginx's `combined`: the tools that read theirs read ours.
pub(super) fn combined(out: &mut Vec<u8>, text: &RequestText, ending: &Ending<'_>, stamp: &Stamp) {
    peer(out, ending);
    out.extend_from_slice(b" - ");
    match ending.user {
        // A blank would end the field.
        Some(user) => user.split_inclusive(' ').for_each(|part| {
            escaped(out, part.trim_end_matches(' ').as_bytes(), combined_escape);
            if part.ends_with(' ') {
                combined_escape(out, b' ');
            }
        }),
        None => out.push(b'-'),
    }
    out.extend_from_slice(b" [");
    // "Sun, 06 Nov 1994 08:49:37 GMT" has all that "06/Nov/1994:08:49:37 +0000" needs.
    let date = &stamp.date;
    out.extend_from_slice(&date[5..7]);
    out.push(b'/');
    out.extend_from_slice(&date[8..11]);
    out.push(b'/');
    out.extend_from_slice(&date[12..16]);
    out.push(b':');
    out.extend_from_slice(&date[17..25]);
    out.extend_from_slice(b" +0000] \"");
    escaped(out, text.line(), combined_escape);
    out.extend_from_slice(b"\" ");
    if ending.status == 0 {
        // As other servers write what has no status.
        out.extend_from_slice(b"000");
    } else {
        number(out, u64::from(ending.status));
    }
    out.push(b' ');
    number(out, ending.body_bytes);
    for field in [text.referer(), text.agent()] {
        out.extend_from_slice(b" \"");
        if field.is_empty() {
            out.push(b'-');
        } else {
            escaped(out, field, combined_escape);
        }
        out.push(b'"');
    }
    out.push(b'\n');
}

/// A JSON object; bytes that are not ASCII are shown as the Latin-1 characters of the same number.
pub(super) fn json(out: &mut Vec<u8>, text: &RequestText, ending: &Ending<'_>, stamp: &Stamp) {
    out.extend_from_slice(b"{\"time\":");
    number(out, stamp.unix_seconds);
    out.extend_from_slice(b",\"peer\":\"");
    peer(out, ending);
    if let Some(user) = ending.user {
        out.extend_from_slice(b"\",\"user\":\"");
        escaped(out, user.as_bytes(), json_escape);
    }
    out.extend_from_slice(b"\",\"site\":\"");
    escaped(out, ending.site.as_bytes(), json_escape);
    out.extend_from_slice(b"\",\"request\":\"");
    escaped(out, text.line(), json_escape);
    out.extend_from_slice(b"\",\"status\":");
    number(out, u64::from(ending.status));
    out.extend_from_slice(b",\"body_bytes\":");
    number(out, ending.body_bytes);
    out.extend_from_slice(b",\"duration_ms\":");
    number(out, ending.duration_ms);
    out.extend_from_slice(b",\"outcome\":\"");
    out.extend_from_slice(ending.outcome.word().as_bytes());
    out.push(b'"');
    if let Some(word) = ending.cache {
        let _ = write!(out, ",\"cache\":\"{word}\"");
    }
    if let Some(part) = &ending.origin {
        origin(out, part);
    }
    out.extend_from_slice(b",\"referer\":\"");
    escaped(out, text.referer(), json_escape);
    out.extend_from_slice(b"\",\"user_agent\":\"");
    escaped(out, text.agent(), json_escape);
    out.extend_from_slice(b"\"}\n");
}

fn origin(out: &mut Vec<u8>, part: &OriginPart<'_>) {
    out.extend_from_slice(b",\"origin\":{\"name\":\"");
    escaped(out, part.name.as_bytes(), json_escape);
    out.push(b'"');
    if let Some((node, choice)) = part.node.zip(part.trail.choice) {
        out.extend_from_slice(b",\"node\":\"");
        escaped(out, node.as_bytes(), json_escape);
        // Writing to a `Vec` does not fail.
        let _ = write!(out, "\",\"way\":\"{}\",\"why\":\"{}\"", choice.way.word(), choice.why);
    }
    out.extend_from_slice(b",\"tries\":");
    number(out, part.trail.tries.into());
    let times = [("connect_ms", part.trail.connect_ms), ("head_ms", part.trail.head_ms)];
    for (name, ms) in times.into_iter().filter_map(|(name, ms)| Some((name, ms?))) {
        // Writing to a `Vec` does not fail.
        let _ = write!(out, ",\"{name}\":{ms}");
    }
    if let Some(why) = part.failure {
        let _ = write!(out, ",\"failure\":\"{why}\"");
    }
    out.push(b'}');
}

fn peer(out: &mut Vec<u8>, ending: &Ending<'_>) {
    // Writing to a `Vec` does not fail.
    let _ = match ending.peer {
        Some(address) => write!(out, "{}", address.ip()),
        None => write!(out, "unix:"),
    };
}

fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Appends `bytes`, runs that need no escape at once.
fn escaped(out: &mut Vec<u8>, bytes: &[u8], escape: fn(&mut Vec<u8>, u8)) {
    for run in bytes.split_inclusive(|&byte| needs_escape(byte)) {
        match run.split_last() {
            Some((&last, plain)) if needs_escape(last) => {
                out.extend_from_slice(plain);
                escape(out, last);
            }
            _ => out.extend_from_slice(run),
        }
    }
}

fn needs_escape(byte: u8) -> bool {
    !(b' '..=b'~').contains(&byte) || byte == b'"' || byte == b'\\'
}

fn combined_escape(out: &mut Vec<u8>, byte: u8) {
    let _ = write!(out, "\\x{byte:02X}");
}

fn json_escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        _ => {
            let _ = write!(out, "\\u{byte:04x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_upstream::{Choice, Way};

    use super::*;

    fn text(line: &[u8], referer: &[u8], agent: &[u8]) -> RequestText {
        let mut text = RequestText::default();
        text.fill(line, Some(referer), Some(agent));
        text
    }

    fn ending() -> Ending<'static> {
        Ending {
            peer: Some("192.0.2.7:4711".parse().unwrap()),
            user: None,
            site: "museum",
            status: 200,
            body_bytes: 1024,
            duration_ms: 3,
            outcome: Outcome::Complete,
            cache: None,
            origin: None,
        }
    }

    #[test]
    fn an_origin_has_its_own_part() {
        let choice = Some(Choice { why: "mapped", way: Way::Relay });
        let trail = Trail { tries: 2, connect_ms: Some(1), head_ms: None, choice };
        let origin =
            OriginPart { name: "http://a:1/\"", node: Some("a"), trail, failure: Some("ended-early") };
        let ending = Ending { origin: Some(origin), outcome: Outcome::OriginFailed, ..ending() };
        let mut out = Vec::new();
        json(&mut out, &text(b"GET / HTTP/1.1", b"", b""), &ending, &Stamp::at(0));
        let object: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "name": "http://a:1/\"", "node": "a", "way": "relay", "why": "mapped", "tries": 2, "connect_ms": 1, "failure": "ended-early"
        });
        assert_eq!(object["origin"], expected);
        assert_eq!(object["outcome"], "origin-failed");
    }

    #[test]
    fn combined_as_other_servers_write_it() {
        let mut out = Vec::new();
        combined(&mut out, &text(b"GET /a HTTP/1.1", b"", b"curl/8"), &ending(), &Stamp::at(784_111_777));
        let expected =
            "192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] \"GET /a HTTP/1.1\" 200 1024 \"-\" \"curl/8\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_user_is_one_field() {
        let ending = Ending { user: Some("ada \"l\" [x]"), ..ending() };
        let (mut line, mut object) = (Vec::new(), Vec::new());
        combined(&mut line, &text(b"GET / HTTP/1.1", b"", b""), &ending, &Stamp::at(0));
        assert!(line.starts_with(br"192.0.2.7 - ada\x20\x22l\x22\x20[x] [01/Jan"), "{}", line.escape_ascii());
        json(&mut object, &text(b"GET / HTTP/1.1", b"", b""), &ending, &Stamp::at(0));
        let object: serde_json::Value = serde_json::from_slice(&object).unwrap();
        assert_eq!((&object["user"], &object["site"]), (&"ada \"l\" [x]".into(), &"museum".into()));
    }

    /// Nothing that a client sends can forge a line or break out of its quotes.
    #[test]
    fn what_clients_send_is_escaped() {
        let nasty = b"GET /\"\\\n\x1b[31m\xff HTTP/1.1";
        let mut out = Vec::new();
        combined(&mut out, &text(nasty, b"\"", b"\r\n"), &ending(), &Stamp::at(0));
        let line = String::from_utf8(out).unwrap();
        assert!(line.contains(r#""GET /\x22\x5C\x0A\x1B[31m\xFF HTTP/1.1""#), "{line}");
        assert_eq!(line.matches('\n').count(), 1);

        let mut out = Vec::new();
        json(&mut out, &text(nasty, b"\"", b"\r\n"), &ending(), &Stamp::at(0));
        let object: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(object["request"], "GET /\"\\\n\u{1b}[31m\u{ff} HTTP/1.1");
        assert_eq!(object["outcome"], "complete");
    }
}
