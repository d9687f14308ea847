//! Takes the input apart: a frame, or a piece of DATA, at a time.

use super::Connection;
use super::state::Phase;
use crate::HeadLimits;
use crate::h2::bounds::{Bound, CONTROL_FRAMES_MAX};
use crate::h2::error::{ConnectionError, Violation};
use crate::h2::event::Event;
use crate::h2::frame::{
    FRAME_HEAD_BYTES, FrameHead, PAYLOAD_BYTES_MAX, PREFACE, PrefaceMatch, flag, kind, match_preface,
};
use crate::h2::head::HeadText;

impl Connection {
    /// Reads from `input`: returns how much of it was read, and what that means. To be called until it reads nothing and
    /// means nothing. Requests are decoded into `text`, which connections of one loop share. What it leaves then is the beginning of a frame, less than
    /// [`FRAME_BYTES_MAX`](crate::h2::FRAME_BYTES_MAX) bytes, and is to be given again with more behind it.
    ///
    /// # Errors
    /// The client broke the protocol or went over a bound. GOAWAY waits to be sent; further input is dropped.
    pub fn receive<'a>(
        &mut self,
        input: &'a [u8],
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<(usize, Option<Event<'a>>), ConnectionError> {
        if self.phase == Phase::Failed {
            return Ok((input.len(), None));
        }
        self.read(input, text, limits, now_ms).map_err(|error| self.fail(error))
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<(usize, Option<Event<'a>>), ConnectionError> {
        if self.phase == Phase::Preface {
            return match match_preface(input) {
                PrefaceMatch::No => Err(Violation::Preface.into()),
                PrefaceMatch::Partial => Ok((0, None)),
                PrefaceMatch::Whole => {
                    self.phase = Phase::FirstSettings;
                    Ok((PREFACE.len(), None))
                }
            };
        }
        if self.data.is_some() {
            return Ok(self.continue_data(input, 0));
        }
        let Some(head) = FrameHead::parse(input) else { return Ok((0, None)) };
        self.check_frame(&head)?;
        if head.kind == kind::DATA {
            return self.begin_data(&head, input, now_ms);
        }
        let end = FRAME_HEAD_BYTES + head.len as usize;
        let Some(payload) = input.get(FRAME_HEAD_BYTES..end) else { return Ok((0, None)) };
        Ok((end, self.handle_frame(&head, payload, text, limits, now_ms)?))
    }

    /// Whether there may be such a frame at this moment, whatever it says.
    fn check_frame(&self, head: &FrameHead) -> Result<(), ConnectionError> {
        let is_settings = head.kind == kind::SETTINGS && !head.has(flag::ACK);
        if self.phase == Phase::FirstSettings && !is_settings {
            return Err(Violation::FirstFrame.into());
        }
        if head.len > PAYLOAD_BYTES_MAX {
            return Err(Violation::FrameTooLong.into());
        }
        let continued = self.block.as_ref().map(|block| block.stream);
        if continued != (head.kind == kind::CONTINUATION).then_some(head.stream) {
            return Err(Violation::BlockInterrupted.into());
        }
        let is_of_stream = match head.kind {
            kind::DATA | kind::HEADERS | kind::PRIORITY | kind::RST_STREAM => Some(true),
            kind::SETTINGS | kind::PING | kind::GOAWAY | kind::PRIORITY_UPDATE => Some(false),
            _ => None,
        };
        if is_of_stream.is_some_and(|is_of_stream| is_of_stream != (head.stream != 0)) {
            return Err(Violation::FrameStream.into());
        }
        if self.control.frames() > CONTROL_FRAMES_MAX {
            return Err(Bound::UnsentControl.into());
        }
        Ok(())
    }

    fn handle_frame<'a>(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        text: &'a mut HeadText,
        limits: &HeadLimits,
        now_ms: u64,
    ) -> Result<Option<Event<'a>>, ConnectionError> {
        match head.kind {
            kind::HEADERS => return self.handle_headers(head, payload, text, limits, now_ms),
            kind::CONTINUATION => return self.handle_continuation(head, payload, text, limits, now_ms),
            kind::RST_STREAM => return self.handle_reset(head.stream, payload, now_ms),
            kind::WINDOW_UPDATE => return self.handle_window_update(head.stream, payload, now_ms),
            kind::GOAWAY => return self.handle_goaway(payload, now_ms).map(Some),
            kind::SETTINGS => self.handle_settings(head, payload, now_ms)?,
            kind::PING => self.handle_ping(head, payload, now_ms)?,
            kind::PRIORITY_UPDATE => self.handle_priority_update(payload, now_ms)?,
            kind::PRIORITY => self.handle_priority(payload, now_ms)?,
            kind::PUSH_PROMISE => return Err(Violation::Push.into()),
            _ => self.budget.spend(Bound::IdleFrames, now_ms)?,
        }
        Ok(None)
    }
}
