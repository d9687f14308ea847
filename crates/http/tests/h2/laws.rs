//! Laws of the connection under random clients.
//!
//! Goal: whatever a client does, it gets the bytes that were queued, within its windows. Method: a script of frames and
//! commands, and a model of the client that counts windows and collects bodies.

use std::collections::BTreeMap;

use crate::client::{
    DATA, END_STREAM, GOAWAY, HEADERS, Pair, RST_STREAM, SETTINGS, Seen, Sent, WINDOW_UPDATE, cancel, frame,
    get_with_priority, post, settings, window_update,
};
use baton_http::h2::{ErrorCode, StreamId};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    /// A request of this priority.
    Get { urgency: u8, incremental: bool },
    /// A request with a body of so many bytes, of which the server consumes some.
    Post { len: usize, consumed: u64 },
    /// The head of a response for one of the streams, and so many bytes.
    Respond { which: usize, len: usize },
    /// More bytes.
    Push { which: usize, len: usize },
    /// The end of a response, and of the work for it.
    End { which: usize },
    /// The server gives up.
    Reset { which: usize },
    /// The client gives up.
    Cancel { which: usize },
    /// A larger window of one of the streams.
    Window { which: usize, increment: u32 },
    /// A larger window of the connection.
    Room { increment: u32 },
    /// Other initial windows.
    Initial { window: u32 },
    /// One batch.
    Transmit { room: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..8_usize;
    let len = prop_oneof![0..200_usize, 0..50_000_usize];
    prop_oneof![
        3 => (0..8_u8, any::<bool>()).prop_map(|(urgency, incremental)| Step::Get { urgency, incremental }),
        1 => (0..16_000_usize, 0..20_000_u64).prop_map(|(len, consumed)| Step::Post { len, consumed }),
        3 => (which.clone(), len.clone()).prop_map(|(which, len)| Step::Respond { which, len }),
        2 => (which.clone(), len).prop_map(|(which, len)| Step::Push { which, len }),
        3 => which.clone().prop_map(|which| Step::End { which }),
        1 => which.clone().prop_map(|which| Step::Reset { which }),
        1 => which.clone().prop_map(|which| Step::Cancel { which }),
        2 => (which, 1..60_000_u32).prop_map(|(which, increment)| Step::Window { which, increment }),
        2 => (1..60_000_u32).prop_map(|increment| Step::Room { increment }),
        1 => (0..100_000_u32).prop_map(|window| Step::Initial { window }),
        4 => (1..100_000_u64).prop_map(|room| Step::Transmit { room }),
    ]
}

/// What the client knows of a stream, and what the server should send on it.
#[derive(Debug)]
struct Model {
    id: StreamId,
    window: i64,
    is_headed: bool,
    is_ended: bool,
    is_gone: bool,
    queued: Vec<u8>,
    received: Vec<u8>,
    has_ended: bool,
}

struct World {
    pair: Pair,
    streams: BTreeMap<u32, Model>,
    next: u32,
    room: i64,
    initial: u32,
}

impl World {
    fn new() -> Self {
        Self { pair: Pair::open(), streams: BTreeMap::new(), next: 1, room: 65_535, initial: 65_535 }
    }

    fn begin(&mut self, request: impl Fn(u32) -> Vec<u8>) -> StreamId {
        let number = self.next;
        self.next += 2;
        let [id] = self.pair.begin(&[request(number)])[..] else { panic!("a request") };
        let (queued, received) = (Vec::new(), Vec::new());
        let [is_headed, is_ended, is_gone, has_ended] = [false; 4];
        let window = i64::from(self.initial);
        let model = Model { id, window, is_headed, is_ended, is_gone, queued, received, has_ended };
        self.streams.insert(number, model);
        id
    }

    /// One of the streams.
    fn pick(&mut self, which: usize) -> Option<(u32, &mut Model)> {
        let index = which % self.streams.len().max(1);
        self.streams.iter_mut().nth(index).map(|(number, model)| (*number, model))
    }

