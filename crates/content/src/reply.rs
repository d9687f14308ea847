//! Ready-made heads, kept up to date.
//!
//! Flash keeps the head of each reply with the file that it announces. Only its `Date` ages: once per second it is
//! overwritten in place, which IO-Lite allows for an unshared buffer; a shared one is copied.

use std::convert::Infallible;

use baton_buf::{Buffer, Piece, Slice};
use baton_http::h2::encode_response_head;
use baton_http::{ETag, ReplyHead, Stamp, Status};

/// The form of a head: the protocol, and what it says about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadForm {
    /// Lines; the connection persists, the default of HTTP/1.1.
    KeepAlive,
    /// Lines; it does not: `Connection: close`.
    Close,
    /// Lines; it persists, which HTTP/1.0 must say: `Connection: keep-alive`.
    KeepAliveHttp10,
    /// A header block of HTTP/2 that refers to no table of a connection.
    Http2,
}

impl HeadForm {
    /// Number of variants, which index arrays as `form as usize`.
    pub(crate) const COUNT: usize = 4;

    /// Value of the `Connection` field; `None`: it has none.
    pub fn connection_field(self) -> Option<&'static str> {
        match self {
            Self::KeepAlive | Self::Http2 => None,
            Self::Close => Some("close"),
            Self::KeepAliveHttp10 => Some("keep-alive"),
        }
    }
}

/// From where a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodySource {
    /// From the server's memory, together with its head: `send`.
    Memory,
    /// From the page cache: `sendfile`.
    File,
}

/// The reply to a plain GET: 200, and the whole file.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The head; for a file in memory and [`HeadForm::KeepAlive`] the body too, in the same buffer.
    pub first: Slice,
    /// How many bytes of `first` are the head: all that the reply to a HEAD has.
    pub head_len: usize,
    /// What of the body is not in `first`.
    pub rest: Option<Piece>,
}

/// What heads are made of, besides the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadParts<'a> {
    pub(crate) server_header: bool,
    pub(crate) content_length: u64,
    /// Complete lines.
    pub(crate) fields: &'a [u8],
}

impl HeadParts<'_> {
    /// Appends the lines of the head. Returns where its date stands.
    fn push(&self, out: &mut Vec<u8>, form: HeadForm, now: &Stamp) -> usize {
        let mut head = ReplyHead::begin(out, Status::OK);
        if self.server_header {
            head.field("Server", "baton");
        }
        let date_at = head.date(now);
        if let Some(value) = form.connection_field() {
            head.field("Connection", value);
        }
        head.number("Content-Length", self.content_length);
        head.raw(self.fields);
        head.end();
        date_at
    }
}

/// Appends the lines by which clients know a file again.
pub(crate) fn push_validators(fields: &mut Vec<u8>, modified_unix_seconds: Option<u64>, etag: ETag) {
    let mut push = |name: &[u8], value: &[u8]| fields.extend([name, value, b"\r\n"].into_iter().flatten());
    if let Some(modified) = modified_unix_seconds {
        push(b"Last-Modified: ", &Stamp::at(modified).date);
    }
    push(b"ETag: ", etag.as_ref());
}

/// The line of files of which clients may have parts.
pub(crate) const ACCEPT_RANGES: &[u8] = b"Accept-Ranges: bytes\r\n";

/// Bytes that begin with the head of a reply.
#[derive(Debug)]
pub(crate) struct Ready {
    buffer: Buffer,
    head_len: usize,
    date_at: usize,
    /// The second that the `Date` says.
    unix_seconds: u64,
}

impl Ready {
    /// A head alone.
    pub(crate) fn head(parts: HeadParts<'_>, form: HeadForm, now: &Stamp) -> Self {
        let Ok(ready) = Self::with_body(parts, form, now, 0, |_| Ok::<_, Infallible>(()));
        ready
    }

    /// A head; its buffer has room for `body_len` more bytes, which `fill` puts there.
    pub(crate) fn with_body<E>(
        parts: HeadParts<'_>,
        form: HeadForm,
        now: &Stamp,
        body_len: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES_USUAL + parts.fields.len() + body_len);
        let date_at = match form {
            HeadForm::Http2 => {
                let mut lines = Vec::with_capacity(HEAD_BYTES_USUAL + parts.fields.len());
                parts.push(&mut lines, form, now);
                encode_response_head(&lines, &mut bytes).expect("these lines have a date")
            }
            _ => parts.push(&mut bytes, form, now),
        };
        let head_len = bytes.len();
        bytes.resize(head_len + body_len, 0);
        fill(&mut bytes[head_len..])?;
        Ok(Self { buffer: Buffer::new(bytes), head_len, date_at, unix_seconds: now.unix_seconds })
    }

    /// A head, and a body that is there.
    pub(crate) fn before(parts: HeadParts<'_>, form: HeadForm, now: &Stamp, body: &[u8]) -> Self {
        let fill = |room: &mut [u8]| {
            room.copy_from_slice(body);
            Ok::<_, Infallible>(())
        };
        let Ok(ready) = Self::with_body(parts, form, now, body.len(), fill);
        ready
    }

    pub(crate) fn head_len(&self) -> usize {
        self.head_len
    }

    /// All bytes, with the `Date` of now.
    pub(crate) fn at(&mut self, now: &Stamp) -> Slice {
        if self.unix_seconds != now.unix_seconds {
            let date = self.date_at..self.date_at + now.date.len();
            match self.buffer.get_mut() {
                Some(bytes) => bytes[date].copy_from_slice(&now.date),
                None => {
                    let mut bytes = self.buffer.to_vec();
                    bytes[date].copy_from_slice(&now.date);
                    self.buffer = Buffer::new(bytes);
                }
            }
            self.unix_seconds = now.unix_seconds;
        }
        self.buffer.clone().into()
    }

    /// The bytes `first..first + len` after the head.
    pub(crate) fn body(&self, first: usize, len: usize) -> Slice {
        let start = self.head_len + first;
        self.buffer.slice(start, start + len)
    }
}

/// Status line, `Server`, `Date`, `Connection`, `Content-Length` and the blank line, rounded up.
const HEAD_BYTES_USUAL: usize = 192;
