//! An application in the simulation: processes behind a Unix socket that do what a request tells them to.
//!
//! It speaks FastCGI with the application's end of `baton_fcgi`, or SCGI, over real sockets that never block: they
//! belong to this thread alone, so that what they do depends on nothing but the order of events.

mod answer;
mod fastcgi;
mod manner;
mod scgi;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use baton_gateway::Protocol;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) use answer::AFTER_FILES;
pub(crate) use manner::{Manner, Query, REDIRECTED_TO};

use super::choices::Choices;
use super::site::Folder;
use fastcgi::FastCgi;
use scgi::Scgi;

/// The processes of an application.
#[derive(Debug)]
pub(crate) struct Application {
    listener: UnixListener,
    protocol: Protocol,
    processes_max: usize,
    /// Bytes that are read or written at a time.
    piece_bytes_max: usize,
    /// Whether processes close idle connections.
    closes_idle: bool,
    processes: Vec<Process>,
}

/// A process with its connection.
#[derive(Debug)]
struct Process {
    stream: UnixStream,
    codec: Codec,
    out: Vec<u8>,
    /// Whether the connection ends when all is written.
    closes: bool,
    has_answered: bool,
}

#[derive(Debug)]
enum Codec {
    FastCgi(FastCgi),
    Scgi(Scgi),
}

impl Application {
    pub(crate) fn listen(folder: &Folder, protocol: Protocol, choices: &mut Choices) -> Self {
        let path = folder.socket();
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            protocol,
            processes_max: choices.one(&[1, 2, 8]),
            piece_bytes_max: choices.one(&[1_000, 30_000, 1_000_000]),
            closes_idle: choices.chance(20),
            processes: Vec::new(),
        }
    }

    /// Whether something can be done.
    pub(crate) fn has_work(&self) -> bool {
        let listener =
            (self.processes.len() < self.processes_max).then(|| PollFd::new(&self.listener, PollFlags::IN));
        let mut watched: Vec<_> = listener.into_iter().collect();
        for process in &self.processes {
            let room = if process.out.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            watched.push(PollFd::new(&process.stream, PollFlags::IN | room));
        }
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    /// Does a part of it.
    pub(crate) fn act(&mut self, folder: &Folder, choices: &mut Choices) {
        while self.processes.len() < self.processes_max {
            let Ok((stream, _)) = self.listener.accept() else { break };
            stream.set_nonblocking(true).unwrap();
            self.processes.push(Process::new(stream, self.protocol));
        }
        let (piece_bytes_max, closes_idle) = (self.piece_bytes_max, self.closes_idle);
        self.processes.retain_mut(|process| {
            let goes_on = process.read(choices.size(piece_bytes_max), folder, choices)
                && process.write(choices.size(piece_bytes_max));
            goes_on && !(closes_idle && process.is_idle() && choices.chance(30))
        });
    }
}

impl Process {
    fn new(stream: UnixStream, protocol: Protocol) -> Self {
        let codec = match protocol {
            Protocol::FastCgi => Codec::FastCgi(FastCgi::default()),
            Protocol::Scgi => Codec::Scgi(Scgi::default()),
        };
        Self { stream, codec, out: Vec::new(), closes: false, has_answered: false }
    }

    /// Reads at most so many bytes; `false`: the connection is over.
    fn read(&mut self, bytes_max: usize, folder: &Folder, choices: &mut Choices) -> bool {
        let mut input = vec![0; bytes_max];
        let count = match self.stream.read(&mut input) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        };
        let input = &input[..count];
        let ends = match &mut self.codec {
            Codec::FastCgi(fastcgi) => fastcgi.handle_input(input, folder, choices, &mut self.out),
            Codec::Scgi(scgi) => scgi.handle_input(input, folder, &mut self.out),
        };
        if let Some(closes) = ends {
            (self.has_answered, self.closes) = (true, closes);
        }
        true
    }

    /// Writes at most so many bytes; `false`: the connection is over.
    fn write(&mut self, bytes_max: usize) -> bool {
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
        let is_between = match &self.codec {
            Codec::FastCgi(fastcgi) => fastcgi.is_between_requests(),
            Codec::Scgi(_) => false,
        };
        is_between && self.has_answered && self.out.is_empty()
    }
}
