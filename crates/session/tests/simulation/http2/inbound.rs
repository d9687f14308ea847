//! What comes from the server, and the laws for it: frames in their order, on streams that are open, within windows.

use super::Http2Client;
use super::frame::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS,
    WINDOW_UPDATE,
};
use super::state::{Block, Farewell, STREAM_MAX, Violation};
use super::stream::Stream;
use crate::client::Moment;
use crate::response::Response;

impl Http2Client {
    /// Reads the frames that have come.
    pub(super) fn take_frames(&mut self, moment: Moment) {
        if self.is_refused_as_http1() {
            return;
        }
        let unread = std::mem::take(&mut self.unread);
        let mut at = 0;
        while let Some((frame, len)) = Frame::read(&unread[at..]) {
            self.handle_frame(&frame, moment);
            at += len;
        }
        self.unread = unread[at..].to_vec();
    }

    /// Whether the server has given up before it knew what the client speaks.
    pub(super) fn is_refused_as_http1(&self) -> bool {
        let is_late = !self.is_preface_read && self.unread.starts_with(b"HTTP/1.1 ");
        is_late && !self.end.is_sealed()
    }

    /// Whether the server has ended the connection because of an error.
    pub(super) fn has_failed(&self) -> bool {
        self.farewell.as_ref().is_some_and(|farewell| farewell.code != NO_ERROR)
    }

    /// Whether the server has said that it does not answer this stream.
    pub(super) fn is_ignored(&self, id: u32) -> bool {
        self.farewell.as_ref().is_some_and(|farewell| id > farewell.last)
    }

    fn handle_frame(&mut self, frame: &Frame<'_>, moment: Moment) {
        assert!(!self.has_failed(), "behind GOAWAY with an error: {frame:?}");
        let is_settings = frame.kind == SETTINGS && !frame.has(ACK);
        assert_eq!(is_settings, !self.has_heard, "SETTINGS come first, and once: {frame:?}");
        self.has_heard = true;
        assert_eq!(self.block.is_some(), frame.kind == CONTINUATION, "between two frames of a block");
        match (frame.kind, frame.stream) {
            (SETTINGS, 0) if frame.has(ACK) => self.handle_settings_ack(frame),
            (SETTINGS, 0) => self.debts.settings_ack = true,
            (PING, 0) => self.handle_ping(frame),
            (GOAWAY, 0) => self.handle_goaway(frame, moment),
            (WINDOW_UPDATE, 0) => grow(&mut self.credit, frame.number(), CONNECTION_WINDOW),
            (_, 0) => panic!("not for a connection: {frame:?}"),
            (kind, id) => {
                assert!(!self.is_ignored(id), "on a stream above that of GOAWAY: {frame:?}");
                if kind == RST_STREAM && self.malformed.contains_key(&id) {
                    return self.handle_malformed_reset(frame);
                }
                let stream = self.streams.get_mut(&id).filter(|stream| stream.is_read);
                let stream = stream.unwrap_or_else(|| panic!("on no stream of a request: {frame:?}"));
                let is_open = !stream.is_complete || kind == RST_STREAM;
                assert!(is_open && stream.reset.is_none(), "on a closed stream: {frame:?}");
                assert!(!stream.is_silenced, "on a stream that was reset long ago: {frame:?}");
                match kind {
                    HEADERS | CONTINUATION => self.handle_block(frame, moment),
                    DATA => self.handle_data(frame, moment),
                    RST_STREAM => stream.handle_reset(frame.number()),
                    WINDOW_UPDATE => grow(&mut stream.credit, frame.number(), BODY_WINDOW),
                    _ => panic!("not for a stream: {frame:?}"),
                }
            }
        }
    }

    /// From here on, the server sends by these settings, and not before.
    fn handle_settings_ack(&mut self, frame: &Frame<'_>) {
        assert!(frame.payload.is_empty());
        let sent = self.settings.pop_front().expect("an acknowledgement of nothing");
        let last = sent.read_behind.expect("an acknowledgement of what was not read");
        self.silence(sent.at);
        if let Some(window) = sent.initial_window {
            let delta = i64::from(window) - i64::from(self.window_acknowledged);
            self.window_acknowledged = window;
            for stream in self.streams.range_mut(..=last).map(|(_, stream)| stream) {
                (stream.window, stream.first_window) = (stream.window + delta, stream.first_window + delta);
            }
        }
    }

    fn handle_ping(&mut self, frame: &Frame<'_>) {
        let payload: [u8; 8] = frame.payload.try_into().expect("eight bytes");
        if !frame.has(ACK) {
            assert!(self.farewell.is_some(), "PINGs come with GOAWAY");
            return self.debts.pings.push(payload);
        }
        let sent = self.pings.pop_front().expect("an answer to no PING");
        assert!(sent.is_read && sent.payload == payload, "an answer to another PING");
        self.silence(sent.at);
    }

    /// Answers to what the client sent up to here come in front of all frames that are made later: streams that were
    /// reset before are over.
    pub(super) fn silence(&mut self, up_to: usize) {
        for stream in self.streams.values_mut() {
            stream.is_silenced |= stream.cancelled_at.is_some_and(|at| at <= up_to);
        }
    }

    fn handle_goaway(&mut self, frame: &Frame<'_>, moment: Moment) {
        let (last, rest) = frame.payload.split_first_chunk().expect("a stream");
        let (code, why) = rest.split_first_chunk().expect("a code");
        let farewell = Farewell { last: u32::from_be_bytes(*last), code: u32::from_be_bytes(*code) };
        let what = format!("{farewell:?} {}, {moment:?}", String::from_utf8_lossy(why));
        if farewell.is_final() {
            // Behind the first that says so, none are taken.
            let before = self.farewell.as_ref().map_or(STREAM_MAX, |before| before.last);
            let opened = self.violation.map_or(0, |violation| violation.stream).max(self.highest_read);
            let taken = self.highest_settled..=opened.min(before);
            assert!(taken.contains(&farewell.last), "{what}: it has taken {taken:?}");
        }
        if self.farewell.is_none() && farewell.code == NO_ERROR {
            let requests = self.streams.values().filter(|stream| stream.is_read).count();
            let is_last = moment.is_draining || requests >= moment.requests_max;
            let is_idle = self.streams.range(..=farewell.last).all(|(_, stream)| stream.is_over());
            assert!(is_last || farewell.is_final() && is_idle, "{what}: why?");
        }
        if farewell.code != NO_ERROR {
            self.check_failure(farewell.code, why);
        }
        self.farewell = Some(farewell);
    }

    /// The server may end the connection with an error only for what the client did.
    fn check_failure(&self, code: u32, why: &[u8]) {
        let is_timeout = code == SETTINGS_TIMEOUT && why == SETTINGS_UNACKNOWLEDGED.as_bytes();
        let is_its = |violation: &Violation| violation.code == code && violation.word.as_bytes() == why;
        let is_so = is_timeout && self.has_not_acknowledged() || self.begun_violation().is_some_and(is_its);
        let why = String::from_utf8_lossy(why);
        assert!(is_so, "for {code}, {why}, there is no reason: {:?}", self.violation);
    }

    /// What the client has done wrong, if the server may know of it.
    pub(super) fn begun_violation(&self) -> Option<&Violation> {
        self.violation.as_ref().filter(|violation| violation.is_begun(self.bytes_read))
    }

    /// Whether the server has not learned in time that its SETTINGS have arrived.
    pub(super) fn has_not_acknowledged(&self) -> bool {
        self.settings_ack_read_ms >= self.began_ms + SETTINGS_ACK_MS
    }

