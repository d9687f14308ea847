//! DATA: bodies of requests, delivered as they come.

use super::Connection;
use super::state::DataUnderWay;
use crate::h2::bounds::{Bound, DATA_BYTES_MIN, SMALL_DATA_MAX};
use crate::h2::error::{ConnectionError, Violation};
use crate::h2::event::Event;
use crate::h2::frame::{FRAME_HEAD_BYTES, FrameHead, StreamId, flag};
use crate::h2::streams::{Receiving, Slot, StreamStatus};

impl Connection {
    /// Reads the head of a frame, and what is there of its payload.
    pub(super) fn begin_data<'a>(
        &mut self,
        head: &FrameHead,
        input: &'a [u8],
        now_ms: u64,
    ) -> Result<(usize, Option<Event<'a>>), ConnectionError> {
        let Some((start, padding)) = padding_of(head, input)? else { return Ok((0, None)) };
        let overhead = padding + (start - FRAME_HEAD_BYTES) as u32;
        let len = head.len - overhead;
        let ends = head.has(flag::END_STREAM);
        let slot = self.open_body(head.stream)?;
        self.receive.receive(head.len)?;
        if len == 0 && !ends {
            self.budget.spend(Bound::EmptyFrames, now_ms)?;
        }
        self.data = Some(DataUnderWay { stream: head.stream, left: len, padding, ends });
        let Some(slot) = slot else {
            self.consume_on_connection(u64::from(head.len));
            return Ok(self.continue_data(input, start));
        };
        let stream = self.streams.at_mut(slot);
        stream.receive.receive(head.len)?;
        if let Some(left) = &mut stream.body_left {
            match left.checked_sub(u64::from(len)) {
                Some(rest) if rest == 0 || !ends => *left = rest,
                _ => return Ok((start, Some(self.break_stream(slot, Violation::ContentLength, now_ms)?))),
            }
        }
        // Padding counts for flow control; nothing waits for it.
        stream.receive.consume(u64::from(overhead));
        self.consume_on_connection(u64::from(overhead));
        self.charge_small_data(slot, len)?;
        if len == 0 && ends {
            let event = self.end_body(slot);
            return Ok((self.continue_data(input, start).0, Some(event)));
        }
        Ok(self.continue_data(input, start))
    }

    /// Goes on with the payload of a frame: `input` from `start` on.
    pub(super) fn continue_data<'a>(&mut self, input: &'a [u8], start: usize) -> (usize, Option<Event<'a>>) {
        let Some(mut data) = self.data.take() else { return (start, None) };
        let end = input.len().min(start + data.left as usize);
        data.left -= (end - start) as u32;
        let after = input.len().min(end + data.padding as usize);
        data.padding -= (after - end) as u32;
        if data.left > 0 || data.padding > 0 {
            self.data = Some(data);
        }
        let open = self.streams.slot_of(data.stream).map(|slot| self.streams.at_mut(slot));
        match open.filter(|stream| stream.receiving == Receiving::Open) {
            Some(stream) if end > start => {
                let ends = data.ends && data.left == 0;
                if ends {
                    stream.receiving = Receiving::Ended;
                }
                (after, Some(Event::Data { stream: StreamId(stream.id), data: &input[start..end], ends }))
            }
            _ => (after, None),
        }
    }

    /// The client has ended the body with a frame that has none of its bytes.
    pub(super) fn end_body(&mut self, slot: Slot) -> Event<'static> {
        let stream = self.streams.at_mut(slot);
        stream.receiving = Receiving::Ended;
        Event::End { stream: StreamId(stream.id) }
    }

    /// Resets a stream whose request is malformed.
    pub(super) fn break_stream(
        &mut self,
        slot: Slot,
        violation: Violation,
        now_ms: u64,
    ) -> Result<Event<'static>, ConnectionError> {
        self.budget.spend(Bound::ProvokedResets, now_ms)?;
        let stream = StreamId(self.streams.at(slot).id);
        self.reset_slot(slot, violation.code());
        Ok(Event::Broken { stream, violation })
    }

    /// The stream whose body goes on; `None` if what comes for it is ignored.
    fn open_body(&self, id: u32) -> Result<Option<Slot>, Violation> {
        match self.streams.find(id) {
            StreamStatus::Idle if self.is_beyond_goaway(id) => Ok(None),
            StreamStatus::Idle => Err(Violation::IdleStream),
            StreamStatus::Closed => Err(Violation::ClosedStream),
            StreamStatus::Reset => Ok(None),
            StreamStatus::At(slot) => match self.streams.at(slot).receiving {
                Receiving::Open => Ok(Some(slot)),
                Receiving::Ignored => Ok(None),
                Receiving::Ended => Err(Violation::ClosedStream),
            },
        }
    }

    /// A small frame costs more than its bytes as long as these wait.
    fn charge_small_data(&mut self, slot: Slot, len: u32) -> Result<(), Bound> {
        let extra = DATA_BYTES_MIN.saturating_sub(u64::from(len));
        if len == 0 || extra == 0 {
            return Ok(());
        }
        self.streams.at_mut(slot).small_data += extra;
        self.small_data += extra;
        if self.small_data > SMALL_DATA_MAX { Err(Bound::SmallData) } else { Ok(()) }
    }
}

/// Where the bytes of the body begin in `input`, and how much padding follows them. `None` if the length of the padding
/// has not come yet.
fn padding_of(head: &FrameHead, input: &[u8]) -> Result<Option<(usize, u32)>, Violation> {
    if !head.has(flag::PADDED) {
        return Ok(Some((FRAME_HEAD_BYTES, 0)));
    }
    if head.len == 0 {
        return Err(Violation::FrameLength);
    }
    let Some(padding) = input.get(FRAME_HEAD_BYTES) else { return Ok(None) };
    let padding = u32::from(*padding);
    if padding >= head.len { Err(Violation::Padding) } else { Ok(Some((FRAME_HEAD_BYTES + 1, padding))) }
}
