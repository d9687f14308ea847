//! The streams of one connection: a table by number, and what is remembered of those that are gone.

use std::collections::VecDeque;

use baton_buf::{Aggregate, Slice};

use super::bounds::RECENT_RESETS_MAX;
use super::priority::Priority;
use super::window::{INITIAL_WINDOW, ReceiveWindow, SendWindow};

/// One request and its response.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) id: u32,
    pub(crate) priority: Priority,

    // The request
    pub(crate) receiving: Receiving,
    /// What Content-Length leaves to come.
    pub(crate) body_left: Option<u64>,
    pub(crate) receive: ReceiveWindow,
    /// What unconsumed DATA cost beyond their bytes.
    pub(crate) small_data: u64,

    // The response
    pub(crate) sending: Sending,
    pub(crate) send: SendWindow,
    /// Not framed yet.
    pub(crate) body: Aggregate,
    /// The block behind the body.
    pub(crate) trailers: Option<Slice>,
    pub(crate) turn: Turn,
    /// An extended CONNECT that was accepted: the halves end on their own.
    pub(crate) is_tunnel: bool,

    /// The owner has not finished with the stream: it counts, whatever its state (CVE-2023-44487).
    pub(crate) is_at_work: bool,
}

/// The client's half of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Receiving {
    /// The body goes on.
    Open,
    /// The client has ended or reset it.
    Ended,
    /// The server has reset it: what comes was sent before the client knew.
    Ignored,
}

/// The server's half of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// More may be queued.
    Open,
    /// The stream ends behind what is queued.
    Ending,
    /// All is framed, or the stream was reset.
    Closed,
}

/// Where a stream is while the body of its response leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The stream has nothing to send, or no window.
    Idle,
    /// The stream is in the queue of its urgency.
    Queued,
    /// The range of a file in front is not in memory.
    Parked,
}

impl Stream {
    fn new(id: u32, window: u32) -> Self {
        Self {
            id,
            priority: Priority::default(),
            receiving: Receiving::Open,
            body_left: None,
            receive: ReceiveWindow::new(INITIAL_WINDOW),
            small_data: 0,
            sending: Sending::Open,
            send: SendWindow::new(window),
            body: Aggregate::new(),
            trailers: None,
            turn: Turn::Idle,
            is_tunnel: false,
            is_at_work: true,
        }
    }

    /// Whether the stream belongs into a queue.
    pub(crate) fn wants_turn(&self) -> bool {
        self.turn == Turn::Idle && !self.body.is_empty() && self.send.available() > 0
    }
}

/// What a number stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamStatus {
    /// A stream in the table, at this place.
    At(Slot),
    /// The server has reset it a short while ago.
    Reset,
    /// The stream was open once.
    Closed,
    /// The client has not opened it yet.
    Idle,
}

/// A place in the table.
pub(crate) type Slot = u16;

/// Streams in places that do not move.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    free: Vec<Slot>,
    /// Sorted, since numbers rise: new ones go to the end.
    by_id: Vec<(u32, Slot)>,
    highest: u32,
    resets: VecDeque<u32>,
}

impl Streams {
    /// How many streams there are.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// The highest number that the client has used.
    pub(crate) fn highest(&self) -> u32 {
        self.highest
    }

    /// Streams that the server has reset a short while ago, the oldest first.
    pub(crate) fn resets(&self) -> impl ExactSizeIterator<Item = u32> {
        self.resets.iter().copied()
    }

    /// What is known of a number.
    pub(crate) fn find(&self, id: u32) -> StreamStatus {
        if id > self.highest {
            return StreamStatus::Idle;
        }
        match self.slot_of(id) {
            Some(slot) => StreamStatus::At(slot),
            None if self.resets.contains(&id) => StreamStatus::Reset,
            None => StreamStatus::Closed,
        }
    }

    /// The place of a stream in the table.
    pub(crate) fn slot_of(&self, id: u32) -> Option<Slot> {
        self.index_of(id).ok().map(|index| self.by_id[index].1)
    }

    fn index_of(&self, id: u32) -> Result<usize, usize> {
        self.by_id.binary_search_by_key(&id, |(id, _)| *id)
    }

    pub(crate) fn at(&self, slot: Slot) -> &Stream {
        &self.slots[usize::from(slot)]
    }

    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Stream {
        &mut self.slots[usize::from(slot)]
    }

