//! An application in the simulation: processes behind a Unix socket that do what a request tells them to.
//!
//! It speaks FastCGI with the application's end of `baton_fcgi`, SCGI, or HTTP/1 as an origin does, over real sockets that never block: they
//! belong to this thread alone, so that what they do depends on nothing but the order of events.

mod answer;
mod cached;
mod fastcgi;
mod http1;
mod manner;
mod on_client;
mod region;
mod scene;
mod scgi;

use std::io::{ErrorKind, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::rc::Rc;

use baton_upstream::Protocol;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

pub(crate) use answer::AFTER_FILES;
pub(crate) use manner::{Manner, Query, REDIRECTED_TO};

use super::choices::Choices;
use super::ledger::Ledger;
use super::site::Folder;
use fastcgi::{Behind, FastCgi};
use http1::Http1;
use on_client::{OnClient, Sent};
use scene::Scene;
use scgi::Scgi;

/// The processes of an application.
#[derive(Debug)]
pub(crate) struct Application {
    listener: UnixListener,
    /// What the server has asked of it.
    ledger: Rc<Ledger>,
    protocol: Protocol,
    processes_max: usize,
    /// Bytes that are read or written at a time.
    piece_bytes_max: usize,
    /// Whether processes close idle connections.
    closes_idle: bool,
    /// Whether it takes offers up.
    knows_offers: bool,
    processes: Vec<Process>,
    /// Connections so far.
    connections: usize,
    /// Whether processes give the rest of an answer back when the client's socket is full.
    gives_back: bool,
    /// Children of processes that have ended, which have a client's socket still.
    children: Vec<OnClient>,
    /// Clients' sockets that children keep and do not use.
    kept: Vec<OwnedFd>,
}

/// A process with its connection.
#[derive(Debug)]
struct Process {
    stream: UnixStream,
    /// Its number.
    connection: usize,
    codec: Codec,
    out: Vec<u8>,
    /// Whether the connection ends when all is written.
    closes: bool,
    has_answered: bool,
    /// What goes on with an answer when this process has ended.
    child: Option<OnClient>,
}

#[derive(Debug)]
enum Codec {
    FastCgi(Box<FastCgi>),
    Scgi(Scgi),
    Http1(Http1),
}

impl Application {
    pub(crate) fn listen(
        folder: &Folder,
        ledger: Rc<Ledger>,
        protocol: Protocol,
        choices: &mut Choices,
    ) -> Self {
        let path = folder.socket();
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            ledger,
            protocol,
            processes_max: choices.one(&[1, 2, 8, PROCESSES_MANY]),
            piece_bytes_max: choices.one(&[1_000, 30_000, 1_000_000]),
            closes_idle: choices.chance(20),
            knows_offers: choices.chance(70),
            processes: Vec::new(),
            connections: 0,
            gives_back: choices.chance(50),
            children: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// Whether it has a process for each connection that the server may open, and reads so much at a time that the
    /// server sees progress within its patience: a socket that was full has room again only when most has been read.
    pub(crate) fn is_prompt(&self) -> bool {
        self.processes_max == PROCESSES_MANY && self.piece_bytes_max >= 30_000
    }

    /// Whether something can be done.
    pub(crate) fn has_work(&self) -> bool {
        let listener =
            (self.processes.len() < self.processes_max).then(|| PollFd::new(&self.listener, PollFlags::IN));
        let mut watched: Vec<_> = listener.into_iter().collect();
        for process in &self.processes {
            let room = if process.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            watched.push(PollFd::new(&process.stream, PollFlags::IN | room));
            watched.extend(process.client().map(|client| PollFd::from_borrowed_fd(client, PollFlags::OUT)));
        }
        watched.extend(self.children.iter().map(|child| PollFd::new(child, PollFlags::OUT)));
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    /// Does a part of it.
    pub(crate) fn act(&mut self, folder: &Folder, choices: &mut Choices) {
        while self.processes.len() < self.processes_max {
            let Ok((stream, _)) = self.listener.accept() else { break };
            stream.set_nonblocking(true).unwrap();
            let codec = Codec::new(self.protocol, self.knows_offers, self.gives_back);
            self.connections += 1;
            self.processes.push(Process::new(stream, self.connections, codec));
        }
        let (bytes_max, closes_idle) = (self.piece_bytes_max, self.closes_idle);
        let ledger = &self.ledger;
        for process in self.processes.iter().filter(|process| process.is_given_up()) {
            ledger.end(process.connection);
        }
        self.children
            .retain_mut(|child| !matches!(child.write(choices.size(bytes_max)), Sent::All | Sent::Gone));
        self.processes.retain_mut(|process| {
            let connection = (!process.is_given_up()).then_some(process.connection);
            let scene = Scene { folder, ledger, connection };
            let goes_on = process.read(choices.size(bytes_max), scene, choices)
                && process.write(choices.size(bytes_max), choices);
            self.children.extend(process.child.take());
            if let Codec::FastCgi(fastcgi) = &mut process.codec {
                self.kept.append(&mut fastcgi.take_kept());
            }
            let stays = goes_on && !(closes_idle && process.is_idle() && choices.chance(30));
            if !stays || process.has_written() {
                ledger.end(process.connection);
            }
            stays
        });
    }
}

impl Codec {
    fn new(protocol: Protocol, knows_offers: bool, gives_back: bool) -> Self {
        match protocol {
            Protocol::FastCgi => Self::FastCgi(Box::new(FastCgi::new(knows_offers, gives_back))),
            Protocol::Scgi => Self::Scgi(Scgi::default()),
            Protocol::Http1 => Self::Http1(Http1::default()),
        }
    }
}

impl Process {
    fn new(stream: UnixStream, connection: usize, codec: Codec) -> Self {
        Self { stream, connection, codec, out: Vec::new(), closes: false, has_answered: false, child: None }
    }

    /// The client's socket, while an answer is written to it.
    fn client(&self) -> Option<BorrowedFd<'_>> {
        match &self.codec {
            Codec::FastCgi(fastcgi) => fastcgi.client(),
            Codec::Scgi(_) | Codec::Http1(_) => None,
        }
    }

    /// Reads at most so many bytes; `false`: the connection is over.
    fn read(&mut self, bytes_max: usize, scene: Scene<'_>, choices: &mut Choices) -> bool {
        let mut input = vec![0; bytes_max];
        let (count, descriptors) = match receive(&self.stream, &mut input) {
            Ok((0, _)) => return false,
            Ok(received) => received,
            Err(error) => return error == Errno::AGAIN,
        };
        let input = &input[..count];
        match &mut self.codec {
            Codec::FastCgi(it) => it.handle_input(input, descriptors, scene, choices, &mut self.out),
            Codec::Scgi(scgi) => self.closes |= scgi.handle_input(input, scene, &mut self.out),
            Codec::Http1(http1) => {
                self.closes |= http1.handle_input(input, scene, choices, &mut self.out);
                self.has_answered |= !self.out.is_empty();
            }
        }
        true
    }

    /// Writes at most so many bytes; `false`: the connection is over.
    fn write(&mut self, bytes_max: usize, choices: &mut Choices) -> bool {
        if let Codec::FastCgi(fastcgi) = &mut self.codec
            && let Some(behind) = fastcgi.write(bytes_max, choices, &mut self.out)
        {
            self.has_answered = true;
            self.closes = !matches!(behind, Behind::Kept);
            if let Behind::LeavesChild(child) = behind {
                self.child = Some(child);
                return false;
            }
        }
        let piece = &self.out[..self.out.len().min(bytes_max)];
        match self.stream.write(piece) {
            Ok(count) => {
                self.out.drain(..count);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
        !(self.closes && self.out.is_empty())
    }

    fn is_idle(&self) -> bool {
        self.has_answered && self.has_written()
    }

    /// Whether no request is under way, nor anything of an answer.
    fn has_written(&self) -> bool {
        let is_between = match &self.codec {
            Codec::FastCgi(fastcgi) => fastcgi.is_between_requests(),
            Codec::Scgi(_) => false,
            Codec::Http1(http1) => http1.is_between_requests(),
        };
        is_between && self.out.is_empty()
    }

    /// Whether the server has closed the connection.
    fn is_given_up(&self) -> bool {
        let mut watched = [PollFd::new(&self.stream, PollFlags::RDHUP)];
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }
}

/// As many as the connections of the pools of several plans.
const PROCESSES_MANY: usize = 100;

/// Reads once. Returns how many bytes there were, and the descriptors that came with them.
fn receive(stream: &UnixStream, into: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(stream, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(passed) => passed.collect(),
        _ => Vec::new(),
    });
    Ok((received.bytes, descriptors.collect()))
}
