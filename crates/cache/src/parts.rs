//! A stored response that is fetched in parts: which of them the origin is asked for, and who reads them.
//!
//! [`Filling`] decides, block by block, for readers and fetches of all loops. Here are the bytes: a fetch has the pieces of
//! the block that comes, and its last blocks. A reader that waits for a block gets its pieces as they come. What is to be done
//! outside is returned as [`Effects`].

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{Aggregate, Slice};
use baton_segment::fill::{Action, Answer, CutReason, End, FillId, FillSettings, Filling, ReaderId, Version};
use baton_segment::layout::{BlockNumber, Layout};
use baton_upstream::RequestId;

use crate::Ask;
use crate::blocks::Available;
use crate::fill::{Home, ReaderName};
use crate::object::Object;
use crate::template::Template;

/// The fetches and readers of one object, which has a length and a strong validator.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) object: Arc<Object>,
    /// The request that was the first, for the rules.
    pub(crate) ask: Arc<Ask>,
    pub(crate) template: Arc<Template>,
    /// Whether it counts among the readers of the index.
    pub(crate) is_open: bool,
    layout: Layout,
    length: u64,
    state: Mutex<State>,
}

/// A request for a part that a loop has sent.
#[derive(Clone, Debug)]
pub(crate) struct PartFetch {
    pub(crate) parts: Arc<Parts>,
    pub(crate) fill: FillId,
    /// The request of this loop that caused it: what is logged about the origin is its.
    pub(crate) client: Option<RequestId>,
    /// It was asked for with If-Range.
    pub(crate) if_range: bool,
}

#[derive(Debug)]
struct State {
    filling: Filling,
    fetches: Vec<Fetch>,
    /// In the order in which they came: they are woken in it.
    readers: BTreeMap<ReaderId, Reader>,
    next_reader: ReaderId,
    /// The next reader needs new [`Parts`].
    is_over: bool,
}

#[derive(Debug)]
struct Fetch {
    id: FillId,
    /// The loop that reads it, and its name there; `None`: it is about to be sent.
    owner: Option<(Arc<Home>, RequestId)>,
    flow: Flow,
    /// The block that comes, and what has come of it.
    at: BlockNumber,
    pieces: Vec<Slice>,
    pieces_bytes: u64,
    last: VecDeque<(BlockNumber, Slice)>,
}

#[derive(Debug)]
struct Reader {
    name: ReaderName,
    is_waiting: bool,
    /// The block that it may read, and its bytes if they are in memory.
    granted: Option<(BlockNumber, Option<Slice>)>,
    verdict: Option<Verdict>,
}

/// Whether a fetch reads on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Reads,
    Pauses,
    Closed,
}

/// Why a reader gets nothing more here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Cut(CutReason),
    /// It asks the origin for itself.
    Pass,
    /// It asks anew: the object is another one now.
    Again,
}

/// What a reader gets.
#[derive(Debug)]
pub(crate) enum PartRead {
    Bytes(Aggregate),
    /// It will be woken.
    Wait,
    /// It is no reader any more.
    Over(Verdict),
}

/// A request for a part, which is to be sent.
#[derive(Debug)]
pub(crate) struct PartRequest {
    pub(crate) fill: FillId,
    /// Up to `u64::MAX`: all from there on.
    pub(crate) bytes: Range<u64>,
}

/// What is to be done outside.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) requests: Vec<PartRequest>,
    /// Fetches whose loops look whether they go on.
    pub(crate) tell: Vec<(Arc<Home>, RequestId)>,
    pub(crate) wake: Vec<ReaderName>,
    /// The origin has another version.
    pub(crate) has_changed: bool,
    /// There is neither reader nor fetch.
    pub(crate) is_over: bool,
}

impl Parts {
    /// For an object of which something is stored. `length` is its own.
    pub(crate) fn new(
        object: Arc<Object>,
        length: u64,
        ask: &Arc<Ask>,
        template: &Arc<Template>,
        is_open: bool,
    ) -> Self {
        let layout = object.content.blocks().layout();
        let version = Version { validator: Some(OURS), length: Some(length) };
        let filling = Filling::new(layout, SETTINGS, Some(version));
        Self::of(object, length, ask, template, is_open, filling, Vec::new())
    }

    /// For an object whose first response has begun with these blocks: the loop `home` reads it under the name `id`.
    /// It goes on up to `finish_to` without a reader.
    pub(crate) fn begun(
        object: Arc<Object>,
        length: u64,
        (ask, template): (&Arc<Ask>, &Arc<Template>),
        blocks: Range<BlockNumber>,
        ignores_ranges: bool,
        finish_to: BlockNumber,
        (home, id): (&Arc<Home>, RequestId),
    ) -> (Self, FillId) {
        let layout = object.content.blocks().layout();
        let version = Version { validator: Some(OURS), length: Some(length) };
        let at = blocks.start;
        let (filling, fill) = Filling::begun(layout, SETTINGS, version, blocks, ignores_ranges, finish_to);
        let fetch = Fetch { owner: Some((Arc::clone(home), id)), ..Fetch::new(fill, at) };
        (Self::of(object, length, ask, template, true, filling, vec![fetch]), fill)
    }

