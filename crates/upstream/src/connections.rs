//! The connections of one loop, by the data of their epoll events: what they are watched for, when they are due, and which are
//! to be read without an event.

use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

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

    fn to_event_data(self) -> EventData {
        EventData::new_u64(self.to_data())
    }

    pub(crate) fn from_data(data: u64) -> Self {
        Self { index: data as u16, generation: (data >> 16) as u16 & GENERATION_MASK }
    }
}

/// Connections by id. Slots are reused.
#[derive(Debug)]
pub(crate) struct Connections {
    epoll: Arc<OwnedFd>,
    slots: Vec<Slot>,
    free: Vec<u16>,
    /// Connections to read in the next round without an event.
    requeued: VecDeque<ConnectionId>,
    /// The earliest deadline, or an earlier time; `u64::MAX`: there is none.
    due_ms: u64,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u16,
    connection: Option<Box<Connection>>,
}

impl Connections {
    /// None yet. They will be watched with `epoll`.
    pub(crate) fn new(epoll: Arc<OwnedFd>) -> Self {
        Self { epoll, slots: Vec::new(), free: Vec::new(), requeued: VecDeque::new(), due_ms: u64::MAX }
    }

    /// Adds a connection, and watches it; for room to write, too, if it `awaits_room`.
    ///
    /// # Errors
    /// `EMFILE` if all indices are in use, and those of epoll.
    pub(crate) fn add(
        &mut self,
        mut connection: Box<Connection>,
        awaits_room: bool,
    ) -> Result<ConnectionId, Errno> {
        let index = match self.free.last() {
            Some(index) => *index,
            None => {
                let index = u16::try_from(self.slots.len()).ok().filter(|index| *index != WAKER_INDEX);
                let index = index.ok_or(Errno::MFILE)?;
                self.slots.push(Slot::default());
                self.free.push(index);
                index
            }
        };
        let slot = &mut self.slots[usize::from(index)];
        let id = ConnectionId { index, generation: slot.generation };
        epoll::add(&self.epoll, &connection.channel, id.to_event_data(), interest(awaits_room))?;
        self.free.pop();
        connection.watches_room = awaits_room;
        self.due_ms = self.due_ms.min(connection.phase().due_ms());
        slot.connection = Some(connection);
        Ok(id)
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

    /// Has a connection change in a way that may concern its deadlines. `None`: it does not exist any more.
    pub(crate) fn update<R>(
        &mut self,
        id: ConnectionId,
        change: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let connection = self.get_mut(id)?;
        let result = change(connection);
        let due_ms = connection.phase().due_ms();
        self.due_ms = self.due_ms.min(due_ms);
        Some(result)
    }

    /// There was progress on a connection, see [`Connection::extend_deadline`].
    pub(crate) fn extend_deadline(&mut self, id: ConnectionId, now_ms: u64) {
        self.update(id, |connection| connection.extend_deadline(now_ms));
    }

    /// The client of a connection's request has until then, see [`Connection::give_grace`].
    pub(crate) fn give_grace(&mut self, id: ConnectionId, until_ms: u64) {
        self.update(id, |connection| connection.give_grace(until_ms));
    }

    /// Removes a connection. Its socket closes when the result is dropped.
    pub(crate) fn remove(&mut self, id: ConnectionId) -> Option<Box<Connection>> {
        let slot =
            self.slots.get_mut(usize::from(id.index)).filter(|slot| slot.generation == id.generation)?;
        let connection = slot.connection.take()?;
        slot.generation = (slot.generation + 1) & GENERATION_MASK;
        self.free.push(id.index);
        Some(connection)
    }

    /// Watches a connection no more: another process may have its socket, and then closing it takes nothing out of the interest
    /// set.
    pub(crate) fn unwatch(&self, id: ConnectionId) {
        if let Some(connection) = self.get(id) {
            let _ = epoll::delete(&self.epoll, &connection.channel);
        }
    }

    /// Writes until the socket is full. False: the connection is gone, but there may still be input to read.
    pub(crate) fn write(&mut self, id: ConnectionId) -> bool {
        let Some(connection) = self.get_mut(id) else { return true };
        let Ok(done) = connection.write() else {
            connection.handle_broken_pipe();
            return false;
        };
        // Watch for room only while there is something to write. Otherwise each read of the application would be an event.
        if done == connection.watches_room && self.watch(id, !done).is_err() {
            self.get_mut(id).into_iter().for_each(Connection::handle_broken_pipe);
            return false;
        }
        true
    }

    /// Watches a connection for room to write from now on, or no more.
    ///
    /// # Errors
    /// Those of epoll.
    pub(crate) fn watch(&mut self, id: ConnectionId, awaits_room: bool) -> Result<(), Errno> {
        let epoll = Arc::clone(&self.epoll);
        let Some(connection) = self.get_mut(id) else { return Ok(()) };
        if std::mem::replace(&mut connection.watches_room, awaits_room) != awaits_room {
            epoll::modify(&epoll, &connection.channel, id.to_event_data(), interest(awaits_room))?;
        }
        Ok(())
    }

    /// Tells the application what it may write again in the region that it shares.
    pub(crate) fn tell_free(&mut self, id: ConnectionId) {
        if self.get_mut(id).is_some_and(Connection::tell_free) {
            self.write(id);
        }
    }

    /// Lets a connection be read in the next round without an event.
    pub(crate) fn requeue(&mut self, id: ConnectionId) {
        if let Some(connection) = self.get_mut(id)
            && !std::mem::replace(&mut connection.is_requeued, true)
        {
            self.requeued.push_back(id);
        }
    }

    /// How many connections are to be read without an event.
    pub(crate) fn requeued(&self) -> usize {
        self.requeued.len()
    }

    /// Whether it is one of them.
    pub(crate) fn is_in_queue(&self, id: ConnectionId) -> bool {
        self.requeued.contains(&id)
    }

    /// The next one that is to be read so. `None`: it is closed.
    pub(crate) fn next_requeued(&mut self) -> Option<ConnectionId> {
        let id = self.requeued.pop_front()?;
        self.get_mut(id)?.is_requeued = false;
        Some(id)
    }

    /// The time before which no connection is overdue; `u64::MAX`: none will be.
    pub(crate) fn due_ms(&self) -> u64 {
        self.due_ms
    }

    /// Connections whose deadlines have passed. There are few connections, and most deadlines move before they come, so a scan
    /// is cheaper than an ordered queue.
    pub(crate) fn overdue(&self, now_ms: u64) -> Vec<ConnectionId> {
        let is_due = |connection: &Connection| connection.phase().due_ms() <= now_ms;
        self.iter().filter(|(_, connection)| is_due(connection)).map(|(id, _)| id).collect()
    }

    /// Looks for the earliest deadline, after the overdue ones were handled.
    pub(crate) fn settle_due(&mut self) {
        self.due_ms = self.iter().map(|(_, one)| one.phase().due_ms()).min().unwrap_or(u64::MAX);
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ConnectionId, &Connection)> {
        self.slots.iter().enumerate().filter_map(|(index, slot)| {
            let id = ConnectionId { index: index as u16, generation: slot.generation };
            slot.connection.as_deref().map(|connection| (id, connection))
        })
    }
}

/// The events that a connection is watched for.
fn interest(awaits_room: bool) -> EventFlags {
    let input = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if awaits_room { input | EventFlags::OUT } else { input }
}

/// The index in ids of wakers.
const WAKER_INDEX: u16 = u16::MAX;

/// The bits of the generation: 31 without the 16 of the index.
const GENERATION_MASK: u16 = (1 << 15) - 1;
