//! Frames about the connection, and about streams as a whole.

use super::Connection;
use super::commands::DRAIN_PING;
use super::state::{Drain, Phase, TableUpdate};
use crate::h2::bounds::{Bound, EARLY_PRIORITIES_MAX};
use crate::h2::error::{ConnectionError, ErrorCode, Violation};
use crate::h2::event::Event;
use crate::h2::frame::{FrameHead, StreamId, flag, kind, u31};
use crate::h2::priority::Priority;
use crate::h2::settings::{HEADER_TABLE_BYTES, SETTING_BYTES, id, settings_in};
use crate::h2::streams::{Receiving, Sending, StreamStatus};

impl Connection {
    pub(super) fn handle_settings(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        if head.has(flag::ACK) {
            if !payload.is_empty() {
                return Err(Violation::FrameLength.into());
            }
            if self.settings_due_ms.take().is_none() {
                self.budget.spend(Bound::SettingsFrames, now_ms)?;
            }
            return Ok(());
        }
        if !payload.len().is_multiple_of(SETTING_BYTES) {
            return Err(Violation::FrameLength.into());
        }
        if self.phase == Phase::FirstSettings {
            self.phase = Phase::Open;
        } else {
            self.budget.spend(Bound::SettingsFrames, now_ms)?;
        }
        // Thousands of windows in one frame cost one walk over the streams.
        let mut window = None;
        for (id, value) in settings_in(payload) {
            match id {
                id::HEADER_TABLE_SIZE => self.note_table_size(value),
                id::ENABLE_PUSH | id::ENABLE_CONNECT_PROTOCOL | id::NO_RFC7540_PRIORITIES if value > 1 => {
                    return Err(Violation::SettingValue.into());
                }
                id::INITIAL_WINDOW_SIZE if value > i32::MAX as u32 => {
                    return Err(Violation::InitialWindow.into());
                }
                id::INITIAL_WINDOW_SIZE => window = Some(value),
                id::MAX_FRAME_SIZE if !(1 << 14..1 << 24).contains(&value) => {
                    return Err(Violation::SettingValue.into());
                }
                _ => {}
            }
        }
        if let Some(window) = window {
            self.set_initial_window(window)?;
        }
        self.control.push(kind::SETTINGS, flag::ACK, &[]);
        Ok(())
    }

    fn note_table_size(&mut self, bytes: u32) {
        if bytes < HEADER_TABLE_BYTES && self.table_update == TableUpdate::NotNeeded {
            self.table_update = TableUpdate::Due;
        }
    }

    fn set_initial_window(&mut self, window: u32) -> Result<(), Violation> {
        let delta = i64::from(window) - i64::from(self.send_initial);
        self.send_initial = window;
        for slot in self.streams.slots() {
            let stream = self.streams.at_mut(slot);
            stream.send.shift(delta).ok_or(Violation::InitialWindow)?;
            if stream.send.available() == 0 {
                self.leave_queue(slot);
            }
            self.queue_up(slot);
        }
        Ok(())
    }

    pub(super) fn handle_ping(
        &mut self,
        head: &FrameHead,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        if payload.len() != DRAIN_PING.len() {
            return Err(Violation::FrameLength.into());
        }
        if !head.has(flag::ACK) {
            self.budget.spend(Bound::Pings, now_ms)?;
            self.control.push(kind::PING, flag::ACK, payload);
        } else if payload == DRAIN_PING && matches!(self.drain, Drain::Announced { .. }) {
            self.go_away(ErrorCode::NoError);
        } else {
            self.budget.spend(Bound::IdleFrames, now_ms)?;
        }
        Ok(())
    }

    pub(super) fn handle_goaway(
        &mut self,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Event<'static>, ConnectionError> {
        let [_, _, _, _, a, b, c, d, ..] = *payload else { return Err(Violation::FrameLength.into()) };
        self.budget.spend(Bound::IdleFrames, now_ms)?;
        Ok(Event::GoAway { code: ErrorCode::of_wire(u32::from_be_bytes([a, b, c, d])) })
    }

