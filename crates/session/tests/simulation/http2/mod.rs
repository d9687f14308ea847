//! A client that speaks HTTP/2, and its model of the server's end.
//!
//! ```text
//!   requests ─► compose ─► outbox ─► link ─► server
//!                  ▲         │ marks: what the server knows once it has read so far
//!                  │         ▼
//!               streams ◄─ laws of frames (inbound), of waits (settled), of the log (logged)
//!                            ▲
//!                            └─ frames ◄─ link ◄─ server
//! ```
//!
//! The server may only use what it has read. So every law is exact: DATA fit into the windows of the WINDOW_UPDATE
//! frames that were read, and answers belong to requests that were read.

mod compose;
mod frame;
mod hpack;
mod inbound;
mod logged;
mod malformed;
mod meddle;
mod outbox;
mod settled;
mod state;
mod stream;
mod turns;
mod violation;

use std::collections::{BTreeMap, VecDeque};

use baton_http::h2::hpack::Decoder;

use self::frame::{PREFACE, WINDOW_USUAL};
use self::hpack::Encoder;
use self::outbox::{Mark, Outbox};
use self::state::{Block, Debts, Farewell, Flow, Malformed, Mood, SentPing, SentSettings, Violation};
use self::stream::Stream;
use super::choices::Choices;
use super::client::{Client, Habits, InputWait, Leaving, Moment, Progress};
use super::link::ClientSocket;
use super::log::LogLine;
use super::request::Request;
use crate::memory::Unread;

/// One client, from its connection to its end.
#[derive(Debug)]
pub(crate) struct Http2Client {
    end: Box<dyn ClientSocket>,
    requests: Vec<Request>,
    habits: Habits,
    flow: Flow,
    mood: Mood,
    /// Times in a row that it had nothing to send.
    idle_times: u32,
    left: Option<Leaving>,
    began_ms: u64,
    progress: Progress,

    // What it sends
    outbox: Outbox,
    encoder: Encoder,
    next_request: usize,
    next_id: u32,
    /// Bytes of DATA that it may send on all streams.
    credit: i64,
    /// Bytes of DATA that it has allowed and not got, on all streams.
    promised: i64,
    /// The same that a new stream begins with.
    promised_initial: u32,
    debts: Debts,
    /// It has changed priorities, the server may know which or not.
    has_reprioritized: bool,
    /// What it has done wrong.
    violation: Option<Violation>,

    // What the server has read of that
    bytes_read: usize,
    /// Whether it knows that HTTP/2 is spoken.
    is_preface_read: bool,
    /// When it learned that its SETTINGS have arrived.
    settings_ack_read_ms: u64,
    /// The highest stream whose head was read.
    highest_read: u32,
    /// The same when the server last had nothing left to do: those were taken for sure.
    highest_settled: u32,
    /// Bytes of DATA that it may send on all streams.
    window: i64,
    /// The same that a new stream begins with, by the SETTINGS that were read, and by those that were acknowledged.
    window_initial: u32,
    window_acknowledged: u32,
    /// SETTINGS and PINGs without an answer.
    settings: VecDeque<SentSettings>,
    pings: VecDeque<SentPing>,

    // What comes
    unread: Vec<u8>,
    decoder: Decoder,
    has_heard: bool,
    block: Option<Block>,
    streams: BTreeMap<u32, Stream>,
    malformed: BTreeMap<u32, Malformed>,
    farewell: Option<Farewell>,
    answers: usize,
}

impl Http2Client {
    pub(crate) fn new(
        end: Box<dyn ClientSocket>,
        requests: Vec<Request>,
        now_ms: u64,
        choices: &mut Choices,
    ) -> Self {
        let total = requests.iter().map(|request| request.bytes.len() + 30).sum::<usize>() + 100;
        let mut client = Self {
            end,
            requests,
            habits: Habits::choose(total, choices),
            flow: Flow::choose(choices),
            mood: Mood::choose(choices),
            idle_times: 0,
            left: None,
            began_ms: now_ms,
            progress: Progress::new(now_ms),
            outbox: Outbox::default(),
            encoder: Encoder::new(),
            next_request: 0,
            next_id: 1,
            credit: WINDOW_USUAL.into(),
            promised: WINDOW_USUAL.into(),
            promised_initial: WINDOW_USUAL,
            debts: Debts::default(),
            has_reprioritized: false,
            violation: None,
            bytes_read: 0,
            is_preface_read: false,
            settings_ack_read_ms: u64::MAX,
            highest_read: 0,
            highest_settled: 0,
            window: WINDOW_USUAL.into(),
            window_initial: WINDOW_USUAL,
            window_acknowledged: WINDOW_USUAL,
            settings: VecDeque::new(),
            pings: VecDeque::new(),
            unread: Vec::new(),
            decoder: Decoder::new(),
            has_heard: false,
            block: None,
            streams: BTreeMap::new(),
            malformed: BTreeMap::new(),
            farewell: None,
            answers: 0,
        };
        client.outbox.push(PREFACE, Some(Mark::Preface));
        client.push_settings(choices);
        client
    }

