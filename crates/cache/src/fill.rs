//! A response on its way into the store, and the clients that read it meanwhile.
//!
//! ```text
//!   Asked ── head ─┬─► Live(object) ── all of it ─► end      readers read bytes as they come
//!                  └─► Settled: what those do who wait for the head
//! ```
//!
//! The loop that began it fetches. Readers of any loop read from the tail, which has what came last, and from the store. The
//! fastest of them pays for the next bytes: the fill stops a window ahead of it, and since the tail reaches further back than
//! that, nothing that it is about to read can be evicted. A reader that is slower holds nothing up, unless the store could not
//! take what it still needs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{Aggregate, Slice};
use baton_http::origin::{ResponseHead, Trailers};
use baton_segment::layout::BlockNumber;
use baton_segment::rules::Forward;
use baton_sys::mailbox::Mailbox;
use baton_upstream::{Failure, RequestId};

use crate::Ask;
use crate::object::{Content, Object};
use crate::template::Template;
use crate::visit::Visit;

/// A loop, as others know it.
#[derive(Debug)]
pub(crate) struct Home {
    pub(crate) number: u32,
    pub(crate) mailbox: Mailbox<Mail>,
}

/// What loops tell each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mail {
    /// There may be something to take for this request of yours.
    Wake(RequestId),
    /// A reader of this fill of yours has read on, or left.
    Pump(RequestId),
}

/// A request of one of the loops.
#[derive(Clone, Debug)]
pub(crate) struct ReaderName {
    pub(crate) home: Arc<Home>,
    pub(crate) request: RequestId,
}

impl ReaderName {
    /// Has a block read from the disk, and this request woken then.
    pub(crate) fn page_in(&self, content: &Content, block: BlockNumber) {
        let own = self.clone();
        let wake = move || own.home.mailbox.send([Mail::Wake(own.request)]);
        content.blocks().page_in(content.key, block, wake);
    }
}

/// A fetch, and what has come of it.
#[derive(Debug)]
pub(crate) struct Fill {
    pub(crate) home: Arc<Home>,
    /// By which the gateway of its loop knows it.
    pub(crate) id: RequestId,
    /// The request that began it.
    pub(crate) ask: Arc<Ask>,
    /// Why it was begun.
    pub(crate) forward: Forward,
    /// The stored response that may be current.
    pub(crate) validates: Option<Arc<Object>>,
    /// The last purge before it was begun.
    pub(crate) generation: u64,
    /// When it was begun, in seconds since 1970.
    pub(crate) requested_s: u64,
    pub(crate) purpose: Purpose,
    /// The bytes that the origin was asked for, from and to borders of blocks; up to `u64::MAX`: all from there on. `None`:
    /// the whole.
    pub(crate) range: Option<Range<u64>>,
    /// What makes the request, and those for other parts.
    pub(crate) template: Arc<Template>,
    pub(crate) progress: Progress,
}

/// What a fetch is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// This request of a client has begun it, and waits for it.
    Client(RequestId),
    /// A stale response, which was served, is to be fresh for the next client.
    Refresh,
    /// A client may ask for it next.
    Prefetch,
}

/// What has come of a fetch, and who reads it.
#[derive(Debug, Default)]
pub(crate) struct Progress(Mutex<State>);

/// How far it is.
#[derive(Clone, Debug, Default)]
pub(crate) enum Stage {
    /// The head has not come.
    #[default]
    Asked,
    /// The response is stored as it comes.
    Live(Arc<Object>),
    /// The response is nothing that is read here.
    Settled(Settled),
}

/// What those do who wait for the head.
#[derive(Clone, Debug)]
pub(crate) enum Settled {
    /// Answer with a response that was validated. `first` is for the request that has asked the origin; without `others`, the
    /// rest ask for themselves.
    Use { first: Arc<Object>, others: Option<Arc<Object>>, status: u16 },
    /// Answer with this stale response: the origin has failed.
    Stale(Arc<Object>, Option<u16>),
    /// Ask for themselves: the response may not be shared.
    Alone,
    /// Begin anew: the origin has another version than the one that it was asked about.
    Again,
    /// Ask for the whole: the origin's parts have no validator, or are not those that were asked for.
    Whole,
    /// There is no answer.
    Failed(Failure),
}

