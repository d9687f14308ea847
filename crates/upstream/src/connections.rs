//! The connections of one loop, by the data of their epoll events.

use std::ops::Range;

use crate::connection::Connection;

/// Identifies a connection. The id of a closed connection finds nothing, even if another one uses its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionId {
    index: u16,
    generation: u16,
}

impl ConnectionId {
    /// The range of epoll data used for connections.
    pub(crate) const DATA: Range<u64> = 1 << 31..1 << 32;

    pub(crate) fn to_data(self) -> u64 {
        Self::DATA.start | u64::from(self.generation) << 16 | u64::from(self.index)
    }

    /// The id under which epoll reports the waker of a pool.
    pub(crate) fn for_waker(pool: usize) -> Self {
        Self { index: WAKER_INDEX, generation: pool as u16 & GENERATION_MASK }
    }

    /// The pool, if this is the id of a waker.
    pub(crate) fn pool_of_waker(self) -> Option<usize> {
        (self.index == WAKER_INDEX).then_some(self.generation.into())
    }

    pub(crate) fn from_data(data: u64) -> Self {
        Self { index: data as u16, generation: (data >> 16) as u16 & GENERATION_MASK }
    }
}

/// Connections by id. Slots are reused.
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
    /// Reserves a slot; `None` if all indices are in use.
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

    /// Puts a connection into its reserved slot.
    pub(crate) fn put(&mut self, id: ConnectionId, connection: Box<Connection>) {
        self.slots[usize::from(id.index)].connection = Some(connection);
    }

    /// The connection, if it still exists.
    pub(crate) fn get(&self, id: ConnectionId) -> Option<&Connection> {
        let slot = self.slots.get(usize::from(id.index))?;
        slot.connection.as_deref().filter(|_| slot.generation == id.generation)
    }

    /// The connection, if it still exists, to change it.
    pub(crate) fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(usize::from(id.index))?;
        slot.connection.as_deref_mut().filter(|_| slot.generation == id.generation)
    }

    /// Removes a connection, or gives a reserved slot back.
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

/// The index in ids of wakers.
const WAKER_INDEX: u16 = u16::MAX;

/// The bits of the generation: 31 without the 16 of the index.
const GENERATION_MASK: u16 = (1 << 15) - 1;