    fn of(
        object: Arc<Object>,
        length: u64,
        ask: &Arc<Ask>,
        template: &Arc<Template>,
        is_open: bool,
        filling: Filling,
        fetches: Vec<Fetch>,
    ) -> Self {
        let layout = object.content.blocks().layout();
        let state = State { filling, fetches, readers: BTreeMap::new(), next_reader: 0, is_over: false };
        let (ask, template) = (Arc::clone(ask), Arc::clone(template));
        Self { object, ask, template, is_open, layout, length, state: Mutex::new(state) }
    }

    /// The version that parts have to have.
    pub(crate) fn version(&self) -> Version {
        Version { validator: Some(OURS), length: Some(self.length) }
    }

    /// Adds a reader of these bytes, at least one. `None`: it is too late.
    pub(crate) fn join(&self, name: &ReaderName, bytes: &Range<u64>) -> Option<(ReaderId, Effects)> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        let id = state.next_reader;
        state.next_reader = state.next_reader.wrapping_add(1);
        let reader = Reader { name: name.clone(), is_waiting: false, granted: None, verdict: None };
        state.readers.insert(id, reader);
        let wanted = self.layout.blocks_over(bytes);
        let effects = self.call(&mut state, |filling, stored| filling.handle_reader(id, wanted, stored));
        Some((id, effects))
    }

    /// The next of the bytes that a reader wants, which are at least one.
    pub(crate) fn read(&self, id: ReaderId, bytes: &Range<u64>) -> (PartRead, Effects) {
        let mut state = self.lock();
        let mut effects = Effects::default();
        loop {
            let Some(reader) = state.readers.get_mut(&id) else {
                return (PartRead::Over(Verdict::Cut(CutReason::OriginFailed)), effects);
            };
            if let Some(verdict) = reader.verdict {
                state.readers.remove(&id);
                return (PartRead::Over(verdict), effects);
            }
            let Some((block, held)) = reader.granted.take() else {
                let live = state.live_bytes(self.layout, bytes);
                let read = match live {
                    Some(bytes) => PartRead::Bytes(bytes),
                    None => {
                        state.await_more(id);
                        PartRead::Wait
                    }
                };
                return (read, effects);
            };
            let span = self.layout.bytes_of(block, Some(self.length));
            let part = bytes.start..span.end.min(bytes.end);
            let found = match held {
                // It has read the block as that came.
                _ if part.is_empty() => Some(Aggregate::new()),
                Some(slice) => Some(part_of(slice, part.start - span.start..part.end - span.start)),
                None => {
                    match self.object.content.blocks().get(self.object.content.key, part.start, part.end, 1) {
                        Available::Bytes(bytes) => Some(bytes),
                        Available::Gone => None,
                        Available::NeedsDisk(_) => {
                            reader.granted = Some((block, None));
                            reader.name.page_in(&self.object.content, block);
                            return (PartRead::Wait, effects);
                        }
                    }
                }
            };
            let event = |filling: &mut Filling, stored: &dyn Fn(BlockNumber) -> bool| match found {
                Some(_) => filling.handle_taken(id, stored),
                // It was evicted between the decision and now.
                None => {
                    self.object.content.blocks().lose(self.object.content.key, block);
                    filling.handle_leave(id, None, stored);
                    filling.handle_reader(id, self.layout.blocks_over(bytes), stored);
                }
            };
            effects.append(self.call(&mut state, event));
            if let Some(found) = found.filter(|found| !found.is_empty()) {
                return (PartRead::Bytes(found), effects);
            }
        }
    }

    /// A reader leaves, having read up to here.
    pub(crate) fn leave(&self, id: ReaderId, at: u64) -> Effects {
        let mut state = self.lock();
        state.readers.remove(&id);
        // The block that comes is finished: otherwise it has come for nothing.
        let finish_to = match self.length - at.min(self.length) <= KEPT_BYTES {
            true => self.layout.blocks_in(self.length),
            false => self.layout.block_of(at.saturating_sub(1)) + 1,
        };
        self.call(&mut state, |filling, stored| filling.handle_leave(id, Some(finish_to), stored))
    }

    /// A request is about to be sent by this loop, under this name. False if nothing wants it any more.
    pub(crate) fn bind(&self, fill: FillId, home: &Arc<Home>, id: RequestId) -> bool {
        let mut state = self.lock();
        let Some(fetch) = state.fetch(fill) else { return false };
        fetch.owner = Some((Arc::clone(home), id));
        fetch.flow != Flow::Closed
    }

    /// Whether a fetch reads on.
    pub(crate) fn flow(&self, fill: FillId) -> Flow {
        self.lock().fetch(fill).map_or(Flow::Closed, |fetch| fetch.flow)
    }

    /// The head of a fetch's response has come.
    pub(crate) fn handle_answer(&self, fill: FillId, answer: Answer) -> Effects {
        let mut state = self.lock();
        if let (Answer::Whole(_), Some(fetch)) = (&answer, state.fetch(fill)) {
            fetch.at = 0;
        }
        self.call(&mut state, |filling, stored| filling.handle_answer(fill, answer, stored))
    }

    /// Takes bytes of a fetch up to the end of the block that comes. Returns the block once it is complete: it is to be
    /// stored, then [noted](Self::note_block).
    pub(crate) fn push(&self, fill: FillId, bytes: &mut Slice) -> Option<(BlockNumber, Slice)> {
        let mut state = self.lock();
        let Some(fetch) = state.fetch(fill).filter(|fetch| fetch.flow != Flow::Closed) else {
            bytes.advance(bytes.len());
            return None;
        };
        let span = self.layout.bytes_of(fetch.at, Some(self.length));
        let room = span.end - span.start - fetch.pieces_bytes;
        let rest = bytes.split_off((room as usize).min(bytes.len()));
        let piece = std::mem::replace(bytes, rest);
        fetch.pieces_bytes += piece.len() as u64;
        if !piece.is_empty() {
            fetch.pieces.push(piece);
        }
        if fetch.pieces_bytes < span.end - span.start {
            return None;
        }
        let mut block = Vec::with_capacity(fetch.pieces_bytes as usize);
        fetch.pieces.iter().for_each(|piece| block.extend_from_slice(piece));
        Some((fetch.at, Slice::from(block)))
    }

    /// A block of a fetch was stored, or was not.
    pub(crate) fn note_block(&self, fill: FillId, block: Slice) -> Effects {
        let mut state = self.lock();
        if let Some(fetch) = state.fetch(fill) {
            fetch.pieces.clear();
            fetch.pieces_bytes = 0;
            fetch.last.push_back((fetch.at, block));
            if fetch.last.len() > SETTINGS.ahead_blocks as usize + 1 {
                fetch.last.pop_front();
            }
            fetch.at += 1;
        }
        self.call(&mut state, |filling, stored| filling.handle_block(fill, stored))
    }

    /// The bytes from here to the end are wanted soon, as far as they are few enough.
    pub(crate) fn prefetch_end(&self, from: u64) -> Effects {
        let blocks = self.layout.block_of(from)..self.layout.blocks_in(self.length);
        if from >= self.length || blocks.len() > PREFETCHED_BLOCKS_MAX {
            return Effects::default();
        }
        self.call(&mut self.lock(), |filling, stored| filling.prefetch(blocks, stored))
    }

    /// A fetch's response has ended.
    pub(crate) fn handle_end(&self, fill: FillId, is_cut: bool) -> Effects {
        let mut state = self.lock();
        let at = state.fetch(fill).map_or(0, |fetch| fetch.at);
        let at = self.layout.bytes_of(at, Some(self.length)).start;
        let end = if is_cut { End::Cut } else { End::Complete { at } };
        if let Some(fetch) = state.fetch(fill) {
            (fetch.flow, fetch.pieces_bytes) = (Flow::Closed, 0);
            fetch.pieces.clear();
        }
        self.call(&mut state, |filling, stored| filling.handle_end(fill, end, stored))
    }

    /// Readers of this loop or others that wait for pieces, of which there may be some.
    pub(crate) fn woken(&self) -> Vec<ReaderName> {
        let mut effects = Effects::default();
        self.lock().readers.values_mut().for_each(|reader| reader.wake(&mut effects));
        effects.wake
    }

    fn has(&self, block: BlockNumber) -> bool {
        self.object.content.blocks().contains(self.object.content.key, block)
    }

    /// Tells the machine of an event, and does what it says.
    fn call(
        &self,
        state: &mut State,
        event: impl FnOnce(&mut Filling, &dyn Fn(BlockNumber) -> bool),
    ) -> Effects {
        let mut effects = Effects::default();
        event(&mut state.filling, &|block| self.has(block));
        while let Some(action) = state.filling.next_action() {
            self.act(state, action, &mut effects);
        }
        let State { fetches, filling, .. } = state;
        fetches.retain(|fetch| fetch.flow != Flow::Closed || filling.keeps(fetch.id));
        if effects.has_changed || state.filling.is_idle() {
            effects.is_over = !std::mem::replace(&mut state.is_over, true);
        }
        effects
    }

    fn act(&self, state: &mut State, action: Action, effects: &mut Effects) {
        match action {
            Action::Fetch { fill, from, to, .. } => {
                state.fetches.push(Fetch::new(fill, from));
                let start = self.layout.bytes_of(from, Some(self.length)).start;
                let end = to.map(|to| self.layout.bytes_of(to, Some(self.length)).start);
                let bytes = start..end.filter(|end| *end < self.length).unwrap_or(u64::MAX);
                effects.requests.push(PartRequest { fill, bytes });
            }
            Action::Pause(fill) => state.set_flow(fill, Flow::Pauses, effects),
            Action::Resume(fill) => state.set_flow(fill, Flow::Reads, effects),
            Action::Close(fill) => state.set_flow(fill, Flow::Closed, effects),
            Action::Serve { reader, block } => {
                let mut lasts = state.fetches.iter().flat_map(|fetch| &fetch.last);
                let held = lasts.find(|(number, _)| *number == block).map(|(_, slice)| slice.clone());
                if let Some(reader) = state.readers.get_mut(&reader) {
                    reader.granted = Some((block, held));
                    reader.wake(effects);
                }
            }
            Action::Cut { reader, reason } => state.judge(reader, Verdict::Cut(reason), effects),
            Action::Pass(reader) => state.judge(reader, Verdict::Pass, effects),
            Action::Again(reader) => state.judge(reader, Verdict::Again, effects),
            Action::NewVersion(_) => effects.has_changed = true,
            // It was known from the beginning.
            Action::Length(_) => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fetch(&mut self, fill: FillId) -> Option<&mut Fetch> {
        self.fetches.iter_mut().find(|fetch| fetch.id == fill)
    }

    fn set_flow(&mut self, fill: FillId, flow: Flow, effects: &mut Effects) {
        let Some(fetch) = self.fetch(fill) else { return };
        fetch.flow = flow;
        if flow != Flow::Pauses {
            effects.tell.extend(fetch.owner.clone());
        }
    }

    fn judge(&mut self, reader: ReaderId, verdict: Verdict, effects: &mut Effects) {
        if let Some(reader) = self.readers.get_mut(&reader) {
            reader.verdict = Some(verdict);
            reader.wake(effects);
        }
    }

    fn await_more(&mut self, id: ReaderId) {
        if let Some(reader) = self.readers.get_mut(&id) {
            reader.is_waiting = true;
        }
    }

    /// What has come of the block in which these bytes begin.
    fn live_bytes(&self, layout: Layout, bytes: &Range<u64>) -> Option<Aggregate> {
        let block = layout.block_of(bytes.start);
        let skip = bytes.start - layout.bytes_of(block, None).start;
        let mut coming = self.fetches.iter().filter(|fetch| fetch.at == block);
        let fetch = coming.find(|fetch| fetch.pieces_bytes > skip)?;
        let mut found = Aggregate::new();
        fetch.pieces.iter().for_each(|piece| found.push(piece.clone()));
        found.advance(skip);
        let _behind = found.split_off(found.len().min(bytes.end - bytes.start));
        Some(found)
    }
}

impl Fetch {
    fn new(id: FillId, at: BlockNumber) -> Self {
        let (pieces, last) = (Vec::new(), VecDeque::new());
        Self { id, owner: None, flow: Flow::Reads, at, pieces, pieces_bytes: 0, last }
    }
}

impl Reader {
    fn wake(&mut self, effects: &mut Effects) {
        if std::mem::take(&mut self.is_waiting) {
            effects.wake.push(self.name.clone());
        }
    }
}

impl Effects {
    fn append(&mut self, other: Self) {
        self.requests.extend(other.requests);
        self.tell.extend(other.tell);
        self.wake.extend(other.wake);
        self.has_changed |= other.has_changed;
        self.is_over |= other.is_over;
    }
}

fn part_of(slice: Slice, bytes: Range<u64>) -> Aggregate {
    let mut part = Aggregate::new();
    part.push(slice);
    part.advance(bytes.start);
    let _behind = part.split_off(bytes.end - bytes.start);
    part
}

/// The only version of an object here: another one is another object.
const OURS: u64 = 1;

/// Four blocks ahead: a second or two of film. A client and some seeks at a time. More readers ask for themselves: each look
/// at them all takes time.
const SETTINGS: FillSettings = FillSettings { ahead_blocks: 4, fills_max: 8, readers_max: 16_384 };

/// Blocks that are fetched before a client asks for them: the index of a film of some hours has a few megabytes.
const PREFETCHED_BLOCKS_MAX: usize = 32;

/// What is left of an object that is fetched to its end after its last client has left.
const KEPT_BYTES: u64 = 1 << 20;