#[derive(Debug, Default)]
struct State {
    stage: Stage,
    /// Interim responses that all may get who wait for the head. The gateway bounds them.
    interim: Vec<ResponseHead>,
    /// What came last, from `tail_at` on: what the store has not got, and what readers are about to want. No slice crosses the
    /// border of a block.
    tail: VecDeque<Slice>,
    tail_at: u64,
    received: u64,
    /// Blocks up to here were given to the store.
    blocks_until: u64,
    /// The store does not keep all of them for all readers: the tail has what any of these still needs.
    is_incomplete: bool,
    /// How far the fastest reader is.
    furthest: u64,
    /// They are woken in this order, not in a random one: a seed of the simulation repeats itself.
    readers: BTreeMap<(u32, RequestId), Reader>,
    /// The fetching loop waits for a reader.
    is_stalled: bool,
    /// Of the request that began it, until that reads.
    visit: Option<Visit>,
    trailers: Option<Trailers>,
    end: Option<Result<(), Failure>>,
}

#[derive(Debug)]
struct Reader {
    home: Arc<Home>,
    at: u64,
    is_waiting: bool,
    /// Interim responses that it has got.
    informed: usize,
}

/// How a response has ended, and the fields behind its body.
pub(crate) type ResponseEnd = (Result<(), Failure>, Option<Trailers>);

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum Read {
    /// The next bytes.
    Bytes(Aggregate),
    /// The next bytes up to this offset are in the store.
    Stored(u64),
    /// It will be woken.
    Wait,
    /// Nothing follows but these.
    End(Option<Trailers>),
    /// The rest will not come.
    Failed(Failure),
}

impl Fill {
    /// Whether other requests may wait for it. What the origin is asked on behalf of one user seldom is for others.
    pub(crate) fn is_joinable(&self) -> bool {
        let head = self.ask.head.get();
        head.field("Authorization").is_none() && self.lock().readers.len() < READERS_MAX
    }

    /// Whether it goes on without a client.
    pub(crate) fn is_background(&self) -> bool {
        !matches!(self.purpose, Purpose::Client(_))
    }

    /// Adds a reader at an offset. Returns whether what it begins with is still at hand: the store may have lost it.
    pub(crate) fn join(&self, name: &ReaderName, at: u64) -> bool {
        let reader = Reader { home: Arc::clone(&name.home), at, is_waiting: false, informed: 0 };
        let mut state = self.lock();
        state.furthest = state.furthest.max(at);
        state.readers.insert((name.home.number, name.request), reader);
        at >= state.tail_at
    }

    /// A reader has gone. Returns whether the fetching loop should know.
    pub(crate) fn leave(&self, name: &ReaderName) -> bool {
        let mut state = self.lock();
        state.readers.remove(&(name.home.number, name.request));
        state.end.is_none() && (state.readers.is_empty() || state.is_stalled)
    }

    /// How far it is. A reader is woken when the head has come.
    pub(crate) fn stage(&self, name: &ReaderName) -> Stage {
        let mut state = self.lock();
        let stage = state.stage.clone();
        if matches!(stage, Stage::Asked) {
            state.await_more(name);
        }
        stage
    }

    /// Adds an interim response. Returns those who wait for the head.
    pub(crate) fn push_interim(&self, head: ResponseHead) -> Vec<ReaderName> {
        let mut state = self.lock();
        state.interim.push(head);
        state.woken()
    }

    /// The next interim response for a reader that waits for the head, unless the response is none for it.
    pub(crate) fn next_interim(&self, name: &ReaderName) -> Option<ResponseHead> {
        let mut state = self.lock();
        let State { stage, interim, readers, .. } = &mut *state;
        if matches!(stage, Stage::Settled(_)) {
            return None;
        }
        let reader = readers.get_mut(&(name.home.number, name.request))?;
        let head = interim.get(reader.informed)?;
        reader.informed += 1;
        Some(head.clone())
    }

