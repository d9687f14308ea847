//! The connections of one loop, found by what epoll carries.

use std::ops::Range;

use crate::connection::Connection;

/// Names a connection for as long as it lives: the id of one that is gone finds nothing, even when its place is taken
/// by another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    index: u16,
    generation: u16,
}

impl ConnectionId {
    /// The numbers that epoll carries for connections.
    pub(crate) const DATA: Range<u64> = 1 << 31..1 << 32;

    pub(crate) fn to_data(self) -> u64 {
        Self::DATA.start | u64::from(self.generation) << 16 | u64::from(self.index)
    }

    /// What epoll carries for the bell of a pool: no connection's.
    pub(crate) fn for_waker(pool: usize) -> Self {
        Self { index: WAKER_INDEX, generation: pool as u16 & GENERATION_MASK }
    }

    /// The pool whose bell it is.
    pub(crate) fn pool_of_waker(self) -> Option<usize> {
        (self.index == WAKER_INDEX).then_some(self.generation.into())
    }

    pub(crate) fn from_data(data: u64) -> Self {
        Self { index: data as u16, generation: (data >> 16) as u16 & GENERATION_MASK }
    }
}

/// Connections by id. Places are used again.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    slots: Vec<Slot>,
    free: Vec<u16>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u16,
    connection: Option<Box<Connection>>,
}

impl Connections {
    /// A place for one more, if the numbers suffice.
    pub(crate) fn reserve(&mut self) -> Option<ConnectionId> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u16::try_from(self.slots.len()).ok().filter(|index| *index != WAKER_INDEX)?;
                self.slots.push(Slot::default());
                index
            }
        };
        Some(ConnectionId { index, generation: self.slots[usize::from(index)].generation })
    }

    /// Puts a connection into its place.
    pub(crate) fn put(&mut self, id: ConnectionId, connection: Box<Connection>) {
        self.slots[usize::from(id.index)].connection = Some(connection);
    }

    /// The connection, if it still is.
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(usize::from(id.index))?;
        slot.connection.as_deref_mut().filter(|_| slot.generation == id.generation)
    }

    /// Takes a connection, or a place for one, away.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Box<Connection>> {
        let slot = self.slots.get_mut(usize::from(id.index))?;
        if slot.generation != id.generation {
            return None;
        }
        slot.generation = (slot.generation + 1) & GENERATION_MASK;
        self.free.push(id.index);
        slot.connection.take()
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = ConnectionId { index: index as u16, generation: slot.generation };
            slot.connection.as_deref().map(|connection| (id, connection))
        })
    }
}

/// In the place of an index.
const WAKER_INDEX: u16 = u16::MAX;

/// What is left of 31 bits behind the index.
const GENERATION_MASK: u16 = (1 << 15) - 1;
