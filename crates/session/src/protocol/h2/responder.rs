//! The response on a stream: its header block, and its body in front of the frames.

use baton_buf::{Aggregate, Buffer, Piece, Pool, Slice, Unfrozen};
use baton_content::{HeadForm, Whole};
use baton_http::h2::{self, encode_response_head, encode_trailers};
use baton_http::origin::{ResponseHead, Trailers};
use baton_http::response::{Client, Framing, HeadLines, push_head};
use baton_http::{Method, RequestHead, Status};
use baton_response::{Beginning, head};

use super::StreamBody;
use super::body::BodyState;
use crate::protocol::{TooShort, Written};

/// The state of a stream's response.
#[derive(Debug)]
pub(crate) struct ResponseState {
    /// The request is a `HEAD`: no body is sent.
    is_head: bool,
    /// The response has no body.
    has_no_body: bool,
    /// Bytes that the declared length has room for; `u64::MAX`: no length is declared.
    left: u64,
    /// The server's half of a tunnel has ended.
    has_ended: bool,
    /// The rest of the response will not come.
    pub(crate) is_cut: bool,
}

impl ResponseState {
    /// The state before the response to this request; `None`: the head could not be read.
    pub(crate) fn of(head: Option<&RequestHead<'_>>) -> Self {
        let is_head = head.is_some_and(|head| head.method == Method::Head);
        Self { is_head, has_no_body: false, left: u64::MAX, has_ended: false, is_cut: false }
    }
}

/// A stream as the exchange that is being answered sees it.
#[derive(Debug)]
pub(crate) struct Responder<'a> {
    connection: &'a mut h2::Connection,
    stream: h2::StreamId,
    state: &'a mut ResponseState,
    body: &'a mut StreamBody,
    /// A head that waits for what follows it: a response without a body ends with its head.
    head: Option<Slice>,
    written: Written,
}

impl<'a> Responder<'a> {
    pub(crate) fn new(
        connection: &'a mut h2::Connection,
        stream: h2::StreamId,
        state: &'a mut ResponseState,
        body: &'a mut StreamBody,
    ) -> Self {
        Self { connection, stream, state, body, head: None, written: Written::default() }
    }

    /// Returns what was written. `is_answered`: nothing follows.
    pub(crate) fn finish(mut self, is_answered: bool) -> Written {
        let ends = is_answered && !self.state.is_cut && !self.state.has_ended;
        match self.head.take() {
            Some(head) => self.connection.respond(self.stream, head, ends),
            None if ends => self.connection.end(self.stream),
            None => {}
        }
        if is_answered {
            self.drop_body();
        }
        Written { ends: ends || self.written.ends, ..self.written }
    }

    pub(crate) fn has_body_ahead(&self) -> bool {
        matches!(self.body.state, BodyState::Ahead { .. })
    }

    pub(crate) fn expect_body(&mut self, bytes_max: u64, invites: bool) {
        let BodyState::Ahead { declared, awaited } = self.body.state else { return };
        if declared.is_some_and(|length| length > bytes_max) {
            self.body.state = BodyState::TooLong;
            return;
        }
        self.body.state = BodyState::Wanted { left: bytes_max };
        if invites && awaited && self.body.arrived.is_empty() {
            let mut block = Vec::new();
            encode_response_head(CONTINUE, &mut block);
            self.push_block(Buffer::new(block).into());
            self.send_pending_head();
        }
    }

    /// Whether the body is known to be longer than `bytes_max`. Nothing is waited for.
    pub(crate) fn ignore_body(&mut self, bytes_max: u64) -> bool {
        let BodyState::Ahead { declared, .. } = self.body.state else { return false };
        let len = declared.unwrap_or(self.body.arrived.len() as u64);
        self.drop_body();
        len > bytes_max
    }

    /// What has arrived of the body is dropped, and what follows. The client gets room for it: it may take no response
    /// before it has sent its body.
    fn drop_body(&mut self) {
        let arrived = self.body.drop_rest();
        self.connection.consume(self.stream, arrived.len() as u64);
    }

    pub(crate) fn cut(&mut self) {
        self.state.is_cut = true;
    }

