//! The machine: readers and fills of one object, without I/O and without bytes.

use std::collections::VecDeque;
use std::ops::Range;

use super::events::{Action, CutReason, End, FillId, FillSettings, ReaderId, Version};
use super::parts::{Fill, FillState, Reader};
use crate::layout::{BlockNumber, Layout};

/// Tells whether a block is stored.
pub(super) type Stored<'a> = &'a dyn Fn(BlockNumber) -> bool;

/// The fills of one object. After each call the caller does what [`Filling::next_action`] says.
#[derive(Debug)]
pub struct Filling {
    pub(super) layout: Layout,
    pub(super) settings: FillSettings,
    pub(super) version: Version,
    /// Whether the version is one that an origin has told.
    pub(super) is_known: bool,
    /// The origin answers ranges with all.
    pub(super) ignores_ranges: bool,
    pub(super) readers: Vec<Reader>,
    pub(super) fills: Vec<Fill>,
    next_fill: FillId,
    pub(super) actions: VecDeque<Action>,
}

/// A response that ended too soon is continued once; a second one without a new block fails.
const FAILURES_MAX: u32 = 2;

impl Filling {
    /// An object with what is stored of it: its version, or none if nothing is.
    #[must_use]
    pub fn new(layout: Layout, settings: FillSettings, stored: Option<Version>) -> Self {
        Self {
            layout,
            settings,
            version: stored.unwrap_or_default(),
            is_known: stored.is_some(),
            ignores_ranges: false,
            readers: Vec::new(),
            fills: Vec::new(),
            next_fill: 0,
            actions: VecDeque::new(),
        }
    }

    /// An object whose first response has begun, of this version and with these blocks. `ignores_ranges`: it brings all,
    /// though a part was asked for. It goes on up to `finish_to` without a reader.
    #[must_use]
    pub fn begun(
        layout: Layout,
        settings: FillSettings,
        version: Version,
        blocks: Range<BlockNumber>,
        ignores_ranges: bool,
        finish_to: BlockNumber,
    ) -> (Self, FillId) {
        let (id, end) = (0, Some(blocks.end));
        let fill = Fill {
            id,
            at: blocks.start,
            end,
            asked_end: end,
            finish_to,
            state: FillState::Flows,
            last: VecDeque::new(),
            failures: 0,
        };
        let mut filling = Self::new(layout, settings, Some(version));
        (filling.ignores_ranges, filling.next_fill) = (ignores_ranges, 1);
        filling.fills.push(fill);
        (filling, id)
    }