    pub(super) fn handle_window_update(
        &mut self,
        id: u32,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'static>>, ConnectionError> {
        let Ok(increment) = payload.try_into() else { return Err(Violation::FrameLength.into()) };
        let increment = u31(increment);
        if increment == 0 {
            return Err(Violation::WindowIncrement.into());
        }
        self.window_updates_left = self.window_updates_left.checked_sub(1).ok_or(Bound::WindowUpdates)?;
        if id == 0 {
            self.send.grow(increment)?;
            return Ok(None);
        }
        match self.streams.find(id) {
            StreamStatus::Idle if !self.is_beyond_goaway(id) => Err(Violation::IdleStream.into()),
            StreamStatus::Idle | StreamStatus::Reset | StreamStatus::Closed => Ok(None),
            StreamStatus::At(slot) => {
                let stream = self.streams.at_mut(slot);
                if stream.sending == Sending::Closed {
                    return Ok(None);
                }
                if let Err(violation) = stream.send.grow(increment) {
                    return self.break_stream(slot, violation, now_ms).map(Some);
                }
                self.queue_up(slot);
                Ok(None)
            }
        }
    }

    pub(super) fn handle_reset(
        &mut self,
        id: u32,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<Option<Event<'static>>, ConnectionError> {
        let Ok(code) = payload.try_into() else { return Err(Violation::FrameLength.into()) };
        let code = ErrorCode::of_wire(u32::from_be_bytes(code));
        let known = self.streams.find(id);
        if known == StreamStatus::Idle && !self.is_beyond_goaway(id) {
            return Err(Violation::IdleStream.into());
        }
        self.budget.spend(Bound::ClientResets, now_ms)?;
        let StreamStatus::At(slot) = known else { return Ok(None) };
        if self.streams.at(slot).sending == Sending::Closed {
            return Ok(None);
        }
        self.abandon(slot, Receiving::Ended);
        Ok(Some(Event::Reset { stream: StreamId(id), code }))
    }

    /// PRIORITY, which RFC 9113 has deprecated (section 5.3.2).
    pub(super) fn handle_priority(&mut self, payload: &[u8], now_ms: u64) -> Result<(), ConnectionError> {
        if payload.len() != PRIORITY_BYTES {
            return Err(Violation::FrameLength.into());
        }
        Ok(self.budget.spend(Bound::PriorityFrames, now_ms)?)
    }

    pub(super) fn handle_priority_update(
        &mut self,
        payload: &[u8],
        now_ms: u64,
    ) -> Result<(), ConnectionError> {
        let Some((id, value)) = payload.split_first_chunk() else {
            return Err(Violation::FrameLength.into());
        };
        let id = u31(*id);
        if id == 0 {
            return Err(Violation::FrameStream.into());
        }
        self.budget.spend(Bound::PriorityFrames, now_ms)?;
        let priority = Priority::parse(value);
        match self.streams.find(id) {
            StreamStatus::At(slot) => {
                self.leave_queue(slot);
                self.streams.at_mut(slot).priority = priority;
                self.queue_up(slot);
            }
            StreamStatus::Idle => {
                self.early.retain(|(other, _)| *other != id);
                if self.early.len() == EARLY_PRIORITIES_MAX {
                    self.early.pop_front();
                }
                self.early.push_back((id, priority));
            }
            StreamStatus::Reset | StreamStatus::Closed => {}
        }
        Ok(())
    }

    /// The priority that a frame gave to a stream before it was opened. It prevails over the stream's field (RFC 9218
    /// section 7).
    pub(super) fn take_early_priority(&mut self, id: u32) -> Option<Priority> {
        let index = self.early.iter().position(|(other, _)| *other == id)?;
        self.early.remove(index).map(|(_, priority)| priority)
    }

    /// Whether the server has said that it ignores this stream.
    pub(super) fn is_beyond_goaway(&self, id: u32) -> bool {
        matches!(self.drain, Drain::Final { last } if id > last)
    }
}

/// Bytes of PRIORITY.
const PRIORITY_BYTES: usize = 5;
