//! HTTP/1.1, as a proxy speaks it to an origin.
//!
//! The engine writes the request's head, which depends on the client. The codec frames the body, and reads the response by
//! the letter ([`baton_http::origin`]). Behind a switch of protocols it passes bytes on as they are.

use baton_buf::Buffer;
use baton_http::origin::{self, ResponsePart, ResponseReader};

use super::turn::{Ended, StreamEnd, Turn};
use crate::FailureReason;
use crate::pending_response::PendingResponse;
use crate::send_queue::SendQueue;
use crate::temporary::TemporaryFiles;

/// HTTP/1.1 on a connection.
#[derive(Debug)]
pub(crate) struct Http1 {
    reader: ResponseReader,
    is_tunnel: bool,
}

impl Http1 {
    /// With an origin whose heads have so many bytes at most.
    pub(super) fn new(head_bytes_max: usize) -> Self {
        Self { reader: ResponseReader::new(head_bytes_max), is_tunnel: false }
    }

    /// Behind a switch of protocols, where there are no heads.
    pub(super) fn tunnel() -> Self {
        Self { is_tunnel: true, ..Self::new(0) }
    }

    pub(super) fn begin(&mut self, turn: Turn<'_>, send_queue: &mut SendQueue) {
        self.reader.begin(turn.request.asked, turn.memory);
        send_queue.push_http(turn.request);
    }

    pub(super) fn read(
        &mut self,
        received: &Buffer,
        response: &mut PendingResponse,
        files: &TemporaryFiles,
    ) -> Result<Option<Ended>, FailureReason> {
        let mut at = 0;
        response.note_begun();
        while !self.is_tunnel {
            let (count, part) = self.reader.read(&received[at..]).map_err(FailureReason::BadResponse)?;
            let start = at;
            at += count;
            match part {
                ResponsePart::NeedMore => return Ok(None),
                ResponsePart::Interim(head) => response.handle_interim(head),
                ResponsePart::Head(head) => response.handle_head(head, baton_fcgi::cgi::Instruction::None),
                ResponsePart::Switch(head) => {
                    response.handle_switch(head);
                    self.is_tunnel = true;
                }
                ResponsePart::Body(range) => {
                    let slice = received.slice(start + range.start, start + range.end);
                    response.handle_body(slice, files)?;
                }
                ResponsePart::Trailers(trailers) => response.handle_trailers(trailers),
                ResponsePart::End { reusable } => {
                    response.handle_end(0);
                    return Ok(Some(Ended::Answered { may_follow: reusable }));
                }
            }
        }
        if at < received.len() {
            response.handle_body(received.slice(at, received.len()), files)?;
        }
        Ok(None)
    }

    pub(super) fn plain_left(&self) -> u64 {
        if self.is_tunnel { 0 } else { self.reader.plain_left() }
    }

    pub(super) fn pass(&mut self, bytes: u64) {
        self.reader.pass(bytes);
    }

    pub(super) fn handle_end(&mut self, response: &mut PendingResponse, is_reset: bool) -> StreamEnd {
        if self.is_tunnel && !is_reset {
            response.handle_half_end();
            return StreamEnd::Half;
        }
        if is_reset {
            return StreamEnd::abrupt(response);
        }
        match self.reader.handle_end() {
            origin::StreamEnd::Complete => {
                response.handle_end(0);
                StreamEnd::Complete
            }
            origin::StreamEnd::Silent => StreamEnd::Silent,
            origin::StreamEnd::Cut => StreamEnd::Failed(FailureReason::Ended),
        }
    }

    pub(super) fn idle_ms(&self) -> Option<u64> {
        self.reader.idle_s().map(|seconds| seconds.saturating_mul(1_000))
    }

    pub(super) fn is_tunnel(&self) -> bool {
        self.is_tunnel
    }
}
