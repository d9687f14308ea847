//! What a line says, and what it looks like.

use std::io::Write;
use std::net::SocketAddr;

use baton_http::Stamp;
use baton_report::utc_bytes;
use baton_upstream::{AnswerTransport, ChoiceKey, Trail};

use super::field::{LineField, LogField};
use super::outcome::Outcome;
use super::text::RequestText;

/// How lines look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// Apache's and nginx's `combined`.
    #[default]
    Combined,
    /// A JSON object per line.
    Json,
    /// These texts with a field between each two: one text more than fields.
    Own(Box<[Box<str>]>),
}

/// How lines look, and what they say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineFormat {
    /// How they look.
    pub format: LogFormat,
    /// What they say, in this order; `combined` says it behind its own fields. `None`: what is usual.
    pub fields: Option<Box<[LineField]>>,
}

/// What a line says beside the request.
pub struct Ending<'a> {
    /// The client; `None`: one of a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The user whose password was right.
    pub user: Option<&'a str>,
    /// Name of the site.
    pub site: &'a str,
    /// Status code; 0: none was sent.
    pub status: u16,
    /// Bytes of the body that were sent.
    pub body_bytes: u64,
    /// From the first byte of the request to the last of the answer.
    pub duration_us: u64,
    /// Until the first byte of the response had left; `None`: none has.
    pub first_byte_us: Option<u64>,
    /// For which an application or an origin had the request; `None`: none had it.
    pub upstream_us: Option<u64>,
    /// The id of the request, if it has one.
    pub request_id: Option<&'a str>,
    /// The trace that it belongs to, if it is known.
    pub trace_id: Option<&'a str>,
    /// When it ended, in milliseconds since 1970.
    pub ended_unix_ms: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What the shared cache did.
    pub cache: Option<&'static str>,
    /// How the answer of an application has travelled.
    pub transport: Option<AnswerTransport>,
    /// The origin that was asked.
    pub origin: Option<OriginPart<'a>>,
}

/// What a line says of an origin.
pub struct OriginPart<'a> {
    /// Name in the configuration.
    pub name: &'a str,
    /// Its name as a node of the cluster.
    pub node: Option<&'a str>,
    /// Its tries, and how long they took.
    pub trail: Trail,
    /// Why it has failed.
    pub failure: Option<&'static str>,
}

impl LineFormat {
    /// Names of the request's fields that lines say.
    pub(super) fn of_request(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().flatten().filter_map(LineField::of_request)
    }

    /// Names of the response's fields that lines say.
    pub(super) fn of_response(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().flatten().filter_map(LineField::of_response)
    }

    /// Appends the line of a request.
    pub(super) fn push(&self, out: &mut Vec<u8>, text: &RequestText, ending: &Ending<'_>, stamp: &Stamp) {
        let said = Said { text, ending, stamp };
        match &self.format {
            LogFormat::Combined => said.push_combined(out, self.fields.as_deref().unwrap_or_default()),
            LogFormat::Json => said.push_json(out, self.fields.as_deref().unwrap_or(&USUAL)),
            LogFormat::Own(texts) => said.push_own(out, texts, self.fields.as_deref().unwrap_or_default()),
        }
    }
}

static USUAL: [LineField; 18] = LogField::USUAL;

/// All that a line can say.
struct Said<'a> {
    text: &'a RequestText,
    ending: &'a Ending<'a>,
    stamp: &'a Stamp,
}