    fn handle_block(&mut self, frame: &Frame<'_>, moment: Moment) {
        let mut block = match self.block.take() {
            None => Block { stream: frame.stream, ends: frame.has(END_STREAM), bytes: Vec::new() },
            Some(block) => block,
        };
        assert_eq!(block.stream, frame.stream, "a block on two streams");
        block.bytes.extend_from_slice(frame.payload);
        if !frame.has(END_HEADERS) {
            self.block = Some(block);
            return;
        }
        let mut scratch = Vec::new();
        let mut decoding = self.decoder.fields(&block.bytes, &mut scratch);
        let mut fields = Vec::new();
        while let Some(field) = decoding.next_field().expect("HPACK") {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("a head is ASCII");
            fields.push((text(field.name), text(field.value)));
        }
        let response = Response::of_fields(fields);
        let stream = self.streams.get_mut(&frame.stream).expect("it is open");
        assert!(stream.response.is_none(), "a second head: {response:?}");
        if response.status < 200 {
            let is_awaited =
                self.requests[stream.request].field_lines().any(|line| line.starts_with("Expect"));
            assert!(response.status == 100 && is_awaited && !block.ends, "{response:?}");
            return;
        }
        stream.response = Some(response);
        if block.ends {
            self.complete(frame.stream, moment);
        }
    }

    fn handle_data(&mut self, frame: &Frame<'_>, moment: Moment) {
        let len = frame.payload.len() as i64;
        let (ends, room) = (frame.has(END_STREAM), self.window);
        let stream = self.streams.get_mut(&frame.stream).expect("it is open");
        let response = stream.response.as_mut().expect("a head comes first");
        assert_eq!(frame.flags & !END_STREAM, 0, "no padding");
        assert!(ends || len > 0, "an empty frame for nothing");
        assert!(len == 0 || len <= stream.window, "{len} bytes for a window of {}", stream.window);
        assert!(len == 0 || len <= room, "{len} bytes for a window of {room} of the connection");
        response.push_content(frame.payload);
        stream.window -= len;
        stream.first_window -= len;
        stream.promised -= len;
        self.window -= len;
        self.promised -= len;
        self.flow.handle_data();
        if len > 0 {
            self.check_turn(frame.stream, moment);
        }
        if ends {
            self.complete(frame.stream, moment);
        }
    }

    /// A response is complete: compares it with the model.
    fn complete(&mut self, id: u32, moment: Moment) {
        let stream = self.streams.get_mut(&id).expect("it is open");
        stream.is_complete = true;
        self.answers += 1;
        let response = stream.response.as_ref().expect("a head comes first");
        let expected = &self.requests[stream.request].expected;
        let length = response.field("Content-Length").map(|text| text.parse::<usize>().expect("a length"));
        let has_content = !expected.is_head && !matches!(response.status, 204 | 304);
        assert!(has_content || response.content.is_empty(), "no content belongs to {response:?}");
        assert!(length.is_none_or(|length| !has_content || length == response.content.len()), "{response:?}");
        expected.check(response, moment);
    }
}

impl Stream {
    fn handle_reset(&mut self, code: u32) {
        // Behind the end of the response it says that the rest of the request is not needed.
        assert_eq!(self.is_complete, code == NO_ERROR, "reset with {code}");
        self.reset = Some(code);
    }
}

/// Adds to a window; more than `max` the server never allows.
fn grow(window: &mut i64, increment: u32, max: i64) {
    assert!(increment > 0, "WINDOW_UPDATE by nothing");
    *window += i64::from(increment);
    assert!(*window <= max, "{window} bytes are allowed, and may have to be kept");
}

/// Codes of errors (RFC 9113 section 7).
pub(super) const NO_ERROR: u32 = 0x0;
pub(super) const SETTINGS_TIMEOUT: u32 = 0x4;

/// The word for the client's silence about them.
pub(super) const SETTINGS_UNACKNOWLEDGED: &str = "settings-unacknowledged";

/// What the server lets the client send: on a connection, and on a stream whose body it passes on.
const CONNECTION_WINDOW: i64 = 2 << 20;
const BODY_WINDOW: i64 = 1 << 20;

/// Time to acknowledge SETTINGS.
const SETTINGS_ACK_MS: u64 = 10_000;
