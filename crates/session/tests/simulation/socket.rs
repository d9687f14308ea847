//! A connection over a pair of Unix sockets. The client looks into its end without taking anything out, so that it sees
//! output when it is written, as it does in memory, while the kernel's buffer is as full as the client leaves it.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::memory::{Left, Readiness, Unread};
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionread};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown, sockopt};

use super::link::ClientSocket;

/// The client's end.
#[derive(Debug)]
pub(crate) struct SocketEnd {
    own: UnixStream,
    /// A copy of the server's end, to ask the kernel about it. While there is a session: a copy keeps it open.
    servers: Option<UnixStream>,
    /// Watches the server's end as an event loop does.
    epoll: OwnedFd,
    sent: usize,
    /// Bytes that the server had read when its session ended.
    read: usize,
    /// Bytes in the kernel's buffer that have been looked at.
    seen: usize,
    /// Bytes that the client would take, if they were there.
    room: usize,
    /// Output that has been looked at and not been asked for.
    output: Vec<u8>,
    has_left: bool,
    /// Whether the server had ended its output when the client left, whose own end hides the other one from then on.
    server_had_left: bool,
}

/// Both ends; `buffer_bytes`: how many bytes of output the kernel holds, about.
pub(crate) fn connect(buffer_bytes: usize) -> (OwnedFd, SocketEnd) {
    let (servers, own) = UnixStream::pair().unwrap();
    servers.set_nonblocking(true).unwrap();
    sockopt::set_socket_send_buffer_size(&servers, buffer_bytes).unwrap();
    let epoll = epoll::create(CreateFlags::CLOEXEC).unwrap();
    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
    epoll::add(&epoll, &servers, EventData::new_u64(0), flags).unwrap();
    let copy = servers.try_clone().unwrap();
    let end = SocketEnd {
        own,
        servers: Some(copy),
        epoll,
        sent: 0,
        read: 0,
        seen: 0,
        room: 0,
        output: Vec::new(),
        has_left: false,
        server_had_left: false,
    };
    (servers.into(), end)
}

impl SocketEnd {
    /// Looks at the output that has come, and takes as much of it as there is room for.
    fn look(&mut self) {
        if self.has_left {
            return;
        }
        let mut queued = vec![0; unread(&self.own)];
        if queued.len() > self.seen {
            let (_, count) = recv(&self.own, &mut queued[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).unwrap();
            self.output.extend_from_slice(&queued[self.seen..count]);
            self.seen = count;
        }
        while self.room > 0 && self.seen > 0 {
            let len = self.room.min(self.seen);
            let (_, count) = recv(&self.own, &mut queued[..len], RecvFlags::DONTWAIT).unwrap();
            (self.room, self.seen) = (self.room - count, self.seen - count);
        }
    }

    /// What the client's end is ready for.
    fn readiness(&self) -> PollFlags {
        ready(&self.own, PollFlags::RDHUP)
    }
}

impl ClientSocket for SocketEnd {
    fn send(&mut self, bytes: &[u8]) -> usize {
        let count = match send(&self.own, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
            Ok(count) => count,
            Err(Errno::AGAIN) => 0,
            Err(_) => return bytes.len(),
        };
        self.sent += count;
        count
    }

    fn make_room(&mut self, bytes: usize) {
        self.room = self.room.saturating_add(bytes);
        self.look();
    }

    fn end_input(&mut self) {
        // It fails if the server is gone.
        let _ = shutdown(&self.own, Shutdown::Write);
    }

    fn close(&mut self) {
        self.look();
        self.server_had_left = self.readiness().intersects(PollFlags::RDHUP);
        self.has_left = true;
        let _ = shutdown(&self.own, Shutdown::Both);
    }

    fn reset(&mut self) {
        // Unix sockets have none.
        self.close();
    }

    fn take_readiness(&mut self) -> Option<Readiness> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(1);
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&AT_ONCE)).unwrap();
        let flags = events.first()?.flags;
        let is = |which: EventFlags| flags.intersects(which);
        Some(Readiness {
            readable: is(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
            writable: is(EventFlags::OUT),
            input_ends: is(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
            hung_up: is(EventFlags::HUP | EventFlags::ERR),
        })
    }

    fn has_readiness(&self) -> bool {
        !ready(&self.epoll, PollFlags::IN).is_empty()
    }

    fn take_output(&mut self) -> Vec<u8> {
        self.look();
        std::mem::take(&mut self.output)
    }

    fn has_input(&self) -> bool {
        let flags = PollFlags::IN | PollFlags::RDHUP;
        self.servers.as_ref().is_some_and(|servers| !ready(servers, flags).is_empty())
    }

    fn has_room(&self) -> bool {
        self.servers.as_ref().is_some_and(|servers| !ready(servers, PollFlags::OUT).is_empty())
    }

    fn bytes_read(&self) -> usize {
        self.servers.as_ref().map_or(self.read, |servers| self.sent - unread(servers))
    }

    fn server_left(&self) -> Left {
        let is_over = match self.has_left {
            true => self.server_had_left || self.servers.is_none(),
            false => self.readiness().intersects(PollFlags::RDHUP),
        };
        if is_over { Left::InOrder } else { Left::Not }
    }

    fn unread_at_close(&self) -> Unread {
        Unread::Nothing
    }

    fn is_closed_by_server(&self) -> bool {
        self.servers.is_none() && self.readiness().intersects(PollFlags::HUP)
    }

    fn handle_session_end(&mut self) {
        self.read = self.bytes_read();
        self.servers = None;
    }

    fn is_in_memory(&self) -> bool {
        false
    }
}

/// Bytes that can be read.
fn unread(socket: &UnixStream) -> usize {
    ioctl_fionread(socket).unwrap() as usize
}

/// Which of these flags are set now; errors and hang-ups always are.
fn ready(descriptor: &impl std::os::fd::AsFd, flags: PollFlags) -> PollFlags {
    let mut polled = [PollFd::new(descriptor, flags)];
    poll(&mut polled, Some(&AT_ONCE)).unwrap();
    polled[0].revents()
}

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };
