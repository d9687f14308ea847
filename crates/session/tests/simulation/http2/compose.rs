//! What the client does next: its frames, by its seed. It keeps to the protocol, and to the server's bounds.

use super::Http2Client;
use super::frame::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADER_TABLE_SIZE, HEADERS, INITIAL_WINDOW_SIZE,
    PADDED, PAYLOAD_BYTES_MAX, PING, SETTINGS, WINDOW_UPDATE, frame, settings,
};
use super::outbox::Mark;
use super::state::{Priority, SentSettings, USUAL};
use super::stream::Stream;
use crate::choices::Choices;
use crate::request::Request;

impl Http2Client {
    /// Puts frames into the outbox, unless there are enough.
    pub(super) fn compose(&mut self, choices: &mut Choices) {
        if self.outbox.len() > OUTBOX_BYTES_ENOUGH || self.has_failed() || self.violation.is_some() {
            return;
        }
        self.pay(choices);
        self.grant(choices);
        self.open(choices);
        self.upload(choices);
        self.meddle(choices);
        if choices.chance(self.mood.violates_percent) {
            self.violate(choices);
        }
    }

    /// SETTINGS with some values.
    pub(super) fn push_settings(&mut self, choices: &mut Choices) {
        let mut pairs = Vec::new();
        let initial_window = choices.chance(60).then(|| choices.one(&[0, 1, 100, 20_000, 1 << 20]));
        if let Some(window) = initial_window {
            pairs.push((INITIAL_WINDOW_SIZE, window));
            let delta = i64::from(window) - i64::from(self.promised_initial);
            self.promised_initial = window;
            self.streams.values_mut().for_each(|stream| stream.promised += delta);
        }
        if choices.chance(20) {
            pairs.push((HEADER_TABLE_SIZE, choices.one(&[0, 100, 4096, 100_000])));
        }
        if choices.chance(20) {
            pairs.push(UNKNOWN_SETTING);
        }
        let at = self.outbox.push(&settings(&pairs), Some(Mark::Settings));
        self.settings.push_back(SentSettings { at, initial_window, read_behind: None });
    }

    /// Answers SETTINGS and PINGs, now or later.
    fn pay(&mut self, choices: &mut Choices) {
        if self.debts.settings_ack && choices.chance(70) {
            self.debts.settings_ack = false;
            self.outbox.push(&frame(SETTINGS, ACK, 0, &[]), Some(Mark::SettingsAck));
        }
        if choices.chance(70) {
            for payload in std::mem::take(&mut self.debts.pings) {
                self.outbox.push(&frame(PING, ACK, 0, &payload), None);
            }
        }
    }

    /// Opens windows of which half is used up.
    fn grant(&mut self, choices: &mut Choices) {
        if !choices.chance(self.flow.percent) {
            return;
        }
        let target = self.flow.window;
        if self.promised <= target / 2 && self.flow.updates_left > 0 {
            let increment = target - self.promised;
            self.promised = target;
            self.push_window_update(0, increment);
        }
        let is_low = |stream: &Stream| !stream.is_over() && stream.promised <= target / 2;
        let low: Vec<u32> =
            self.streams.iter().filter(|(_, stream)| is_low(stream)).map(|(id, _)| *id).collect();
        for id in low {
            let Some(stream) = self.streams.get_mut(&id).filter(|_| self.flow.updates_left > 0) else {
                return;
            };
            let increment = target - stream.promised;
            stream.promised = target;
            self.push_window_update(id, increment);
        }
    }

    fn push_window_update(&mut self, id: u32, increment: i64) {
        let increment = u32::try_from(increment).expect("windows are small");
        self.flow.updates_left -= 1;
        let frame = frame(WINDOW_UPDATE, 0, id, &increment.to_be_bytes());
        self.outbox.push(&frame, Some(Mark::Window(id, increment)));
    }

    /// Sends the heads of requests.
    fn open(&mut self, choices: &mut Choices) {
        while self.farewell.is_none()
            && self.next_request < self.requests.len()
            && self.streams.values().filter(|stream| !stream.is_over()).count() < self.habits.concurrent
            && choices.chance(80)
        {
            if choices.chance(3) {
                self.open_malformed(choices);
            }
            let id = self.next_id;
            self.next_id += choices.one(&[2, 2, 2, 6]);
            let priority = choices.chance(50).then(|| priority(choices));
            let mut stream = Stream::new(self.next_request, priority.unwrap_or(USUAL), self.promised_initial);
            let request = &self.requests[self.next_request];
            self.next_request += 1;
            let has_no_body = request.body().is_empty();
            // An empty frame can end it, too.
            let ends = has_no_body && choices.chance(80);
            (stream.has_ended, stream.is_head_only) = (ends, ends);
            let block = self.encoder.encode(&fields(request, priority, choices), choices);
            self.push_block(id, &block, ends, choices);
            self.streams.insert(id, stream);
        }
    }

    /// Sends a header block in one frame, or with a few of CONTINUATION.
    pub(super) fn push_block(&mut self, id: u32, block: &[u8], ends: bool, choices: &mut Choices) {
        let pieces = choices.one(&[1, 1, 1, 2, 4]);
        let mut kind = HEADERS;
        let mut flags = if ends { END_STREAM } else { 0 };
        let mut rest = block;
        for piece in (1..=pieces).rev() {
            let len = if piece == 1 { rest.len() } else { choices.number(0..rest.len() + 1) };
            let (now, behind) = rest.split_at(len);
            rest = behind;
            let is_last = piece == 1;
            flags |= if is_last { END_HEADERS } else { 0 };
            let bytes = match kind == HEADERS && choices.chance(10) {
                true => frame(kind, flags | PADDED, id, &padded(now, choices)),
                false => frame(kind, flags, id, now),
            };
            self.outbox.push(&bytes, is_last.then_some(Mark::Head(id)));
            (kind, flags) = (CONTINUATION, 0);
        }
        if ends {
            self.outbox.push(&[], Some(Mark::End(id)));
        }
    }

    /// Sends parts of bodies, as far as the server lets it.
    fn upload(&mut self, choices: &mut Choices) {
        let uploading: Vec<u32> =
            self.streams.iter().filter(|(_, stream)| stream.is_uploading()).map(|(id, _)| *id).collect();
        for id in uploading {
            let Some(stream) = self.streams.get_mut(&id) else { continue };
            let rest = &self.requests[stream.request].body()[stream.body_sent..];
            let padding = if choices.chance(10) { choices.number(1..100) } else { 0 };
            let room = stream.credit.min(self.credit) - padding as i64;
            let allowed = usize::try_from(room).unwrap_or(0).min(rest.len()).min(PAYLOAD_BYTES_MAX - padding);
            if room < 0 || allowed == 0 && !rest.is_empty() {
                continue;
            }
            // A small piece of a long body would take many.
            let len = choices.size(allowed.max(1)).max(rest.len() / 30).min(allowed);
            let is_last = len == rest.len();
            stream.body_sent += len;
            stream.has_ended = is_last;
            let (mut flags, mut payload) = (if is_last { END_STREAM } else { 0 }, rest[..len].to_vec());
            if padding > 0 {
                flags |= PADDED;
                payload.insert(0, padding as u8 - 1);
                payload.resize(len + padding, 0);
            }
            stream.credit -= payload.len() as i64;
            self.credit -= payload.len() as i64;
            self.outbox.push(&frame(DATA, flags, id, &payload), is_last.then_some(Mark::End(id)));
        }
    }
}

/// The fields of a request, out of its text.
fn fields(request: &Request, priority: Option<Priority>, choices: &mut Choices) -> Vec<(String, String)> {
    let mut words = request.line.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, path) = (word(), word());
    let mut fields = vec![
        (":method".to_owned(), method),
        (":scheme".to_owned(), "http".to_owned()),
        (":path".to_owned(), path),
    ];
    for line in request.field_lines() {
        let (name, value) = line.split_once(": ").expect("a field");
        match name {
            "Host" => fields.insert(choices.number(0..4), (":authority".to_owned(), value.to_owned())),
            name => fields.push((name.to_ascii_lowercase(), value.to_owned())),
        }
    }
    fields.extend(priority.map(|priority| ("priority".to_owned(), priority.value())));
    fields
}

/// Any priority.
pub(super) fn priority(choices: &mut Choices) -> Priority {
    // Few, so that some are the same.
    Priority { urgency: choices.one(&[0, 3, 3, 7]), is_incremental: choices.chance(60) }
}

/// A payload with padding.
fn padded(payload: &[u8], choices: &mut Choices) -> Vec<u8> {
    let padding = choices.number(0..100);
    [&[padding as u8][..], payload, &vec![0; padding]].concat()
}

/// With so much to send, nothing is added.
const OUTBOX_BYTES_ENOUGH: usize = 20_000;

/// A setting that does not exist.
const UNKNOWN_SETTING: (u16, u32) = (0xff00, 4711);