/// The value of a field.
enum Value<'a> {
    /// There is none.
    Absent,
    Number(u64),
    /// Needs no escaping.
    Word(&'a str),
    /// From a client, or from the configuration.
    Text(&'a [u8]),
    Time,
    TimeCommon,
    Peer,
    Origin(&'a OriginPart<'a>),
}

impl<'a> Said<'a> {
    fn known(&self, field: LogField) -> Value<'a> {
        let Self { text, ending, .. } = self;
        let number = |value: Option<u64>| value.map_or(Value::Absent, Value::Number);
        match field {
            LogField::Time => Value::Time,
            LogField::TimeCommon => Value::TimeCommon,
            LogField::Peer => Value::Peer,
            LogField::User => ending.user.map_or(Value::Absent, |user| Value::Text(user.as_bytes())),
            LogField::Site => Value::Text(ending.site.as_bytes()),
            LogField::Host => Value::Text(text.host()),
            LogField::Request => Value::Text(text.line()),
            LogField::Method => Value::Text(text.word(0)),
            LogField::Target => Value::Text(text.word(1)),
            LogField::Protocol => Value::Text(text.word(2)),
            LogField::Status => Value::Number(ending.status.into()),
            LogField::BodyBytes => Value::Number(ending.body_bytes),
            LogField::DurationUs => Value::Number(ending.duration_us),
            LogField::FirstByteUs => number(ending.first_byte_us),
            LogField::UpstreamUs => number(ending.upstream_us),
            LogField::Outcome => Value::Word(ending.outcome.word()),
            LogField::Cache => ending.cache.map_or(Value::Absent, Value::Word),
            LogField::Transport => {
                ending.transport.map_or(Value::Absent, |transport| Value::Word(transport.word()))
            }
            LogField::Origin => ending.origin.as_ref().map_or(Value::Absent, Value::Origin),
            LogField::RequestId => ending.request_id.map_or(Value::Absent, Value::Word),
            LogField::TraceId => ending.trace_id.map_or(Value::Absent, Value::Word),
            LogField::Referer => Value::Text(text.referer()),
            LogField::UserAgent => Value::Text(text.agent()),
        }
    }

    /// The values of fields, in their order.
    fn values<'f>(&self, fields: &'f [LineField]) -> impl Iterator<Item = (&'f LineField, Value<'a>)> {
        let mut of_request = self.text.of_request();
        let mut of_response = self.text.of_response();
        fields.iter().map(move |field| {
            let value = match field {
                LineField::Known(known) => self.known(*known),
                LineField::OfRequest(_) => of_request.next().flatten().map_or(Value::Absent, Value::Text),
                LineField::OfResponse(_) => of_response.next().flatten().map_or(Value::Absent, Value::Text),
            };
            (field, value)
        })
    }

    /// Apache's and nginx's `combined`: the tools that read theirs read ours.
    fn push_combined(&self, out: &mut Vec<u8>, more: &[LineField]) {
        let Self { text, ending, .. } = self;
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
        time_common(out, self.stamp);
        out.extend_from_slice(b"] \"");
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
            out.push(b' ');
            quoted(out, field);
        }
        for (field, value) in self.values(more) {
            // Writing to a `Vec` does not fail.
            let _ = write!(out, " {field}=");
            match value {
                Value::Text(text) => quoted(out, text),
                Value::Origin(part) => quoted(out, part.name.as_bytes()),
                Value::TimeCommon => {
                    out.push(b'"');
                    self.push_plain(out, value);
                    out.push(b'"');
                }
                _ => self.push_plain(out, value),
            }
        }
        out.push(b'\n');
    }

    /// The operator's own texts, with values between them as they are in `combined`, but without quotes of their own.
    fn push_own(&self, out: &mut Vec<u8>, texts: &[Box<str>], fields: &[LineField]) {
        debug_assert_eq!(
            texts.len(),
            fields.len() + 1,
            "a text is in front of each field, and one behind all"
        );
        let mut texts = texts.iter();
        let mut text = |out: &mut Vec<u8>| {
            texts.next().into_iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
        };
        for (_, value) in self.values(fields) {
            text(out);
            self.push_plain(out, value);
        }
        text(out);
        out.push(b'\n');
    }

    fn push_plain(&self, out: &mut Vec<u8>, value: Value<'_>) {
        match value {
            Value::Absent | Value::Text(b"") => out.push(b'-'),
            Value::Number(value) => number(out, value),
            Value::Word(word) => out.extend_from_slice(word.as_bytes()),
            Value::Text(text) => escaped(out, text, combined_escape),
            Value::Time => out.extend_from_slice(&utc_bytes(self.ending.ended_unix_ms)),
            Value::TimeCommon => time_common(out, self.stamp),
            Value::Peer => peer(out, self.ending),
            Value::Origin(part) => escaped(out, part.name.as_bytes(), combined_escape),
        }
    }

    /// A JSON object; bytes that are not ASCII are shown as the Latin-1 characters of the same number.
    fn push_json(&self, out: &mut Vec<u8>, fields: &[LineField]) {
        out.push(b'{');
        let start = out.len();
        for (field, value) in self.values(fields) {
            if matches!(value, Value::Absent) {
                continue;
            }
            if out.len() > start {
                out.push(b',');
            }
            // Writing to a `Vec` does not fail; a name is a token, which needs no escape.
            let _ = write!(out, "\"{field}\":");
            match value {
                Value::Absent => {}
                Value::Number(value) => number(out, value),
                Value::Word(word) => json_text(out, word.as_bytes()),
                Value::Text(text) => json_text(out, text),
                Value::Time | Value::TimeCommon | Value::Peer => {
                    out.push(b'"');
                    self.push_plain(out, value);
                    out.push(b'"');
                }
                Value::Origin(part) => origin(out, part),
            }
        }
        out.extend_from_slice(b"}\n");
    }
}