    /// All streams in order of their numbers. Owned, since a walk over them changes them; for rare occasions.
    pub(crate) fn slots(&self) -> Vec<Slot> {
        self.by_id.iter().map(|(_, slot)| *slot).collect()
    }

    /// The client has used a number, higher than all before.
    pub(crate) fn note(&mut self, id: u32) {
        debug_assert!(id > self.highest);
        self.highest = id;
    }

    /// Opens the stream that was noted last, with a window of this size for its response.
    pub(crate) fn open(&mut self, window: u32) -> Slot {
        let stream = Stream::new(self.highest, window);
        let slot = match self.free.pop() {
            Some(slot) => {
                let place = self.at_mut(slot);
                // The list of pieces keeps its memory.
                let body = std::mem::take(&mut place.body);
                *place = Stream { body, ..stream };
                slot
            }
            None => {
                self.slots.push(stream);
                (self.slots.len() - 1) as Slot
            }
        };
        self.by_id.push((self.highest, slot));
        slot
    }

    /// Removes a stream if both halves are closed and its owner has finished.
    pub(crate) fn remove_closed(&mut self, slot: Slot) {
        let stream = self.at_mut(slot);
        if stream.is_at_work || stream.sending != Sending::Closed {
            return;
        }
        debug_assert!(stream.receiving != Receiving::Open && stream.turn == Turn::Idle);
        debug_assert!(stream.body.is_empty() && stream.receive.held() == 0);
        let id = stream.id;
        if let Ok(index) = self.index_of(id) {
            self.by_id.remove(index);
            self.free.push(slot);
        }
    }

    /// Frames on this stream are to be ignored for a while.
    pub(crate) fn remember_reset(&mut self, id: u32) {
        if self.resets.len() == RECENT_RESETS_MAX {
            self.resets.pop_front();
        }
        self.resets.push_back(id);
    }

    /// Gives memory back while there are no streams.
    pub(crate) fn release_memory(&mut self) {
        if self.by_id.is_empty() {
            let (highest, mut resets) = (self.highest, std::mem::take(&mut self.resets));
            resets.shrink_to_fit();
            *self = Self { highest, resets, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(streams: &mut Streams, id: u32) {
        let slot = streams.slot_of(id).unwrap();
        let stream = streams.at_mut(slot);
        (stream.sending, stream.receiving, stream.is_at_work) = (Sending::Closed, Receiving::Ended, false);
        streams.remove_closed(slot);
    }

    #[test]
    fn places_are_used_again_and_numbers_are_not() {
        let mut streams = Streams::default();
        assert_eq!(streams.find(1), StreamStatus::Idle);
        for id in [1, 3, 9] {
            streams.note(id);
            streams.open(7);
        }
        assert_eq!(streams.find(3), StreamStatus::At(1));
        assert_eq!(
            streams.find(5),
            StreamStatus::Closed,
            "skipped numbers are closed (RFC 9113 section 5.1.1)"
        );
        close(&mut streams, 3);
        assert_eq!((streams.find(3), streams.len()), (StreamStatus::Closed, 2));
        streams.note(11);
        assert_eq!(streams.open(7), 1);
        assert_eq!(streams.find(11), StreamStatus::At(1));
        assert_eq!(streams.slots(), [0, 2, 1]);
    }

    #[test]
    fn a_stream_counts_until_its_owner_has_finished() {
        let mut streams = Streams::default();
        streams.note(1);
        let slot = streams.open(7);
        let stream = streams.at_mut(slot);
        (stream.sending, stream.receiving) = (Sending::Closed, Receiving::Ended);
        streams.remove_closed(slot);
        assert_eq!(streams.len(), 1);
        close(&mut streams, 1);
        assert_eq!(streams.len(), 0);
    }

    #[test]
    fn the_last_resets_are_remembered() {
        let mut streams = Streams::default();
        let ids = (1..).step_by(2).take(RECENT_RESETS_MAX + 1);
        for id in ids {
            streams.note(id);
            streams.remember_reset(id);
        }
        assert_eq!(streams.find(1), StreamStatus::Closed);
        assert_eq!(streams.find(3), StreamStatus::Reset);
        streams.release_memory();
        assert_eq!(
            (streams.find(3), streams.find(streams.highest() + 2)),
            (StreamStatus::Reset, StreamStatus::Idle)
        );
    }
}
