//! The head of a CGI response (RFC 3875 section 6): what an application writes before its body.
//!
//! [`HeadReader`] finds its end in a stream, [`CgiHead`] parses it, and becomes an HTTP head by
//! [`push_http_head`](CgiHead::push_http_head).

mod bad_head;
mod reader;

pub use bad_head::BadHead;
pub use reader::{HeadReader, HeadStep, find_end};

use baton_http::response::{Client, Framing, push_head_of_fields};
use baton_http::{Status, field_name_is_safe, field_value_is_safe, parse_decimal};

use crate::text::trim_blanks;
use crate::zero_copy::NameMap;

/// The longest head in bytes, its blank line included, unless the server is told otherwise.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// What an application asks the server to do for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Nothing.
    None,
    /// Answer as if the client had requested this path and query (RFC 3875 section 6.2.2).
    LocalRedirect(Box<[u8]>),
    /// The body names files: `X-ZeroCopy`.
    ZeroCopy(NameMap),
    /// Answer with the file at this path: `X-Sendfile`.
    SendFile(Box<[u8]>),
    /// Answer with the content of this path within the site: `X-Accel-Redirect`.
    AccelRedirect(Box<[u8]>),
}

/// A head that was checked: it can be made into an HTTP head that everyone reads alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgiHead {
    /// Complete lines, and a final blank line.
    text: Vec<u8>,
    status: u16,
    content_length: Option<u64>,
    instruction: Instruction,
}

impl CgiHead {
    /// Judges a head: complete lines, which end with LF or CR LF, and the blank line that ends it. Without that line
    /// the program broke off, and a field may be missing. A status line of HTTP in front is taken for a `Status`. The
    /// reader bounds its length.
    ///
    /// # Errors
    /// Why no client should see it.
    pub fn parse(mut text: Vec<u8>) -> Result<Self, BadHead> {
        if text.is_empty() {
            return Err(BadHead::Empty);
        }
        if !ends_with_blank_line(&text) {
            return Err(BadHead::Incomplete);
        }
        name_status_line(&mut text);
        let mut known = Known::default();
        for line in lines(&text) {
            let (name, value) = split_line(line).ok_or(BadHead::NotAField)?;
            if !field_name_is_safe(name) {
                return Err(BadHead::Name);
            }
            if !field_value_is_safe(value) {
                return Err(BadHead::Value);
            }
            known.note(name, value)?;
        }
        if lines(&text).next().is_none() {
            return Err(BadHead::Empty);
        }
        let status = match known.status {
            Some(value) => split_status(value).ok_or(BadHead::Status)?.0,
            None if known.location.is_some() => FOUND,
            None => OK,
        };
        let (content_length, has_empty_type) = (known.content_length, known.has_empty_type);
        let instruction = known.instruction();
        if has_empty_type {
            text = without_empty_type(&text);
        }
        Ok(Self { text, status, content_length, instruction })
    }

    /// The application's status, 200 to 999; without one, 302 if there is a location, else 200.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The reason phrase: the application's if it gave a status, possibly empty (RFC 9112 section 4).
    pub fn reason(&self) -> &[u8] {
        match self.field("Status").and_then(split_status) {
            Some((_, reason)) => reason,
            None if self.status == FOUND => b"Found",
            None => b"OK",
        }
    }

    /// The length of the body in bytes, if the application gives it.
    pub const fn content_length(&self) -> Option<u64> {
        self.content_length
    }

    /// The application's instruction to the server.
    pub const fn instruction(&self) -> &Instruction {
        &self.instruction
    }

    /// All fields in order, blanks around the values removed.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        lines(&self.text).filter_map(split_line)
    }

    /// The value of the first field with this name, in any case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|field| field.0.eq_ignore_ascii_case(name.as_bytes())).map(|field| field.1)
    }

    /// The fields for the client: without those for the server, those of the connection, and Date, Server and
    /// Content-Length, which the sender of the response adds.
    pub fn forwarded(&self) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
        self.fields().filter(|(name, _)| !is_kept_back(name))
    }

    /// How the client learns where the body ends. `body_len`: its length in bytes, if all of it is known.
    pub const fn framing(&self, body_len: Option<u64>, client: Client) -> Framing {
        Framing::of(self.status, self.content_length, body_len, client)
    }

    /// Appends the HTTP head, its blank line included, with the fields of an [offer](crate::offer::Offer::fields).
    pub fn push_http_head(&self, out: &mut Vec<u8>, framing: Framing, client: Client, offer_fields: &[u8]) {
        let line = (Status::new(self.status), self.reason());
        push_head_of_fields(out, line, self.forwarded(), framing, client, offer_fields);
    }

    /// Takes the head apart: the lines, whose memory it gives up, and the instruction.
    pub fn into_parts(self) -> (Vec<u8>, Instruction) {
        (self.text, self.instruction)
    }

    /// Gives the memory back, for [`HeadReader::with_buffer`].
    pub fn into_buffer(self) -> Vec<u8> {
        self.text
    }
}

/// The fields that decide something.
#[derive(Default)]
struct Known<'a> {
    status: Option<&'a [u8]>,
    location: Option<&'a [u8]>,
    content_length: Option<u64>,
    has_empty_type: bool,
    asked: Option<Instruction>,
}

