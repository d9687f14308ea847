//! Header blocks: requests, trailers, and those that are decoded only because HPACK's table depends on them.

use super::Connection;
use super::state::BlockUnderWay;
use crate::h2::bounds::{BLOCK_FACTOR_MAX, Bound, CONTINUATIONS_MAX};
use crate::h2::error::{ConnectionError, ErrorCode, Violation};
use crate::h2::event::Event;
use crate::h2::frame::{FrameHead, StreamId, flag, push_reset};
use crate::h2::head::{HeadText, Request};
use crate::h2::malformed::{HeadError, Malformed};
use crate::h2::streams::{Receiving, Slot, StreamStatus};
use crate::{BodyFraming, HeadLimits, RequestHead};

impl Connection {
    pub(super) fn handle_headers<'a>(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let fragment = fragment_of(head, payload)?;
        let ends = head.has(flag::END_STREAM);
        if !head.has(flag::END_HEADERS) {
            let bytes = fragment.to_vec();
            self.block = Some(BlockUnderWay { stream: head.stream, ends, bytes, continuations: 0 });
            return Ok(None);
        }
        self.handle_block(Block { stream: head.stream, ends, bytes: fragment }, text, limits, now_ms)
    }

    pub(super) fn handle_continuation<'a>(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let Some(mut block) = self.block.take() else { return Err(Violation::BlockInterrupted.into()) };
        block.continuations += 1;
        if block.continuations > CONTINUATIONS_MAX {
            return Err(Bound::Continuations.into());
        }
        if block.bytes.len() + payload.len() > limits.head_bytes_max.saturating_mul(BLOCK_FACTOR_MAX) {
            return Err(Bound::BlockBytes.into());
        }
        block.bytes.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            self.block = Some(block);
            return Ok(None);
        }
        let BlockUnderWay { stream, ends, bytes, .. } = block;
        self.handle_block(Block { stream, ends, bytes: &bytes }, text, limits, now_ms)
    }

    fn handle_block<'a>(
        &mut self,
        block: Block<'_>,
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        match self.streams.find(block.stream) {
            StreamStatus::Idle if self.is_beyond_goaway(block.stream) => {
                self.skip_block(&block, text, now_ms)
            }
            StreamStatus::Idle => self.handle_request(&block, text, limits, now_ms),
            StreamStatus::Reset => self.skip_block(&block, text, now_ms),
            // Of lower numbers it is not known whether they were used. A new stream has a higher one (section 5.1.1).
            StreamStatus::Closed if block.stream < self.streams.highest() => {
                Err(Violation::StreamNumber.into())
            }
            StreamStatus::Closed => Err(Violation::ClosedStream.into()),
            StreamStatus::At(slot) => match self.streams.at(slot).receiving {
                Receiving::Open => self.handle_trailers(slot, &block, text, now_ms).map(Some),
                Receiving::Ignored => self.skip_block(&block, text, now_ms),
                Receiving::Ended => Err(Violation::ClosedStream.into()),
            },
        }
    }

    fn handle_request<'a>(
        &mut self,
        block: &Block<'_>,
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        let Block { stream: id, ends, bytes } = *block;
        if id.is_multiple_of(2) {
            return Err(Violation::StreamNumber.into());
        }
        self.streams.note(id);
        let early = self.take_early_priority(id);
        let stream = StreamId(id);
        let outcome = match text.decode(&mut self.decoder, bytes, ends, limits) {
            Ok(request) if request.protocol.is_some() && !self.connect_protocol => {
                return self.refuse_malformed(id, Malformed::PseudoUnknown, now_ms);
            }
            Ok(request) => Ok(request),
            Err(HeadError::Refused(refusal)) => Err(refusal),
            Err(HeadError::Malformed(malformed)) => return self.refuse_malformed(id, malformed, now_ms),
            Err(HeadError::Compression(_)) => return Err(Violation::BlockCompression.into()),
        };
        if self.streams.len() >= self.streams_max {
            self.refuse(id, ErrorCode::RefusedStream, Bound::RefusedStreams, now_ms)?;
            return Ok(None);
        }
        let slot = self.streams.open(self.send_initial);
        let opened = self.streams.at_mut(slot);
        if ends {
            opened.receiving = Receiving::Ended;
        }
        if let Ok(Request { head: RequestHead { framing: BodyFraming::Length(length), .. }, .. }) = outcome {
            opened.body_left = Some(length);
        }
        let field = outcome.as_ref().ok().and_then(|request| request.priority);
        opened.priority = early.or(field).unwrap_or_default();
        let priority = opened.priority;
        self.explain_window_updates();
        Ok(Some(match outcome {
            Ok(Request { head, protocol, .. }) => Event::Request { stream, head, protocol, ends, priority },
            Err(refusal) => Event::Refused { stream, refusal, ends },
        }))
    }

    /// Trailers are checked and dropped: nothing asks for them.
    fn handle_trailers(
        &mut self,
        slot: Slot,
        block: &Block<'_>,
        text: &mut HeadText,
        now_ms: u64,
    ) -> Result<Event<'static>, ConnectionError> {
        let is_short = self.streams.at(slot).body_left.is_some_and(|left| left > 0);
        match text.decode_trailers(&mut self.decoder, block.bytes) {
            Err(HeadError::Compression(_)) => Err(Violation::BlockCompression.into()),
            Ok(()) if block.ends && is_short => self.break_stream(slot, Violation::ContentLength, now_ms),
            Ok(()) if block.ends => Ok(self.end_body(slot)),
            _ => self.break_stream(slot, Violation::TrailersMalformed, now_ms),
        }
    }

    /// Decodes a block for the sake of the table.
    fn skip_block(
        &mut self,
        block: &Block<'_>,
        text: &mut HeadText,
        now_ms: u64,
    ) -> Result<Option<Event<'static>>, ConnectionError> {
        self.budget.spend(Bound::IgnoredHeads, now_ms)?;
        match text.decode_trailers(&mut self.decoder, block.bytes) {
            Err(HeadError::Compression(_)) => Err(Violation::BlockCompression.into()),
            _ => Ok(None),
        }
    }

    fn refuse_malformed(
        &mut self,
        id: u32,
        malformed: Malformed,
        now_ms: u64,
    ) -> Result<Option<Event<'static>>, ConnectionError> {
        self.refuse(id, ErrorCode::Protocol, Bound::ProvokedResets, now_ms)?;
        Ok(Some(Event::Malformed { stream: StreamId(id), malformed }))
    }

    /// Resets a stream that never counts.
    fn refuse(&mut self, id: u32, code: ErrorCode, bound: Bound, now_ms: u64) -> Result<(), Bound> {
        self.budget.spend(bound, now_ms)?;
        push_reset(self.control.next(), id, code);
        self.streams.remember_reset(id);
        Ok(())
    }
}

/// A complete header block.
struct Block<'b> {
    stream: u32,
    ends: bool,
    bytes: &'b [u8],
}

/// A payload of HEADERS without its padding and its deprecated priority.
fn fragment_of<'a>(head: &FrameHead, payload: &'a [u8]) -> Result<&'a [u8], Violation> {
    let mut fragment = payload;
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (first, rest) = fragment.split_first().ok_or(Violation::FrameLength)?;
        (padding, fragment) = (usize::from(*first), rest);
    }
    if head.has(flag::PRIORITY) {
        fragment = fragment.get(PRIORITY_BYTES..).ok_or(Violation::FrameLength)?;
    }
    let len = fragment.len().checked_sub(padding).ok_or(Violation::Padding)?;
    Ok(&fragment[..len])
}

/// Bytes of a priority within HEADERS.
const PRIORITY_BYTES: usize = 5;
