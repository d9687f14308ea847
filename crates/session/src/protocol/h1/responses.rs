//! The sending half: persistence, and how a body is framed.

use baton_buf::{Aggregate, Buffer, Pool, Unfrozen};
use baton_content::{HeadForm, Whole};
use baton_http::origin::{ResponseHead, Trailers};
use baton_http::response::{Client, Framing, HeadLines, LAST_CHUNK, push_chunk_head, push_head};
use baton_http::{Refusal, Status, Version};
use baton_response::{Beginning, head};

use super::body::BodyRead;
use super::connection::{Frame, Http1, InputState, Response};
use crate::protocol::{TooShort, Written};
use crate::send_queue::SendQueue;

/// How a connection ends after its last response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LastClose {
    /// At once.
    Orderly,
    /// The client may still be sending: read on, or a reset destroys the response.
    Linger,
    /// By a reset: after an orderly end an incomplete response would look complete.
    Reset,
}

impl LastClose {
    /// How a connection ends where the client may have sent more than was read.
    pub(crate) fn lingering(self, has_unread_input: bool) -> Self {
        if has_unread_input && self == Self::Orderly { Self::Linger } else { self }
    }
}

/// The protocol as the exchange that is being answered sees it: the rest of its request, and where its response goes.
#[derive(Debug)]
pub(crate) struct Responder<'a> {
    protocol: &'a mut Http1,
    send_queue: &'a mut SendQueue,
    /// Connections are to end with the request under way.
    draining: bool,
    /// What has arrived behind the head.
    input: &'a [u8],
    /// Whether the transport sends ranges of files by reference.
    by_reference: bool,
    /// Where the response begins in the send queue.
    start: u64,
    written: Written,
}

impl Http1 {
    /// Answers the request that was taken last. `input`: what has arrived behind its head. `draining`: the connection
    /// ends after the response, unless its head has said otherwise. `by_reference`: whether the transport sends ranges
    /// of files by reference.
    pub(crate) fn respond<'a>(
        &'a mut self,
        send_queue: &'a mut SendQueue,
        draining: bool,
        by_reference: bool,
        input: &'a [u8],
    ) -> Responder<'a> {
        let start = send_queue.end();
        let written = Written::default();
        Responder { protocol: self, send_queue, draining, input, by_reference, start, written }
    }

    /// The connection ends with the response to the request that was taken last.
    pub(crate) fn close_behind(&mut self) {
        self.response.keeps = false;
    }

    /// The rest of that response will not come.
    pub(crate) fn cut(&mut self) {
        self.response.is_cut = true;
        self.close_behind();
    }

    /// Whether the connection goes on behind that response, which is complete.
    pub(crate) fn goes_on(&self) -> bool {
        self.response.keeps
    }

    /// Whether the output ends behind what has been sent, while the client may go on. True once.
    pub(crate) fn take_half_end(&mut self) -> bool {
        std::mem::take(&mut self.response.ends_half)
    }

    /// How it ends otherwise. At once only if the client has asked for that. The client must not take a part of a response
    /// for the whole: if the body is delimited by the end of the connection, by a reset.
    pub(crate) fn last_close(&self) -> LastClose {
        match self.response.frame {
            Frame::Own { framing: Framing::Close, .. } | Frame::Foreign { may_go_on: false }
                if self.response.is_cut =>
            {
                LastClose::Reset
            }
            // The next request may be on its way, unseen until the socket is closed, and that would be a reset.
            _ if !self.response.is_asked_last => LastClose::Linger,
            _ => LastClose::Orderly,
        }
    }
}