    /// The version of all blocks that are served.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether there is neither reader nor fill.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.readers.is_empty() && self.fills.is_empty()
    }

    /// Whether a fill's last blocks may be served yet.
    #[must_use]
    pub fn keeps(&self, id: FillId) -> bool {
        self.fills.iter().any(|fill| fill.id == id)
    }

    /// What to do next.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A reader comes for blocks, at least one. Its number is that of no other reader here.
    pub fn handle_reader(&mut self, id: ReaderId, wanted: Range<BlockNumber>, stored: Stored<'_>) {
        if self.readers.len() >= self.settings.readers_max {
            self.actions.push_back(Action::Pass(id));
            return;
        }
        self.readers.push(Reader { id, wanted, began: false, waits: true, fill: None });
        self.provide(stored);
        self.settle(stored);
    }

    /// A reader has sent the block that it was served, and wants its next one; after its last one it is gone.
    pub fn handle_taken(&mut self, id: ReaderId, stored: Stored<'_>) {
        let Some(at) = self.readers.iter().position(|reader| reader.id == id && !reader.waits) else {
            return;
        };
        let reader = &mut self.readers[at];
        reader.wanted.start += 1;
        reader.waits = true;
        if reader.wanted.is_empty() {
            self.readers.swap_remove(at);
        } else {
            // For the others nothing has changed: with many readers a look at each would cost most of the time.
            self.provide_to(at, stored);
        }
        self.settle(stored);
    }

    /// A reader leaves. What it was reading is fetched until `finish_to`, if policy says that it is worth it.
    pub fn handle_leave(&mut self, id: ReaderId, finish_to: Option<BlockNumber>, stored: Stored<'_>) {
        let Some(at) = self.readers.iter().position(|reader| reader.id == id) else { return };
        let reader = self.readers.swap_remove(at);
        if let Some(fill) = self.fills.iter_mut().find(|fill| Some(fill.id) == reader.fill) {
            fill.finish_to = fill.finish_to.max(finish_to.unwrap_or(0));
        }
        self.settle(stored);
    }

    /// Blocks are wanted soon, by no reader yet: the next segment of a session.
    pub fn prefetch(&mut self, blocks: Range<BlockNumber>, stored: Stored<'_>) {
        let missing = blocks.clone().find(|block| !self.has(*block, stored));
        if let Some(from) = missing.filter(|from| self.fill_near(*from).is_none() && self.may_fetch()) {
            let fill = self.fetch(from, Some(blocks.end), 0, stored);
            fill.finish_to = blocks.end;
        }
    }

    /// A block of a fill is complete. It stays in memory while it is among the fill's last ones, whether it was stored or
    /// not.
    pub fn handle_block(&mut self, id: FillId, stored: Stored<'_>) {
        let keep = self.settings.ahead_blocks as usize + 1;
        let Some(fill) = self.fills.iter_mut().find(|fill| fill.id == id && fill.is_open()) else { return };
        fill.last.push_back(fill.at);
        if fill.last.len() > keep {
            fill.last.pop_front();
        }
        fill.at += 1;
        fill.failures = 0;
        self.provide(stored);
        self.settle(stored);
    }

    /// A fill's response has ended.
    pub fn handle_end(&mut self, id: FillId, end: End, stored: Stored<'_>) {
        let Some(fill) = self.fills.iter_mut().find(|fill| fill.id == id && fill.is_open()) else { return };
        fill.state = FillState::Ended;
        let (at, fill_end, failures) = (fill.at, fill.end, fill.failures + 1);
        let is_open_ended = fill.asked_end.is_none();
        if let End::Complete { at } = end
            && self.version.length.is_none()
            && is_open_ended
        {
            self.handle_length(at);
        }
        let needs_more =
            fill_end.is_none_or(|end| at < end) && self.blocks().is_none_or(|blocks| at < blocks);
        if needs_more && (failures >= FAILURES_MAX || !self.may_continue(at)) {
            self.give_up_on(id);
        } else if needs_more && self.readers.iter().any(|reader| reader.waits && reader.fill == Some(id)) {
            let next = self.fetch(at, fill_end, failures, stored).id;
            for reader in self.readers.iter_mut().filter(|reader| reader.waits && reader.fill == Some(id)) {
                reader.fill = Some(next);
            }
        }
        self.provide(stored);
        self.settle(stored);
    }

    fn handle_length(&mut self, length: u64) {
        self.version.length = Some(length);
        self.actions.push_back(Action::Length(length));
        let blocks = self.layout.blocks_in(length);
        for reader in &mut self.readers {
            reader.wanted.end = reader.wanted.end.min(blocks);
        }
        self.readers.retain(|reader| !reader.wanted.is_empty());
    }

    pub(super) fn blocks(&self) -> Option<u32> {
        self.version.length.map(|length| self.layout.blocks_in(length))
    }

    /// Whether parts of another response may follow: they are known to be of the same version.
    fn may_continue(&self, from: BlockNumber) -> bool {
        !self.is_known || from == 0 || (self.version.validator.is_some() && !self.ignores_ranges)
    }

    /// Whether one more fill may begin.
    fn may_fetch(&self) -> bool {
        let alone = self.is_known && (self.version.validator.is_none() || self.ignores_ranges);
        let fills_max = if alone || !self.is_known { 1 } else { self.settings.fills_max };
        self.fills.iter().filter(|fill| fill.is_open()).count() < fills_max
    }

    /// Readers who wait for this fill get their own responses, or are cut.
    pub(super) fn give_up_on(&mut self, id: FillId) {
        let theirs = |reader: &&Reader| reader.waits && (reader.fill == Some(id) || reader.fill.is_none());
        let waiting: Vec<_> = self.readers.iter().filter(theirs).map(|reader| reader.id).collect();
        for id in waiting {
            self.give_up_reader(id);
        }
    }

    pub(super) fn give_up_reader(&mut self, id: ReaderId) {
        let Some(at) = self.readers.iter().position(|reader| reader.id == id) else { return };
        let reader = self.readers.swap_remove(at);
        self.actions.push_back(match reader.began {
            true => Action::Cut { reader: id, reason: CutReason::OriginFailed },
            false => Action::Pass(id),
        });
    }

    pub(super) fn close(&mut self, id: FillId) {
        self.actions.push_back(Action::Close(id));
        self.fills.retain(|fill| fill.id != id);
    }

    pub(super) fn drop_fill(&mut self, id: FillId) {
        self.close(id);
        self.detach(id);
    }

    fn detach(&mut self, id: FillId) {
        for reader in self.readers.iter_mut().filter(|reader| reader.fill == Some(id)) {
            reader.fill = None;
        }
    }

    /// Whether a block can be served: it is stored, or in memory.
    fn has(&self, block: BlockNumber, stored: Stored<'_>) -> bool {
        self.is_known && (stored(block) || self.fills.iter().any(|fill| fill.last.contains(&block)))
    }

    /// The fill that comes to a block within about a block.
    fn fill_near(&self, block: BlockNumber) -> Option<FillId> {
        let within = if self.ignores_ranges || !self.is_known { u32::MAX } else { 1 };
        let near = |fill: &&Fill| {
            fill.is_open()
                && fill.at <= block
                && block - fill.at <= within
                && fill.end.is_none_or(|end| block < end)
        };
        self.fills.iter().find(near).map(|fill| fill.id)
    }

    /// A fill that will come to a block, later.
    fn fill_before(&self, block: BlockNumber) -> Option<FillId> {
        let comes =
            |fill: &&Fill| fill.is_open() && fill.at <= block && fill.end.is_none_or(|end| block < end);
        self.fills.iter().find(comes).map(|fill| fill.id)
    }

    /// Serves those who wait for what is here, and lets the others join a fill or begin one.
    pub(super) fn provide(&mut self, stored: Stored<'_>) {
        for at in (0..self.readers.len()).rev() {
            if self.readers[at].waits {
                self.provide_to(at, stored);
            }
        }
    }

    /// Serves one reader, who waits, what is here, or lets it join a fill or begin one.
    fn provide_to(&mut self, at: usize, stored: Stored<'_>) {
        let Reader { id, ref wanted, began, .. } = self.readers[at];
        let Range { start: block, end: last } = *wanted;
        if self.has(block, stored) {
            (self.readers[at].waits, self.readers[at].began) = (false, true);
            self.actions.push_back(Action::Serve { reader: id, block });
            return;
        }
        let fill = if let Some(near) = self.fill_near(block) {
            Some(near)
        } else if self.may_fetch() && self.may_continue(block) {
            Some(self.fetch(block, Some(last), 0, stored).id)
        } else if let Some(comes) = self.fill_before(block) {
            Some(comes)
        } else if (began && self.may_continue(block)) || !self.is_known {
            // As soon as one of the fills ends, or has told what the object is.
            None
        } else {
            return self.give_up_reader(id);
        };
        self.readers[at].fill = fill;
    }

    /// Steers; who waits for a fill that was closed, or for any to end, is provided for.
    pub(super) fn settle(&mut self, stored: Stored<'_>) {
        while self.steer() {
            self.provide(stored);
        }
    }

    /// Begins a fill, which ends where blocks are stored or another fill has begun.
    fn fetch(
        &mut self,
        from: BlockNumber,
        to: Option<BlockNumber>,
        failures: u32,
        stored: Stored<'_>,
    ) -> &mut Fill {
        let mut end = if self.is_known { to.or(self.blocks()) } else { None };
        if let Some(limit) = end {
            let others = self.fills.iter().filter(|fill| fill.is_open() && fill.at > from);
            let others = others.map(|fill| fill.at).min();
            let limit = limit.min(others.unwrap_or(limit));
            end = Some((from + 1..limit).find(|block| stored(*block)).unwrap_or(limit));
        }
        // A fill that would come here later ends here.
        for fill in self.fills.iter_mut().filter(|fill| fill.at < from) {
            fill.end = Some(fill.end.map_or(from, |end| end.min(from)));
        }
        let id = self.next_fill;
        self.next_fill = self.next_fill.wrapping_add(1);
        let if_range = self.version.validator.filter(|_| self.is_known);
        self.actions.push_back(Action::Fetch { fill: id, from, to: end, if_range });
        let at = self.fills.len();
        self.fills.push(Fill {
            id,
            at: from,
            end,
            asked_end: end,
            finish_to: 0,
            state: FillState::Asked,
            last: VecDeque::new(),
            failures,
        });
        &mut self.fills[at]
    }

    /// Lets fills read, pause or close, as their readers want. Returns whether one was closed.
    fn steer(&mut self) -> bool {
        let mut has_closed = false;
        for at in (0..self.fills.len()).rev() {
            let fill = &self.fills[at];
            let (id, ahead) = (fill.id, self.settings.ahead_blocks);
            let ended = fill.end.is_some_and(|end| fill.at >= end);
            let theirs = || self.readers.iter().filter(|reader| reader.fill == Some(id));
            let has_reader = theirs().any(|reader| reader.wanted.end > fill.at) || fill.at < fill.finish_to;
            // Only a response whose end was asked for ends by itself.
            let closes = fill.is_open() && ((ended && fill.asked_end != fill.end) || (!ended && !has_reader));
            if closes {
                self.actions.push_back(Action::Close(id));
                has_closed = true;
            }
            if closes || !fill.is_open() {
                if theirs().any(|reader| fill.last.contains(&reader.wanted.start)) {
                    self.fills[at].state = FillState::Ended;
                } else {
                    self.fills.swap_remove(at);
                }
                continue;
            }
            let near = |reader: &Reader| reader.waits || fill.at < reader.wanted.start.saturating_add(ahead);
            let wanted = theirs().any(near);
            let wanted = ended || wanted || fill.at < fill.finish_to;
            let fill = &mut self.fills[at];
            match fill.state {
                FillState::Flows if !wanted => {
                    fill.state = FillState::Paused;
                    self.actions.push_back(Action::Pause(id));
                }
                FillState::Paused if wanted => {
                    fill.state = FillState::Flows;
                    self.actions.push_back(Action::Resume(id));
                }
                _ => {}
            }
        }
        has_closed
    }
}