    fn push(&mut self, number: u32, len: usize) {
        let model = self.streams.get_mut(&number).unwrap();
        // Bytes that tell where they belong.
        let bytes: Vec<u8> =
            (0..len).map(|index| (model.queued.len() + index) as u8 ^ number as u8).collect();
        self.pair.push(model.id, &bytes);
        if !model.is_ended && !model.is_gone {
            model.queued.extend_from_slice(&bytes);
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Get { urgency, incremental } if self.streams.len() < 8 => {
                let value = format!("u={urgency}{}", if incremental { ", i" } else { "" });
                self.begin(|number| get_with_priority(number, &value));
            }
            Step::Post { len, consumed } if self.streams.len() < 8 => {
                let id = self.begin(|number| post(number, &[]));
                let body = frame(DATA, END_STREAM, id.number(), &vec![0; len]);
                self.pair.receive(&body).unwrap();
                self.pair.server.consume(id, consumed);
            }
            Step::Get { .. } | Step::Post { .. } => {}
            Step::Respond { which, len } => {
                let Some((number, model)) = self.pick(which) else { return };
                if !model.is_headed {
                    model.is_headed = true;
                    let id = model.id;
                    self.pair.server.respond(id, vec![0x88].into(), false);
                    self.push(number, len);
                }
            }
            Step::Push { which, len } => {
                if let Some((number, Model { is_headed: true, .. })) = self.pick(which) {
                    self.push(number, len);
                }
            }
            Step::End { which } => {
                if let Some((_, model)) = self.pick(which)
                    && model.is_headed
                {
                    model.is_ended = true;
                    let id = model.id;
                    self.pair.server.end(id);
                    self.pair.server.finish(id);
                }
            }
            Step::Reset { which } => {
                if let Some((_, model)) = self.pick(which) {
                    model.is_gone = true;
                    let id = model.id;
                    self.pair.server.reset(id, ErrorCode::Internal);
                    self.pair.server.finish(id);
                }
            }
            Step::Cancel { which } => {
                let Some((number, model)) = self.pick(which) else { return };
                let is_open = !model.is_gone && !model.has_ended;
                model.is_gone = true;
                let id = model.id;
                let events = self.pair.receive(&cancel(number)).unwrap();
                let reset = Seen::Reset { stream: number, code: ErrorCode::Cancel };
                assert_eq!(events, if is_open { vec![reset] } else { vec![] });
                self.pair.server.finish(id);
            }
            Step::Window { which, increment } => {
                if let Some((number, model)) = self.pick(which) {
                    model.window += i64::from(increment);
                    self.pair.receive(&window_update(number, increment)).unwrap();
                }
            }
            Step::Room { increment } => {
                self.room += i64::from(increment);
                self.pair.receive(&window_update(0, increment)).unwrap();
            }
            Step::Initial { window } => {
                let delta = i64::from(window) - i64::from(self.initial);
                self.initial = window;
                self.streams.values_mut().for_each(|model| model.window += delta);
                self.pair.receive(&settings(&[(4, window)])).unwrap();
            }
            Step::Transmit { room } => {
                let sent = self.pair.transmit_once(room);
                self.check(sent);
            }
        }
    }

    fn check(&mut self, sent: Vec<Sent>) {
        for sent in sent {
            let Some(model) = self.streams.get_mut(&sent.stream) else {
                assert!(matches!(sent.kind, SETTINGS | WINDOW_UPDATE) && sent.stream == 0, "{sent:?}");
                continue;
            };
            assert!(!model.has_ended || matches!(sent.kind, RST_STREAM | WINDOW_UPDATE), "{sent:?}");
            match sent.kind {
                HEADERS => assert!(model.is_headed && model.received.is_empty()),
                DATA => {
                    let len = sent.payload.len() as i64;
                    assert!(len <= 16_384 && (len == 0 || (len <= model.window && len <= self.room)));
                    assert!(len > 0 || sent.ends(), "no empty frames for nothing");
                    model.window -= len;
                    self.room -= len;
                    model.received.extend_from_slice(&sent.payload);
                    assert!(!model.is_gone, "nothing leaves for a stream that is over");
                }
                RST_STREAM | WINDOW_UPDATE => {}
                _ => panic!("{sent:?}"),
            }
            model.has_ended |= sent.ends();
            assert!(model.queued.starts_with(&model.received));
            assert!(!model.has_ended || (model.is_ended && model.received.len() == model.queued.len()));
        }
    }

    /// Everything comes to its end.
    fn drain(&mut self) {
        self.run(&Step::Initial { window: 1 << 24 });
        self.run(&Step::Room { increment: 1 << 28 });
        for which in 0..self.streams.len() {
            self.run(&Step::Respond { which, len: 10 });
            self.run(&Step::End { which });
        }
        while self.pair.server.wants_to_send() {
            self.run(&Step::Transmit { room: 64 * 1024 });
        }
        for (number, model) in &self.streams {
            assert!(model.is_gone || model.has_ended, "stream {number}");
        }
        assert!(self.pair.server.is_idle() && self.pair.server.open_streams() == 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn clients_get_what_was_queued_within_their_windows(steps in proptest::collection::vec(step(), 0..80)) {
        let mut world = World::new();
        for step in &steps {
            world.run(step);
        }
        world.drain();
        prop_assert!(!world.pair.transmit().iter().any(|sent| sent.kind == GOAWAY));
    }
}
