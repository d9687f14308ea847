//! What a client does besides: it changes its mind about requests, windows and priorities, and asks whether the server is
//! there.

use super::Http2Client;
use super::compose::priority;
use super::frame::{GOAWAY, PING, PRIORITY, PRIORITY_UPDATE, RST_STREAM, frame};
use super::outbox::Mark;
use super::state::SentPing;
use crate::choices::Choices;

impl Http2Client {
    /// Sends one of these frames, perhaps.
    pub(super) fn meddle(&mut self, choices: &mut Choices) {
        if self.mood.frames_left == 0 || !choices.chance(self.mood.percent) {
            return;
        }
        self.mood.frames_left -= 1;
        match choices.number(0..10) {
            0 | 1 => self.push_ping(choices),
            2 => self.push_settings(choices),
            3..=5 => self.cancel(choices),
            6 => {
                let id = 2 * choices.number(0..20) as u32 + 1;
                let payload = [&id.to_be_bytes(), priority(choices).value().as_bytes()].concat();
                self.has_reprioritized = true;
                self.outbox.push(&frame(PRIORITY_UPDATE, 0, 0, &payload), None);
            }
            7 => {
                let id = 2 * choices.number(0..20) as u32 + 1;
                self.outbox.push(&frame(PRIORITY, 0, id, &[0, 0, 0, 0, 15]), None);
            }
            8 => {
                let payload = vec![0; choices.size(100)];
                self.outbox.push(&frame(UNKNOWN, 0xff, choices.number(0..5) as u32, &payload), None);
            }
            _ => {
                let payload = [[0; 4], [0; 4]].concat();
                self.outbox.push(&frame(GOAWAY, 0, 0, &payload), None);
            }
        }
    }

    pub(super) fn push_ping(&mut self, choices: &mut Choices) {
        let payload = choices.seed().to_be_bytes();
        let at = self.outbox.push(&frame(PING, 0, 0, &payload), Some(Mark::Ping));
        self.pings.push_back(SentPing { at, payload, is_read: false });
    }

    /// Resets a stream that is not over, with any code.
    fn cancel(&mut self, choices: &mut Choices) {
        let open = self.streams.iter().filter(|(_, stream)| !stream.is_over() || stream.is_uploading());
        let open: Vec<u32> = open.map(|(id, _)| *id).collect();
        if open.is_empty() {
            return;
        }
        let id = choices.one(&open);
        let code: u32 = choices.one(&[0x8, 0x8, 0x0, 0x7, 0x1234]);
        let at = self.outbox.push(&frame(RST_STREAM, 0, id, &code.to_be_bytes()), None);
        self.streams.entry(id).and_modify(|stream| stream.cancelled_at = Some(at));
    }
}

/// A type that no frame has.
const UNKNOWN: u8 = 0xfa;