impl Responder<'_> {
    pub(crate) fn finish(self) -> Written {
        Written { bytes: self.send_queue.end() - self.start, ..self.written }
    }

    pub(crate) fn may_send_by_reference(&self) -> bool {
        self.by_reference
    }

    /// Requests of the connection that were taken here before this one; 0 if the connection ends behind it.
    pub(crate) fn kept_requests_before(&self) -> u64 {
        self.protocol.kept_requests_before()
    }

    /// Whether a body follows that was not read.
    pub(crate) fn has_body_ahead(&self) -> bool {
        matches!(self.protocol.input_state, InputState::Ahead { .. })
    }

    /// Has at most `bytes_max` of the body read. If it `invites`, a client that waits for `100 Continue` gets it.
    pub(crate) fn expect_body(&mut self, bytes_max: u64, invites: bool) {
        if self.protocol.begin_body(bytes_max) && invites {
            self.written.head_bytes += CONTINUE.len() as u64;
            self.send_queue.push(Buffer::new(CONTINUE.to_vec()));
        }
    }

    /// Reads what has arrived of a body that the answer does not depend on. Returns whether it is larger than
    /// `bytes_max`.
    ///
    /// # Errors
    /// It is malformed.
    pub(crate) fn ignore_body(&mut self, bytes_max: u64) -> Result<bool, Refusal> {
        let (len, read) = self.protocol.ignore_body(self.input, bytes_max)?;
        self.written.consumed += len;
        Ok(read == BodyRead::TooLarge)
    }

    /// No more input can be parsed: the response is the last one.
    pub(crate) fn refuse(&mut self) {
        self.protocol.response = Response::last(self.protocol.response.is_head);
    }

    /// The connection ends with this response.
    pub(crate) fn close_behind(&mut self) {
        self.protocol.close_behind();
    }

    /// The rest of this response will not come.
    pub(crate) fn cut(&mut self) {
        self.protocol.cut();
    }

    /// The form of cached heads.
    pub(crate) fn head_form(&mut self) -> HeadForm {
        self.decide();
        self.protocol.response.head_form()
    }

    /// Sends a file with its cached head.
    pub(crate) fn send_whole(&mut self, mut whole: Whole) {
        self.written.head_bytes += whole.head_len as u64;
        if self.protocol.response.is_head {
            whole.first.split_off(whole.head_len);
            whole.rest = None;
        }
        self.send_queue.push(whole.first);
        if let Some(rest) = whole.rest {
            self.send_queue.push(rest);
        }
    }

    /// Sends a head that is complete, and a body behind it in the same buffer.
    fn send(&mut self, heads: &mut Pool, mut head: Unfrozen, body: &[u8]) {
        self.written.head_bytes += head.len() as u64;
        head.extend_from_slice(body);
        self.send_queue.push(heads.freeze(head));
    }

    /// Who reads the response.
    pub(crate) fn client(&mut self) -> Client {
        self.decide();
        let Response { version, is_head, keeps, .. } = self.protocol.response;
        Client { minor: u8::from(version == Version::Http11), keep: keeps, head: is_head }
    }

    /// Sends a head, behind `fields` of the server, and what is there of the body.
    pub(crate) fn send_head(
        &mut self,
        heads: &mut Pool,
        head: HeadLines<'_>,
        framing: Framing,
        fields: &[u8],
        body: Beginning,
    ) {
        let client = self.client();
        let mut joined = heads.take();
        push_head(&mut joined, head, framing, client, fields);
        let left = match framing {
            Framing::Length(length) => length,
            _ => u64::MAX,
        };
        let response = &mut self.protocol.response;
        response.keeps = framing.may_go_on(client);
        let framing = if client.head { Framing::None } else { framing };
        response.frame = Frame::Own { framing, left };
        let is_whole = matches!(framing, Framing::Length(length) if length == body.length());
        match body.short(JOINED_BYTES_MAX).filter(|_| is_whole) {
            // One buffer costs less than two in one call, and a short copy less than that.
            Some(bytes) => {
                response.frame = Frame::Own { framing, left: 0 };
                self.send(heads, joined, bytes);
            }
            None => {
                self.send(heads, joined, b"");
                match body {
                    Beginning::One(piece) if is_whole => {
                        self.protocol.response.frame = Frame::Own { framing, left: 0 };
                        self.send_queue.push(piece);
                    }
                    body => self.send_part(body.into()),
                }
            }
        }
    }

    /// The application has written its head, and perhaps some of its body, to the client itself. What is
    /// [sent](Self::send_part) from here on is framed.
    pub(crate) fn resume(&mut self, may_go_on: bool) {
        self.protocol.response.frame = Frame::Foreign { may_go_on };
    }

    /// Sends a part of a body, framed as its head has announced.
    pub(crate) fn send_part(&mut self, mut body: Aggregate) {
        match &mut self.protocol.response.frame {
            Frame::Own { framing: Framing::None, .. } => {}
            Frame::Own { framing: Framing::Chunked, .. } if body.is_empty() => {}
            Frame::Own { framing: Framing::Chunked, .. } => {
                let mut chunk_head = Vec::with_capacity(CHUNK_HEAD_BYTES);
                push_chunk_head(&mut chunk_head, body.len());
                self.send_queue.push(Buffer::new(chunk_head));
                self.send_queue.append(body);
                self.send_queue.push(Buffer::new(b"\r\n".to_vec()));
            }
            Frame::Own { framing: Framing::Length(_), left } => {
                if body.len() > *left {
                    // The client would take the excess for the next response.
                    body.split_off(*left);
                }
                *left -= body.len();
                self.send_queue.append(body);
            }
            Frame::Own { framing: Framing::Close, .. } | Frame::Foreign { .. } | Frame::Whole => {
                self.send_queue.append(body);
            }
        }
    }

    /// Sends a head in front of the head (1xx). HTTP/1.0 has none (RFC 9110 section 15.2).
    pub(crate) fn send_interim(&mut self, heads: &mut Pool, head: &ResponseHead) {
        if self.protocol.response.version == Version::Http10 {
            return;
        }
        let mut lines = heads.take();
        head::push_interim(&mut lines, head);
        self.written.head_bytes += lines.len() as u64;
        self.send_queue.push(heads.freeze(lines));
    }

    /// Sends the head of a response that switches protocols. The connection is the other protocol's from here on.
    pub(crate) fn send_switch(&mut self, heads: &mut Pool, head: &ResponseHead, fields: &[u8]) -> Status {
        let mut lines = heads.take();
        head::push_switch(&mut lines, head, fields);
        self.protocol.close_behind();
        self.protocol.open_tunnel();
        self.send(heads, lines, b"");
        head.status()
    }

    /// Nothing follows behind a switch of protocols, but the client may go on.
    pub(crate) fn end_half(&mut self) {
        self.protocol.response.ends_half = true;
    }

    /// The application's body is complete.
    ///
    /// # Errors
    /// [`TooShort`].
    pub(crate) fn end(&mut self, trailers: Option<&Trailers>) -> Result<(), TooShort> {
        match self.protocol.response.frame {
            Frame::Own { framing: Framing::Length(_), left: 1.. } => return Err(TooShort),
            Frame::Own { framing: Framing::Chunked, .. } => {
                let mut end = LAST_CHUNK.to_vec();
                if let Some(trailers) = trailers {
                    // In front of the blank line.
                    end.truncate(end.len() - 2);
                    head::push_fields(&mut end, trailers.fields());
                    end.extend_from_slice(b"\r\n");
                }
                self.send_queue.push(Buffer::new(end));
            }
            Frame::Foreign { may_go_on } => self.protocol.response.keeps &= may_go_on,
            Frame::Own { .. } | Frame::Whole => {}
        }
        Ok(())
    }

    fn decide(&mut self) {
        // Whether a body follows that the client has not been told to send is unknown (RFC 9110, section 10.1.1).
        let is_next_known = !matches!(self.protocol.input_state, InputState::Ahead { .. });
        self.protocol.response.keeps &= is_next_known && !self.draining;
    }
}

/// A whole body up to this length is copied behind its head.
const JOINED_BYTES_MAX: usize = 4 << 10;

/// Sixteen digits and a line end.
const CHUNK_HEAD_BYTES: usize = 18;

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

#[cfg(test)]
mod tests {
    use baton_site::limits::Limits;

    use super::*;

    /// Unless the client has said that it sends no more, its next request may come between the response and the end,
    /// and a reset would destroy the response.
    #[test]
    fn only_a_client_that_asked_for_the_end_gets_it_at_once() {
        let asked = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let kept = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        for (request, expected) in [(asked, LastClose::Orderly), (kept, LastClose::Linger)] {
            let mut connection = Http1::new();
            connection.next(request.as_bytes(), &Limits::default()).unwrap();
            connection.cut();
            assert_eq!(connection.last_close(), expected, "{request:?}");
        }
    }
}
