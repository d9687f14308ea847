//! The response on the client's own socket (`docs/handover-protocol.md`, section 4): reads the head of the
//! application, makes an HTTP message of it, and hands the rest back when the client is slow.

use std::io::IoSlice;

use baton_fcgi::application::{push_answered, push_rest};
use baton_fcgi::cgi::{CgiHead, Instruction, find_end};
use baton_fcgi::offer::Offer;
use baton_fcgi::{AnswerOutcome, Answered, Declined, Rest, offer};
use baton_http::response::{CodedFor, Edits, Framing, LAST_CHUNK, push_chunk_head};

use super::reasons::{Ended, Why};
use super::records::write_stdout;
use crate::client::{Client, Stopped};
use crate::link::{Link, write_all};

/// A response that was offered the client's socket.
#[derive(Debug)]
pub(super) struct PassedSocket {
    stage: Stage,
    /// The client and the fields of the offer.
    about: offer::Client,
    holds: bool,
    fields: Vec<u8>,
    /// The head as on the wire, until it is sent.
    head: Vec<u8>,
    framing: Framing,
    status: u16,
    /// Whether the application's body is sent: not for `HEAD`, 204, 205 and 304.
    has_body: bool,
    /// Whether the last byte was written.
    ended: bool,
    /// With a length: bytes of the body that the application has still to write.
    body_left: u64,
    /// Bytes taken by the client's socket.
    head_sent: u64,
    body_sent: u64,
    /// Memory for the head of a chunk, and for reading heads.
    chunk_head: Vec<u8>,
    text: Vec<u8>,
}

/// Where the response is.
#[derive(Debug)]
enum Stage {
    /// There is none.
    Idle,
    /// The head of the application is not complete. So many bytes of it are known to hold no end.
    Head { client: Client, searched: usize },
    /// To the client.
    Client(Client),
    /// The rest goes to the server, as on the wire.
    HandedBack,
    /// The client is gone: dropped.
    Gone,
}

/// The result of sending output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// Sent.
    Sent,
    /// The head is incomplete: repeat with the same and more output.
    NeedsMore,
    /// The server must answer: all output goes there, from its first byte on.
    Declined(Declined),
}

impl Default for PassedSocket {
    fn default() -> Self {
        Self {
            stage: Stage::Idle,
            about: offer::Client { minor: 0, keep: false, head: false },
            holds: false,
            fields: Vec::new(),
            head: Vec::new(),
            framing: Framing::None,
            status: 0,
            has_body: false,
            ended: false,
            body_left: 0,
            head_sent: 0,
            body_sent: 0,
            chunk_head: Vec::new(),
            text: Vec::new(),
        }
    }
}

impl PassedSocket {
    /// A response to this client begins.
    pub(super) fn begin(&mut self, client: Client, about: offer::Client, offer: &Offer) {
        self.stage = Stage::Head { client, searched: 0 };
        (self.about, self.holds) = (about, offer.holds);
        self.fields.clear();
        self.fields.extend_from_slice(offer.fields);
        (self.head_sent, self.body_sent, self.ended) = (0, 0, false);
    }

    /// Sends the collected output and `data` after it. The head must be in the collected part.
    pub(super) fn push(
        &mut self,
        link: &mut dyn Link,
        request_id: u16,
        collected: &[u8],
        data: &[u8],
        why: Why,
    ) -> Result<Pushed, Ended> {
        let body_at = if let Stage::Head { searched, .. } = &mut self.stage {
            let Some(end) = find_end(collected, *searched) else {
                if collected.len() >= HEAD_BYTES_MAX || why.is_last() {
                    self.stage = Stage::Idle;
                    return Ok(Pushed::Declined(Declined::Head));
                }
                *searched = collected.len();
                return Ok(Pushed::NeedsMore);
            };
            let body_len = why.is_last().then(|| (collected.len() - end + data.len()) as u64);
            if let Err(why) = self.accept(&collected[..end], body_len) {
                self.stage = Stage::Idle;
                return Ok(Pushed::Declined(why));
            }
            end
        } else {
            0
        };
        self.deliver(link, request_id, &collected[body_at..], data, why)?;
        Ok(Pushed::Sent)
    }