    /// The bytes from `at` to `end`. Returns also whether the fetching loop waits for this.
    pub(crate) fn read(&self, name: &ReaderName, at: u64, end: u64) -> (Read, bool) {
        let mut state = self.lock();
        if let Some(reader) = state.readers.get_mut(&(name.home.number, name.request)) {
            reader.at = at;
        }
        state.furthest = state.furthest.max(at);
        let read = if at < state.tail_at {
            Read::Stored(state.tail_at.min(end))
        } else if at < state.received {
            let bytes = state.bytes(at, end);
            state.furthest = state.furthest.max(at + bytes.len());
            Read::Bytes(bytes)
        } else {
            match &state.end {
                Some(Ok(())) => Read::End(state.trailers.clone()),
                Some(Err(failure)) => Read::Failed(*failure),
                None => {
                    state.await_more(name);
                    Read::Wait
                }
            }
        };
        let was_stalled = std::mem::take(&mut state.is_stalled);
        (read, was_stalled)
    }

    /// Whether the whole response has come, or will not, for a reader that has all its bytes. It is woken then. Returns also
    /// whether the fetching loop waits for this.
    pub(crate) fn poll_end(&self, name: &ReaderName, at: u64) -> (Option<ResponseEnd>, bool) {
        let mut state = self.lock();
        // The fill may wait for these very bytes to be read, and the end comes behind them.
        if let Some(reader) = state.readers.get_mut(&(name.home.number, name.request)) {
            reader.at = at;
        }
        if state.end.is_none() {
            state.await_more(name);
        }
        let end = state.end.map(|end| (end, state.trailers.clone()));
        (end, std::mem::take(&mut state.is_stalled))
    }

    /// Whether the fetching loop may read on. If not, it is told when it may.
    pub(crate) fn wants_more(&self, window: u64) -> bool {
        let mut state = self.lock();
        // The one that everything waited for may have read on, or left.
        state.drop_read();
        let has_room = match &state.stage {
            Stage::Asked | Stage::Settled(_) => true,
            Stage::Live(_) if self.is_background() => true,
            Stage::Live(_) => {
                let retained = state.received - state.tail_at;
                let is_kept = state.readers.is_empty();
                let has_room = !state.is_incomplete || retained < RETAINED_WINDOWS * window;
                has_room && (is_kept || state.received < state.furthest + window)
            }
        };
        state.is_stalled = !has_room;
        has_room
    }

    /// Whether no client reads it, and it is not worth its end.
    pub(crate) fn is_deserted(&self) -> bool {
        let state = self.lock();
        let length = match &state.stage {
            Stage::Live(object) => object.content.length(),
            _ => None,
        };
        let is_almost_done = length.is_some_and(|length| length - state.received.min(length) <= KEPT_BYTES);
        state.readers.is_empty() && !self.is_background() && !is_almost_done
    }

    /// The head has come. Returns those who wait for it.
    pub(crate) fn set_stage(&self, stage: Stage) -> Vec<ReaderName> {
        let mut state = self.lock();
        state.stage = stage;
        state.woken()
    }

    /// A content was begun for the request that began this.
    pub(crate) fn set_visit(&self, visit: Visit) {
        self.lock().visit = Some(visit);
    }

    pub(crate) fn take_visit(&self) -> Option<Visit> {
        self.lock().visit.take()
    }

    /// Readers of a loop, which wait for the head or read on.
    pub(crate) fn readers_of(&self, home: &Home) -> Vec<RequestId> {
        let state = self.lock();
        let own = state.readers.keys().filter(|(number, _)| *number == home.number);
        own.map(|(_, request)| *request).collect()
    }

    /// Adds bytes, which cross no border of a block.
    pub(crate) fn push(&self, bytes: Slice) {
        let mut state = self.lock();
        state.received += bytes.len() as u64;
        state.tail.push_back(bytes);
    }

    /// Bytes that have come.
    pub(crate) fn received(&self) -> u64 {
        self.lock().received
    }

    /// The next block for the store, if it is complete or, at the end of the response, if there is a rest.
    pub(crate) fn next_block(&self, block_bytes: u64, is_end: bool) -> Option<(u32, Slice)> {
        let state = self.lock();
        let (from, has) = (state.blocks_until, state.received - state.blocks_until);
        if has < block_bytes && !(is_end && has > 0) {
            return None;
        }
        let mut bytes = Vec::with_capacity(has.min(block_bytes) as usize);
        let mut pieces = state.pieces(from);
        while (bytes.len() as u64) < block_bytes
            && let Some(piece) = pieces.next()
        {
            bytes.extend_from_slice(&piece);
        }
        Some(((from / block_bytes) as u32, Slice::from(bytes)))
    }