fn origin(out: &mut Vec<u8>, part: &OriginPart<'_>) {
    out.extend_from_slice(b"{\"name\":");
    json_text(out, part.name.as_bytes());
    if let Some((node, choice)) = part.node.zip(part.trail.choice) {
        out.extend_from_slice(b",\"node\":");
        json_text(out, node.as_bytes());
        // Writing to a `Vec` does not fail.
        let _ = write!(out, ",\"way\":\"{}\",\"why\":\"{}\"", choice.way.word(), choice.why);
        if choice.key != ChoiceKey::Path {
            let _ = write!(out, ",\"key\":\"{}\"", choice.key);
        }
    }
    out.extend_from_slice(b",\"tries\":");
    number(out, part.trail.tries.into());
    // The gateway counts milliseconds; a log has one unit for all times.
    let times = [("connect_us", part.trail.connect_ms), ("head_us", part.trail.head_ms)];
    for (name, ms) in times.into_iter().filter_map(|(name, ms)| Some((name, ms?))) {
        // Writing to a `Vec` does not fail.
        let _ = write!(out, ",\"{name}\":{}", ms * 1000);
    }
    if let Some(why) = part.failure {
        let _ = write!(out, ",\"failure\":\"{why}\"");
    }
    out.push(b'}');
}

/// `06/Nov/1994:08:49:37 +0000`: all of it is in `Sun, 06 Nov 1994 08:49:37 GMT`.
fn time_common(out: &mut Vec<u8>, stamp: &Stamp) {
    let date = &stamp.date;
    for part in [&date[5..7], b"/", &date[8..11], b"/", &date[12..16], b":", &date[17..25], b" +0000"] {
        out.extend_from_slice(part);
    }
}

fn quoted(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    if text.is_empty() {
        out.push(b'-');
    } else {
        escaped(out, text, combined_escape);
    }
    out.push(b'"');
}