    /// Whether the head in `collected` of an unsent response declares that head and body have at most `bytes`.
    pub(super) fn is_within(&self, collected: &[u8], bytes: u64) -> bool {
        let Stage::Head { searched, .. } = self.stage else { return false };
        let Some(end) = find_end(collected, searched) else { return false };
        let length = CgiHead::parse(collected[..end].to_vec()).ok().and_then(|head| head.content_length());
        length.is_some_and(|length| length <= bytes.saturating_sub(end as u64))
    }

    /// Parses the application's head, and builds that of the response, unless the server must act on it.
    fn accept(&mut self, text: &[u8], body_len: Option<u64>) -> Result<(), Declined> {
        let mut buffer = std::mem::take(&mut self.text);
        buffer.clear();
        buffer.extend_from_slice(text);
        let head = CgiHead::parse(buffer).map_err(|_| Declined::Head)?;
        if *head.instruction() != Instruction::None {
            return Err(Declined::Instruction);
        }
        let follows = body_len.filter(|_| !self.about.head);
        let length = head.content_length().or(follows);
        let terms = Edits::split(&self.fields).0.coding_terms();
        match terms.map(|terms| terms.judge(head.status(), head.fields(), length)) {
            Some(CodedFor::ThisOne) => return Err(Declined::Coded),
            Some(CodedFor::Others) => drop(self.fields.splice(0..0, VARIES.iter().copied())),
            Some(CodedFor::None) | None => {}
        }
        let Stage::Head { client, .. } = std::mem::replace(&mut self.stage, Stage::Idle) else {
            return Err(Declined::Head);
        };
        self.stage = Stage::Client(client);
        self.status = head.status();
        self.framing = head.framing(body_len, self.about);
        self.has_body = !self.about.head && self.framing != Framing::None;
        self.body_left = match self.framing {
            Framing::Length(length) if self.has_body => length,
            _ => 0,
        };
        self.head.clear();
        head.push_http_head(&mut self.head, self.framing, self.about, &self.fields);
        self.text = head.into_buffer();
        Ok(())
    }

    /// Frames a piece of the body, in two parts, and sends it to the client or the server.
    fn deliver(
        &mut self,
        link: &mut dyn Link,
        request_id: u16,
        mut collected: &[u8],
        mut data: &[u8],
        why: Why,
    ) -> Result<(), Ended> {
        if self.ended || !self.has_body {
            (collected, data) = (&[], &[]);
        } else if matches!(self.framing, Framing::Length(_)) {
            collected = within(collected, &mut self.body_left);
            data = within(data, &mut self.body_left);
        }
        let body_len = collected.len() + data.len();
        let chunked = self.framing == Framing::Chunked && self.has_body;
        self.chunk_head.clear();
        if chunked && body_len > 0 {
            push_chunk_head(&mut self.chunk_head, body_len as u64);
        }
        let ends = why.is_last() && !self.ended;
        self.ended |= ends;
        let tail = match (body_len > 0, ends) {
            _ if !chunked => &[],
            (true, true) => CHUNK_END_AND_LAST_CHUNK,
            (true, false) => CHUNK_END,
            (false, true) => LAST_CHUNK,
            (false, false) => &[],
        };
        // Only where something is sure to follow: nothing else would push out what waits for it.
        let more = match why {
            Why::Room => chunked || self.body_left > 0,
            Why::Last => self.holds,
            Why::Direct | Why::Flush | Why::LastOutput => false,
        };
        let pieces = [&self.head[..], &self.chunk_head, collected, data, tail];
        if pieces.iter().all(|piece| piece.is_empty()) {
            return Ok(());
        }
        let result = match &mut self.stage {
            Stage::Idle | Stage::Head { .. } => Ok(()),
            Stage::Gone => Err(Ended::ClientGone),
            Stage::HandedBack => {
                write_stdout(link.socket(), request_id, &pieces, &[]).map_err(Ended::ConnectionLost)
            }
            Stage::Client(client) => {
                let (taken, result) = if client.is_wanted_back(link) {
                    (0, Err(Stopped::HandBack))
                } else {
                    if more && ends && pieces.iter().map(|piece| piece.len()).sum::<usize>() > SEGMENT_BYTES {
                        client.cork();
                    }
                    client.send(link, &mut pieces.map(IoSlice::new), more)
                };
                let before_body = self.head.len() + self.chunk_head.len();
                self.head_sent += taken.min(self.head.len()) as u64;
                self.body_sent += taken.saturating_sub(before_body).min(body_len) as u64;
                match result {
                    Ok(()) => Ok(()),
                    Err(Stopped::Gone) => {
                        self.stage = Stage::Gone;
                        Err(Ended::ClientGone)
                    }
                    Err(Stopped::HandBack) => {
                        // The client's descriptor is closed before the server may use the socket again.
                        self.stage = Stage::HandedBack;
                        hand_back(link, request_id, &self.rest(), &skip(pieces, taken))
                    }
                }
            }
        };
        self.head.clear();
        result
    }