impl<'a> Known<'a> {
    fn note(&mut self, name: &[u8], value: &'a [u8]) -> Result<(), BadHead> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            6 if is("Status") => set_once(&mut self.status, value, BadHead::Status),
            8 if is("Location") => set_once(&mut self.location, value, BadHead::Location),
            10 if is("X-Sendfile") => self.ask(Instruction::SendFile(path(value)?)),
            10 if is("X-ZeroCopy") => {
                self.ask(Instruction::ZeroCopy(NameMap::parse(value).ok_or(BadHead::Instruction)?))
            }
            12 if is("Content-Type") => {
                self.has_empty_type |= value.is_empty();
                Ok(())
            }
            14 if is("Content-Length") => {
                let length = parse_decimal(value).ok_or(BadHead::Length)?;
                match self.content_length.replace(length) {
                    Some(other) if other != length => Err(BadHead::Length),
                    _ => Ok(()),
                }
            }
            16 if is("X-Accel-Redirect") => self.ask(Instruction::AccelRedirect(path(value)?)),
            _ => Ok(()),
        }
    }

    /// Two instructions would mean one of them not followed.
    fn ask(&mut self, instruction: Instruction) -> Result<(), BadHead> {
        set_once(&mut self.asked, instruction, BadHead::Instruction)
    }

    fn instruction(self) -> Instruction {
        match (self.asked, self.status, self.location) {
            (Some(instruction), _, _) => instruction,
            // Two slashes begin an authority: another host, which is the client's business.
            (None, None, Some(location)) if location.starts_with(b"/") && !location.starts_with(b"//") => {
                Instruction::LocalRedirect(location.into())
            }
            _ => Instruction::None,
        }
    }
}

/// Turns a leading status line (RFC 9112 section 4) of `nph-` programs into a `Status` field. Its version is ignored.
fn name_status_line(text: &mut [u8]) {
    if let [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9', b' ', ..] = text {
        text[..STATUS.len()].copy_from_slice(STATUS);
    }
}

/// A head without the lines of an empty Content-Type, which is none (RFC 9110 section 8.3): a client would take the body for
/// something else than where it finds no type.
fn without_empty_type(text: &[u8]) -> Vec<u8> {
    let is_empty_type = |line: &[u8]| {
        split_line(line.trim_ascii_end())
            .is_some_and(|(name, value)| name.eq_ignore_ascii_case(b"Content-Type") && value.is_empty())
    };
    text.split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !is_empty_type(line))
        .flatten()
        .copied()
        .collect()
}

/// The field's name, padded to the length of a version and a blank.
const STATUS: &[u8; 9] = b"Status:  ";

/// A path that names something.
fn path(value: &[u8]) -> Result<Box<[u8]>, BadHead> {
    if value.is_empty() { Err(BadHead::Instruction) } else { Ok(value.into()) }
}

fn set_once<T>(slot: &mut Option<T>, value: T, twice: BadHead) -> Result<(), BadHead> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(twice),
    }
}

/// Code and phrase of a Status field. A code below 200 would be no answer: the client would go on waiting, and
/// take the next response for this one.
fn split_status(value: &[u8]) -> Option<(u16, &[u8])> {
    let (code, rest) = value.split_at_checked(3)?;
    let code = parse_decimal(code).filter(|code| *code >= 200)? as u16;
    match rest {
        [] => Some((code, rest)),
        [b' ' | b'\t', ..] => Some((code, trim_blanks(rest))),
        _ => None,
    }
}

fn ends_with_blank_line(text: &[u8]) -> bool {
    let line =
        |text: &'_ [u8]| text.strip_suffix(b"\n").map(|line| line.strip_suffix(b"\r").unwrap_or(line).len());
    line(text).is_some_and(|before| before == 0 || text[before - 1] == b'\n')
}

/// The lines up to a blank one, without their ends.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let line = &rest[..end];
        rest = &rest[end + 1..];
        Some(line.strip_suffix(b"\r").unwrap_or(line)).filter(|line| !line.is_empty())
    })
}

/// Name and value of a line. A blank before the colon is refused: recipients differ on whether it is a field.
fn split_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    Some((&line[..colon], trim_blanks(&line[colon + 1..])))
}

/// Whether a field of this name is not for the client: see [`CgiHead::forwarded`].
pub fn is_kept_back(name: &[u8]) -> bool {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    // Lengths tell most names apart.
    let is_known = match name.len() {
        2 => is("TE"),
        4 => is("Date"),
        6 => is("Status") || is("Server"),
        7 => is("Trailer") || is("Upgrade"),
        10 => is("Connection") || is("Keep-Alive") || is("X-Sendfile") || is("X-ZeroCopy"),
        14 => is("Content-Length"),
        16 => is("Proxy-Connection"),
        17 => is("Transfer-Encoding"),
        _ => false,
    };
    // nginx's words to itself: X-Accel-Redirect, -Buffering, -Expires, -Charset, -Limit-Rate.
    is_known || name.get(..ACCEL.len()).is_some_and(|start| start.eq_ignore_ascii_case(ACCEL))
}

const ACCEL: &[u8] = b"X-Accel-";
const OK: u16 = 200;
const FOUND: u16 = 302;