fn json_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(b'"');
    escaped(out, text, json_escape);
    out.push(b'"');
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
    use baton_http::{HeadLimits, RequestHead};
    use baton_upstream::{Choice, Way};

    use super::*;

    const COMBINED: LineFormat = LineFormat { format: LogFormat::Combined, fields: None };
    const JSON: LineFormat = LineFormat { format: LogFormat::Json, fields: None };

    fn text(line: &[u8], referer: &[u8], agent: &[u8]) -> RequestText {
        let mut text = RequestText::default();
        text.fill(line, Some("a.example"), Some(referer), Some(agent));
        text
    }

    fn ending() -> Ending<'static> {
        Ending {
            peer: Some("192.0.2.7:4711".parse().unwrap()),
            user: None,
            site: "museum",
            status: 200,
            body_bytes: 1024,
            duration_us: 3_456,
            first_byte_us: Some(1_234),
            upstream_us: None,
            request_id: Some("id-1"),
            trace_id: None,
            ended_unix_ms: 784_111_777_123,
            outcome: Outcome::Complete,
            cache: None,
            transport: Some(AnswerTransport::DeclinedCompression),
            origin: None,
        }
    }

    #[test]
    fn an_origin_has_its_own_part() {
        let choice = Some(Choice { why: "mapped", way: Way::Relay, key: ChoiceKey::Own(7) });
        let trail = Trail { tries: 2, connect_ms: Some(1), head_ms: None, choice };
        let origin =
            OriginPart { name: "http://a:1/\"", node: Some("a"), trail, failure: Some("ended-early") };
        let ending = Ending { origin: Some(origin), outcome: Outcome::OriginFailed, ..ending() };
        let mut out = Vec::new();
        JSON.push(&mut out, &text(b"GET / HTTP/1.1", b"", b""), &ending, &Stamp::at(0));
        let object: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let expected = serde_json::json!({
            "name": "http://a:1/\"", "node": "a", "way": "relay", "why": "mapped", "key": "0000000000000007", "tries": 2, "connect_us": 1000, "failure": "ended-early"
        });
        assert_eq!(object["origin"], expected);
        assert_eq!(object["outcome"], "origin-failed");
    }

    #[test]
    fn combined_as_other_servers_write_it() {
        let mut out = Vec::new();
        let now = Stamp::at(784_111_777);
        COMBINED.push(&mut out, &text(b"GET /a HTTP/1.1", b"", b"curl/8"), &ending(), &now);
        let expected =
            "192.0.2.7 - - [06/Nov/1994:08:49:37 +0000] \"GET /a HTTP/1.1\" 200 1024 \"-\" \"curl/8\"\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn the_user_is_one_field() {
        let ending = Ending { user: Some("ada \"l\" [x]"), ..ending() };
        let (mut line, mut object) = (Vec::new(), Vec::new());
        COMBINED.push(&mut line, &text(b"GET / HTTP/1.1", b"", b""), &ending, &Stamp::at(0));
        assert!(line.starts_with(br"192.0.2.7 - ada\x20\x22l\x22\x20[x] [01/Jan"), "{}", line.escape_ascii());
        JSON.push(&mut object, &text(b"GET / HTTP/1.1", b"", b""), &ending, &Stamp::at(0));
        let object: serde_json::Value = serde_json::from_slice(&object).unwrap();
        assert_eq!((&object["user"], &object["site"]), (&"ada \"l\" [x]".into(), &"museum".into()));
    }

    /// Nothing that a client sends can forge a line or break out of its quotes.
    #[test]
    fn what_clients_send_is_escaped() {
        let nasty = b"GET /\"\\\n\x1b[31m\xff HTTP/1.1";
        let mut out = Vec::new();
        COMBINED.push(&mut out, &text(nasty, b"\"", b"\r\n"), &ending(), &Stamp::at(0));
        let line = String::from_utf8(out).unwrap();
        assert!(line.contains(r#""GET /\x22\x5C\x0A\x1B[31m\xFF HTTP/1.1""#), "{line}");
        assert_eq!(line.matches('\n').count(), 1);

        let mut out = Vec::new();
        JSON.push(&mut out, &text(nasty, b"\"", b"\r\n"), &ending(), &Stamp::at(0));
        let object: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(object["request"], "GET /\"\\\n\u{1b}[31m\u{ff} HTTP/1.1");
        assert_eq!(object["outcome"], "complete");
    }

    /// Fields that the request lacks are absent, others are where the user wants them.
    #[test]
    fn fields_of_the_request_are_in_their_places() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\nX-B: \"b\\\r\nx-a: one\r\nX-A: two\r\nX-Empty:\r\n\r\n";
        let head = RequestHead::parse(head, &HeadLimits::default()).unwrap();
        let names = ["X-A", "X-None", "X-Empty", "X-B"];
        let mut fields: Vec<_> = names.map(|name| LineField::OfRequest(name.into())).into();
        fields.insert(1, LineField::Known(LogField::Status));
        let line = |format: LogFormat| {
            let format = LineFormat { format, fields: Some(fields.clone().into()) };
            let mut text = text(head.line, b"", b"");
            text.keep(format.of_request(), &head);
            let mut out = Vec::new();
            format.push(&mut out, &text, &ending(), &Stamp::at(0));
            String::from_utf8(out).unwrap()
        };
        let expected = r#"{"request_header.X-A":"one, two","status":200,"request_header.X-Empty":"","request_header.X-B":"\"b\\"}"#;
        assert_eq!(line(LogFormat::Json).trim_end(), expected);
        let expected = r#" request_header.X-A="one, two" status=200 request_header.X-None=- request_header.X-Empty="-" request_header.X-B="\x22b\x5C""#;
        assert!(line(LogFormat::Combined).trim_end().ends_with(expected), "{}", line(LogFormat::Combined));
    }

    /// Goal: a format of one's own says what it says, and no client breaks out of it. Method: texts and fields of each kind,
    /// those that are absent too.
    #[test]
    fn an_own_format_has_fields_between_its_texts() {
        let texts = ["", " [", "] \"", "\" ", " ", "|", ""].map(Into::into);
        let fields = [
            LineField::Known(LogField::Time),
            LineField::Known(LogField::TimeCommon),
            LineField::Known(LogField::Request),
            LineField::OfRequest("X-A".into()),
            LineField::Known(LogField::UpstreamUs),
            LineField::OfResponse("ETag".into()),
        ];
        let format = LineFormat { format: LogFormat::Own(texts.into()), fields: Some(fields.into()) };
        let head = b"GET /\" HTTP/1.1\r\nHost: a\r\nX-A: \xff\r\n\r\n";
        let head = RequestHead::parse(head, &HeadLimits::default()).unwrap();
        let mut text = text(b"GET /\" HTTP/1.1", b"", b"");
        text.keep(format.of_request(), &head);
        text.keep_response(format.of_response(), b"ETag: \"a\"\r\n");
        let mut out = Vec::new();
        format.push(&mut out, &text, &ending(), &Stamp::at(784_111_777));
        let expected = concat!(
            r#"1994-11-06T08:49:37.123Z [06/Nov/1994:08:49:37 +0000] "GET /\x22 HTTP/1.1" \xFF -|\x22a\x22"#,
            "\n"
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// However long a field is, its line is not.
    #[test]
    fn fields_of_the_request_are_bounded() {
        let long = "x".repeat(10_000);
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX-A: {long}\r\nX-A: more\r\nX-B: b\r\n\r\n");
        let head = RequestHead::parse(head.as_bytes(), &HeadLimits::default()).unwrap();
        let mut text = text(head.line, b"", b"");
        text.keep(["X-A", "X-B"].into_iter(), &head);
        let kept: Vec<_> = text.of_request().map(|value| value.map(<[u8]>::len)).collect();
        assert_eq!(kept, [Some(1024), Some(1)]);
        text.fill(head.line, None, None, None);
        assert_eq!(text.of_request().count(), 0, "of the next request, nothing");
    }

    /// The user's fields, in the user's order; `combined` has them behind its own, absent ones too.
    #[test]
    fn lines_say_what_the_user_chose() {
        let fields = [
            LogField::DurationUs,
            LogField::UpstreamUs,
            LogField::FirstByteUs,
            LogField::Method,
            LogField::Target,
            LogField::Protocol,
            LogField::Host,
        ];
        let line = |format: LogFormat| {
            let mut out = Vec::new();
            let fields = fields.map(LineField::Known);
            let format = LineFormat { format, fields: Some(fields.into()) };
            format.push(&mut out, &text(b"GET /a HTTP/1.1", b"", b""), &ending(), &Stamp::at(0));
            String::from_utf8(out).unwrap()
        };
        let expected = "{\"duration_us\":3456,\"first_byte_us\":1234,\"method\":\"GET\",\"target\":\"/a\",\
                        \"protocol\":\"HTTP/1.1\",\"host\":\"a.example\"}\n";
        assert_eq!(line(LogFormat::Json), expected);
        let expected = " \"-\" \"-\" duration_us=3456 upstream_us=- first_byte_us=1234 method=\"GET\" target=\"/a\" \
                        protocol=\"HTTP/1.1\" host=\"a.example\"\n";
        assert!(line(LogFormat::Combined).ends_with(expected), "{}", line(LogFormat::Combined));
    }
}