    /// A block was given to the store. If it does not stay there, it is kept for those who still need it; if it does, for those
    /// who are not more than a few `window`s behind.
    pub(crate) fn note_block(&self, block: Slice, stays: bool, window: u64) {
        let mut state = self.lock();
        let state = &mut *state;
        let from = state.blocks_until;
        state.blocks_until += block.len() as u64;
        state.is_incomplete |= !stays;
        // One slice in the place of many: those hold the buffers that were read into.
        let before = state.pieces_before(from);
        let mut behind = state.tail.split_off(before);
        let mut left = block.len();
        while left > 0
            && let Some(piece) = behind.pop_front()
        {
            left -= piece.len();
        }
        state.tail.push_back(block);
        state.tail.append(&mut behind);
        if !state.is_incomplete {
            state.drop_tail(state.blocks_until.saturating_sub(RETAINED_WINDOWS * window));
        }
        state.drop_read();
    }

    /// The fields behind the body.
    pub(crate) fn set_trailers(&self, trailers: Trailers) {
        self.lock().trailers = Some(trailers);
    }

    /// The response is complete, or will not be. Returns those who wait.
    pub(crate) fn finish(&self, end: Result<(), Failure>) -> Vec<ReaderName> {
        let mut state = self.lock();
        state.end.get_or_insert(end);
        state.woken()
    }

    /// Returns the readers who wait for more of a body, of which there may be some.
    pub(crate) fn woken_if_live(&self) -> Vec<ReaderName> {
        let mut state = self.lock();
        if matches!(state.stage, Stage::Live(_)) { state.woken() } else { Vec::new() }
    }

    /// How far it is, for the loop that fetches.
    pub(crate) fn current_stage(&self) -> Stage {
        self.lock().stage.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.progress.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn await_more(&mut self, name: &ReaderName) {
        if let Some(reader) = self.readers.get_mut(&(name.home.number, name.request)) {
            reader.is_waiting = true;
        }
    }

    fn woken(&mut self) -> Vec<ReaderName> {
        let mut woken = Vec::new();
        for ((_, request), reader) in &mut self.readers {
            if std::mem::take(&mut reader.is_waiting) {
                woken.push(ReaderName { home: Arc::clone(&reader.home), request: *request });
            }
        }
        woken
    }

    /// What the tail has from an offset on.
    fn pieces(&self, from: u64) -> impl Iterator<Item = Slice> {
        let mut skip = from.saturating_sub(self.tail_at);
        self.tail.iter().filter_map(move |slice| {
            let len = slice.len() as u64;
            if skip >= len {
                skip -= len;
                return None;
            }
            let mut slice = slice.clone();
            slice.advance(std::mem::take(&mut skip) as usize);
            Some(slice)
        })
    }

    /// Slices in front of an offset at which one begins.
    fn pieces_before(&self, offset: u64) -> usize {
        let mut at = self.tail_at;
        let ends = self.tail.iter().take_while(|slice| {
            let begins_before = at < offset;
            at += slice.len() as u64;
            begins_before
        });
        ends.count()
    }

    fn bytes(&self, at: u64, end: u64) -> Aggregate {
        let mut bytes = Aggregate::new();
        for piece in self.pieces(at) {
            if bytes.len() >= end - at {
                break;
            }
            bytes.push(piece);
        }
        let _behind = bytes.split_off(bytes.len().min(end - at));
        bytes
    }

    fn drop_tail(&mut self, until: u64) {
        while let Some(first) = self.tail.front()
            && self.tail_at + first.len() as u64 <= until
        {
            self.tail_at += first.len() as u64;
            self.tail.pop_front();
        }
    }

    /// Drops whole blocks that all readers have read.
    fn drop_read(&mut self) {
        let slowest = self.readers.values().map(|reader| reader.at).min().unwrap_or(self.blocks_until);
        self.drop_tail(slowest.min(self.blocks_until));
    }
}

/// Requests that share one fetch. More ask for themselves.
const READERS_MAX: usize = 65_536;

/// Windows of bytes that the tail keeps for readers. Where the store does not take them, the fill then waits for the slowest.
const RETAINED_WINDOWS: u64 = 2;

/// What is left of a response that is fetched to its end after its last client has left.
const KEPT_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests;