    /// The record for a response whose rest the server gets.
    fn rest(&self) -> Rest {
        Rest {
            may_go_on: self.framing.may_go_on(self.about),
            status: self.status,
            head_sent: self.head_sent,
            body_sent: self.body_sent,
        }
    }

    /// The response has ended: closes the client's descriptor and appends the record for the server.
    ///
    /// # Errors
    /// [`Ended::Unfinished`] if the server sends the rest of a response that has none.
    pub(super) fn finish(&mut self, request_id: u16, records: &mut Vec<u8>) -> Result<(), Ended> {
        let failed = self.body_left > 0;
        let outcome = match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::HandedBack if failed => return Err(Ended::Unfinished),
            Stage::HandedBack => return Ok(()),
            Stage::Gone => AnswerOutcome::ClientGone,
            _ if failed => AnswerOutcome::ApplicationFailed,
            _ => AnswerOutcome::Complete,
        };
        let complete = outcome == AnswerOutcome::Complete;
        push_answered(
            records,
            request_id,
            &Answered {
                complete,
                may_go_on: complete && self.framing.may_go_on(self.about),
                outcome,
                status: if self.head_sent > 0 { self.status } else { 0 },
                head_bytes: self.head_sent,
                body_bytes: self.body_sent,
            },
        );
        Ok(())
    }

    /// Whether the server reads why its offer was declined.
    pub(super) fn takes_reasons(&self) -> bool {
        Edits::split(&self.fields).0.coding_terms().is_some()
    }

    /// Whether the client got no answer: no head was ever complete.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self.stage, Stage::Head { .. })
    }

    /// Closes the client's descriptor, if it is held.
    pub(super) fn abandon(&mut self) {
        self.stage = Stage::Idle;
    }
}

/// As much of `bytes` as is left, which is counted down.
fn within<'a>(bytes: &'a [u8], left: &mut u64) -> &'a [u8] {
    let len = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
    *left -= len as u64;
    &bytes[..len]
}

/// Hands the rest of a response back: `pieces` are the bytes that the client's socket has not taken.
fn hand_back(link: &dyn Link, request_id: u16, rest: &Rest, pieces: &[&[u8]]) -> Result<(), Ended> {
    let mut records = Vec::new();
    push_rest(&mut records, request_id, rest);
    write_all(link.socket(), &mut [IoSlice::new(&records)])
        .and_then(|()| write_stdout(link.socket(), request_id, pieces, &[]))
        .map_err(Ended::ConnectionLost)
}

/// `pieces` without the first `taken` bytes.
fn skip<const N: usize>(mut pieces: [&[u8]; N], mut taken: usize) -> [&[u8]; N] {
    for piece in &mut pieces {
        let now = taken.min(piece.len());
        *piece = &piece[now..];
        taken -= now;
    }
    pieces
}

/// What one segment takes at an MTU of 1,500 bytes, with TCP's timestamps, over IPv6. Behind a longer response an
/// acknowledgement would push what `MSG_MORE` keeps.
const SEGMENT_BYTES: usize = 1428;

/// An edit of the head of a response that other clients get in a coding.
const VARIES: &[u8] = b"+Vary: Accept-Encoding\r\n";

const CHUNK_END: &[u8] = b"\r\n";
const CHUNK_END_AND_LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// The longest head that is sent from here. Longer ones are left to the server, whose bound is a setting; what is collected of
/// them fits the buffer.
const HEAD_BYTES_MAX: usize = 16 << 10;