    pub(crate) const HEAD_FORM: HeadForm = HeadForm::Http2;

    /// Sends a file with its cached head.
    pub(crate) fn send_whole(&mut self, mut whole: Whole) {
        let in_front = whole.first.split_off(whole.head_len);
        self.push_block(whole.first);
        self.send_body(in_front);
        if let Some(rest) = whole.rest {
            self.send_body(rest);
        }
    }

    /// Sends a head in lines that is complete. Their memory is used again.
    fn send(&mut self, heads: &mut Pool, lines: Unfrozen) {
        let mut block = heads.take();
        encode_response_head(&lines, &mut block);
        heads.freeze(lines);
        self.push_block(heads.freeze(block).into());
    }

    fn send_body(&mut self, piece: impl Into<Piece>) {
        let piece = piece.into();
        if !self.state.is_head && !piece.is_empty() {
            self.send_pending_head();
            self.written.bytes += piece.len();
            self.connection.push_piece(self.stream, piece);
        }
    }

    /// What an application needs to know of the client. HTTP/2 frames bodies itself, as chunks would.
    pub(crate) fn client(&self) -> Client {
        Client { minor: 1, keep: true, head: self.state.is_head }
    }

    pub(crate) fn send_head(
        &mut self,
        heads: &mut Pool,
        head: HeadLines<'_>,
        framing: Framing,
        fields: &[u8],
        body: Beginning,
    ) {
        let mut lines = heads.take();
        push_head(&mut lines, head, framing, self.client(), fields);
        self.send(heads, lines);
        self.state.has_no_body = self.state.is_head || framing == Framing::None;
        self.state.left = match framing {
            Framing::Length(length) => length,
            _ => u64::MAX,
        };
        self.send_part(body.into());
    }

    pub(crate) fn send_part(&mut self, mut body: Aggregate) {
        if self.state.has_no_body {
            return;
        }
        if body.len() > self.state.left {
            body.split_off(self.state.left);
        }
        if self.state.left != u64::MAX {
            self.state.left -= body.len();
        }
        if !body.is_empty() {
            self.send_pending_head();
            self.written.bytes += body.len();
            self.connection.push(self.stream, body);
        }
    }

    /// Sends a head in front of the head (1xx).
    pub(crate) fn send_interim(&mut self, heads: &mut Pool, head: &ResponseHead) {
        let mut lines = heads.take();
        head::push_interim(&mut lines, head);
        self.send(heads, lines);
        self.send_pending_head();
    }

    /// Accepts an extended CONNECT.
    pub(crate) fn send_switch(&mut self, heads: &mut Pool, head: &ResponseHead, fields: &[u8]) -> Status {
        let mut lines = heads.take();
        head::push_accepted(&mut lines, head, fields);
        self.send(heads, lines);
        self.send_pending_head();
        self.connection.open_tunnel(self.stream);
        self.body.open_tunnel();
        Status::OK
    }

    /// Nothing follows in a tunnel, but the client may go on.
    pub(crate) fn end_half(&mut self) {
        self.send_pending_head();
        self.connection.end(self.stream);
        (self.state.has_ended, self.written.ends) = (true, true);
    }

    pub(crate) fn end(&mut self, trailers: Option<&Trailers>) -> Result<(), TooShort> {
        let is_short = !self.state.has_no_body && !matches!(self.state.left, 0 | u64::MAX);
        if is_short {
            return Err(TooShort);
        }
        if let Some(trailers) = trailers.filter(|_| !self.state.has_no_body) {
            let mut block = Vec::new();
            encode_trailers(trailers.fields(), &mut block);
            self.send_pending_head();
            self.written.bytes += block.len() as u64;
            self.written.head_bytes += block.len() as u64;
            self.connection.set_trailers(self.stream, Buffer::new(block).into());
        }
        Ok(())
    }

    fn push_block(&mut self, block: Slice) {
        self.written.bytes += block.len() as u64;
        self.written.head_bytes += block.len() as u64;
        self.head = Some(block);
    }

    fn send_pending_head(&mut self) {
        if let Some(head) = self.head.take() {
            self.connection.respond(self.stream, head, false);
        }
    }
}

const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
