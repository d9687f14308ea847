//! Clients that wait for their sockets.
//!
//! The interest sets live in the kernel, one for reading and one for writing; a client that waits is parked here,
//! and whoever finds it ready takes it out: a client is with one stage at a time, or here.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};

use crate::clients::{Clients, Resident, Token};
use crate::job::Job;
use crate::session::Session;

/// What a client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Input,
    Output,
    /// The end of the connection in both directions, while an application thinks.
    End,
}

/// A client, and the sets that its socket is in.
#[derive(Debug)]
pub(super) struct Traveller {
    pub(super) session: Box<Session>,
    registered: [bool; 3],
    /// Under which number its last request for an application is known.
    pub(super) application: Option<u64>,
    /// What it needs that may take long.
    pub(super) job: Option<Job>,
}

impl Traveller {
    pub(super) fn new(session: Session) -> Self {
        Self { session: Box::new(session), registered: [false; 3], application: None, job: None }
    }
}

impl Resident for Traveller {
    fn deadline_ms(&self) -> u64 {
        self.session.deadline_ms()
    }

    fn is_idle(&self) -> bool {
        self.session.is_idle()
    }
}

/// The clients that wait, and the sets of their sockets.
pub(super) struct Parked {
    waiting: Mutex<Clients<Traveller>>,
    sets: [OwnedFd; 3],
}

impl Parked {
    pub(super) fn new() -> io::Result<Self> {
        let set = || epoll::create(CreateFlags::CLOEXEC);
        Ok(Self { waiting: Mutex::default(), sets: [set()?, set()?, set()?] })
    }

    /// The set of those that wait in this direction.
    pub(super) fn set(&self, direction: Direction) -> &OwnedFd {
        &self.sets[direction as usize]
    }

    /// Parks a client until its socket is ready. Gives it back if the kernel cannot watch it.
    pub(super) fn park(&self, traveller: Traveller, direction: Direction) -> Result<(), Traveller> {
        // It may be found ready, and taken, as soon as it is registered: so it is parked before.
        let mut waiting = self.lock();
        let token = waiting.insert(traveller);
        let Some(guest) = waiting.get_mut(token) else { return Ok(()) };
        match self.watch(&mut guest.client, direction, token.to_data()) {
            Ok(()) => Ok(()),
            Err(_) => waiting.remove(token).map_or(Ok(()), |guest| Err(guest.client)),
        }
    }

    /// Has the kernel tell once, with `data`, that the client's socket is ready.
    pub(super) fn watch(
        &self,
        traveller: &mut Traveller,
        direction: Direction,
        data: u64,
    ) -> rustix::io::Result<()> {
        let flags = match direction {
            Direction::Input => EventFlags::IN | EventFlags::RDHUP,
            Direction::Output => EventFlags::OUT,
            // That a connection is over is told in any case.
            Direction::End => EventFlags::empty(),
        };
        let (set, data) = (self.set(direction), EventData::new_u64(data));
        let (socket, flags) = (traveller.session.socket(), flags | EventFlags::ONESHOT);
        if std::mem::replace(&mut traveller.registered[direction as usize], true) {
            epoll::modify(set, socket, data, flags)
        } else {
            epoll::add(set, socket, data, flags)
        }
    }

    /// Takes a client that is over out of the sets, where closing its socket would not do so: an application may keep a
    /// copy.
    pub(super) fn forget(&self, traveller: &Traveller) {
        let socket = traveller.session.socket();
        for (set, registered) in self.sets.iter().zip(traveller.registered) {
            if registered && socket.was_passed() {
                let _ = epoll::delete(set, socket);
            }
        }
    }

    /// Takes out the clients of these events.
    pub(super) fn take(&self, events: &[Event], into: &mut Vec<Traveller>) {
        let mut waiting = self.lock();
        let tokens = events.iter().map(|event| Token::from_data(event.data.u64()));
        into.extend(tokens.filter_map(|token| waiting.remove(token)).map(|guest| guest.client));
    }

    /// Takes out the clients whose deadline has passed.
    pub(super) fn take_overdue(&self, now_ms: u64) -> Vec<Traveller> {
        self.take_chosen(|waiting, tokens| waiting.overdue(now_ms, tokens))
    }

    /// Takes out the clients that can be closed without loss.
    pub(super) fn take_idle(&self) -> Vec<Traveller> {
        self.take_chosen(Clients::idle)
    }

    /// Takes out all clients.
    pub(super) fn take_all(&self) -> Vec<Traveller> {
        self.take_chosen(Clients::all)
    }

    fn take_chosen(&self, choose: impl Fn(&Clients<Traveller>, &mut Vec<Token>)) -> Vec<Traveller> {
        let (mut waiting, mut tokens) = (self.lock(), Vec::new());
        choose(&waiting, &mut tokens);
        tokens.into_iter().filter_map(|token| waiting.remove(token)).map(|guest| guest.client).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Clients<Traveller>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