    /// Whether it has nothing more to send or to wait for.
    fn is_done(&self) -> bool {
        let is_told = self.farewell.is_some();
        let is_over = self.has_failed() || self.violation.is_some() && self.outbox.len() == 0;
        is_over
            || (self.next_request == self.requests.len() || is_told)
                && self.streams.values().all(|stream| stream.is_over() && !stream.is_uploading())
    }

    fn leave(&mut self, leaving: Leaving) {
        self.left = Some(leaving);
        leaving.leave(&mut *self.end);
    }

    /// What the server has read, it knows.
    fn note_read(&mut self, now_ms: u64) {
        self.bytes_read = self.end.bytes_read();
        while let Some(mark) = self.outbox.take_read(self.bytes_read) {
            match mark {
                Mark::Preface => self.is_preface_read = !self.is_refused_as_http1(),
                Mark::Head(id) => {
                    self.highest_read = id;
                    if let Some(malformed) = self.malformed.get_mut(&id) {
                        malformed.is_read = true;
                        continue;
                    }
                    let stream = self.streams.get_mut(&id).expect("it was opened");
                    stream.is_read = true;
                    self.requests[stream.request].expected.note_begun(now_ms);
                    stream.window = self.window_initial.into();
                    stream.first_window = stream.window;
                }
                Mark::End(id) => {
                    self.streams.entry(id).and_modify(|stream| stream.is_end_read = true);
                }
                Mark::Window(0, increment) => self.window += i64::from(increment),
                Mark::Window(id, increment) => {
                    self.streams.get_mut(&id).expect("it was opened").window += i64::from(increment);
                }
                Mark::Settings => {
                    let sent = self.settings.iter_mut().find(|sent| sent.read_behind.is_none());
                    let sent = sent.expect("they were sent");
                    sent.read_behind = Some(self.highest_read);
                    self.window_initial = sent.initial_window.unwrap_or(self.window_initial);
                }
                Mark::SettingsAck => self.settings_ack_read_ms = now_ms,
                Mark::Ping => {
                    self.pings.iter_mut().find(|ping| !ping.is_read).expect("it was sent").is_read = true;
                }
            }
        }
    }
}

impl Client for Http2Client {
    fn link(&self) -> &dyn ClientSocket {
        &*self.end
    }

    fn link_mut(&mut self) -> &mut dyn ClientSocket {
        &mut *self.end
    }

    fn act(&mut self, choices: &mut Choices) -> Option<u64> {
        if self.left.is_some() || self.end.is_closed_by_server() {
            return None;
        }
        self.compose(choices);
        let limit = self.habits.leaving.map_or(usize::MAX, |(_, at)| at);
        let may_send = self.outbox.len().min(limit.saturating_sub(self.outbox.sent()));
        if may_send > 0 {
            let len = choices.size(self.habits.piece_bytes_max).min(may_send);
            if self.outbox.send(len, &mut *self.end) > 0 {
                self.idle_times = 0;
            }
        } else if let Some((leaving, _)) = self.habits.leaving.filter(|(_, at)| self.outbox.sent() >= *at) {
            self.leave(leaving);
            return None;
        } else if self.is_done() {
            self.leave(self.habits.parting?);
            return None;
        }
        self.habits.make_room(&mut *self.end, choices);
        self.idle_times += 1;
        Some(self.habits.pause_ms(self.idle_times, choices))
    }

    fn observe(&mut self, moment: Moment) {
        let output = self.end.take_output();
        if !output.is_empty() {
            self.progress.note(moment.now_ms, output.len());
        }
        self.unread.extend_from_slice(&output);
        self.note_read(moment.now_ms);
        self.take_frames(moment);
    }

    fn answers(&self) -> usize {
        self.answers
    }

    fn taken_since(&self, since_ms: u64) -> usize {
        self.progress.since(since_ms)
    }

    fn concurrent_max(&self) -> usize {
        self.requests.len().max(1)
    }

    fn check_input_wait(&mut self, wait: &InputWait<'_>) {
        self.check_settled(wait);
    }

    fn check_end(&mut self, who: usize, by_itself: bool) {
        self.end.handle_session_end();
        let is_read = self.end.unread_at_close() == Unread::Nothing;
        assert!(!by_itself || is_read, "client {who} may have lost its last answer");
        self.check_unanswered(who, by_itself);
    }

    fn check_log(&self, who: usize, lines: &[&LogLine]) {
        self.check_lines(who, lines);
    }
}
