//! The parts of an answer that every server must give equally.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::client::Response;

/// An answer without the parts that depend on server, time and client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) status: u16,
    /// Sorted: the order of different names means nothing (RFC 9110, section 5.3).
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// Fields of the server and the connection. Framing by length or chunks is equivalent, and the reader checks it.
const NOT_OF_THE_ANSWER: [&str; 6] =
    ["date", "server", "connection", "keep-alive", "transfer-encoding", "content-length"];

/// More recent times were made by a test, or expire a cookie.
const RECENT_S: u64 = 3 * 86_400;

impl Seen {
    /// `secrets`: what in fields and bodies is this visitor's only.
    pub(crate) fn of(answer: &Response, secrets: &[String]) -> Self {
        let is_text = answer.field("content-type").is_some_and(|kind| kind.starts_with("text/html"));
        let mut fields: Vec<_> = answer
            .fields
            .iter()
            .filter(|(name, _)| !NOT_OF_THE_ANSWER.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), same_field(value, secrets)))
            .collect();
        fields.sort();
        let body =
            if is_text { same_for_all(answer.text(), secrets).into_bytes() } else { answer.body.clone() };
        Self { status: answer.status, fields, body }
    }

    /// For the server's own answers, files and errors, whose texts may differ.
    pub(crate) fn of_server(answer: &Response) -> Self {
        let kind = answer.field("content-type").and_then(|kind| kind.split(';').next());
        let field = |name: &str, value: Option<&str>| (name.to_owned(), value.unwrap_or_default().to_owned());
        let (date, body) = match answer.status {
            200 => (answer.field("last-modified"), answer.body.clone()),
            _ => (None, Vec::new()),
        };
        let fields = vec![field("content-type", kind), field("last-modified", date)];
        Self { status: answer.status, fields, body }
    }

    /// Leaves out a field that another answer does not have.
    pub(crate) fn forget_fields_beyond(&mut self, other: &Self, name: &str) {
        if !other.fields.iter().any(|(field, _)| field == name) {
            self.fields.retain(|(field, _)| field != name);
        }
    }

    /// Fails if this is not the same, and says where it begins to differ.
    #[track_caller]
    pub(crate) fn expect(&self, expected: &Self, what: &str) {
        assert_eq!((self.status, &self.fields), (expected.status, &expected.fields), "{what}");
        if self.body == expected.body {
            return;
        }
        let pairs = expected.body.iter().zip(&self.body);
        let at = pairs.take_while(|(one, other)| one == other).count();
        let around = |body: &[u8]| {
            let part = &body[at.saturating_sub(100)..body.len().min(at + 200)];
            String::from_utf8_lossy(part).into_owned()
        };
        panic!("{what}: from byte {at} on, {:?} is {:?}", around(&expected.body), around(&self.body));
    }
}

/// The value of a field whose attributes, as those of a cookie, may end with a time of day.
fn same_field(value: &str, secrets: &[String]) -> String {
    let attribute = |attribute: &str| match attribute.split_once('=') {
        Some((name, value)) => format!("{name}={}", same_for_all(value, secrets)),
        None => same_for_all(attribute, secrets),
    };
    value.split("; ").map(attribute).collect::<Vec<_>>().join("; ")
}

/// A text in which secrets, hashes and the time of day are replaced.
fn same_for_all(text: &str, secrets: &[String]) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
    if baton_http::parse_date(text.as_bytes()).is_some_and(|time| time.abs_diff(now) < RECENT_S) {
        return "(now)".into();
    }
    let text = secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "(secret)"));
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while !rest.is_empty() {
        let is_word = |letter: char| letter.is_ascii_alphanumeric();
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let is_hash = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_now = word.len() == 10 && word.parse().is_ok_and(|time: u64| time.abs_diff(now) < RECENT_S);
        out.push_str(if is_hash {
            "(hash)"
        } else if is_now {
            "(now)"
        } else {
            word
        });
        let start = behind.find(is_word).unwrap_or(behind.len());
        out.push_str(&behind[..start]);
        rest = &behind[start..];
    }
    out
}
