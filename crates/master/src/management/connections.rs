//! Connections to the control socket and the admin listener: one request, one answer, close.
//!
//! The master answers them between its other duties, so everything has a bound: the number of connections, the bytes
//! of a request, the time.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use super::pages;
use rustix::event::PollFlags;
use rustix::net::{RecvFlags, SendFlags, Shutdown};

/// Where a connection came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The control socket: a line is asked, a line is answered.
    Control,
    /// The admin listener: HTTP.
    Admin,
}

/// Names a connection; never reused for another one.
pub(crate) type ConnectionId = u64;

/// The source of a request, which gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requester {
    /// A signal: the log is the answer.
    Signal,
    /// A connection to the control socket.
    Control(ConnectionId),
    /// A connection to the admin listener.
    Admin(ConnectionId, HeadOnly),
}

/// Whether the body of a response is left out.
type HeadOnly = bool;

/// What was read from a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Nothing to do.
    Nothing,
    /// A whole request, to be [answered](Connections::answer), at once or later.
    Request(Endpoint, Vec<u8>),
    /// A request beyond the limit, to be answered, too.
    TooLong(Endpoint),
}

/// The connections.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    all: BTreeMap<ConnectionId, Connection>,
    next_id: ConnectionId,
}

#[derive(Debug)]
struct Connection {
    endpoint: Endpoint,
    socket: OwnedFd,
    state: State,
    deadline: Instant,
}

#[derive(Debug)]
enum State {
    /// The request so far.
    Reading(Vec<u8>),
    /// The master works on the answer.
    Waiting,
    /// The answer, and how many of its bytes are sent.
    Writing(Vec<u8>, usize),
}

impl Connections {
    /// Connections at one endpoint at a time.
    const PER_ENDPOINT_MAX: usize = 32;
    /// Bytes of a request.
    const REQUEST_BYTES_MAX: usize = 64 * 1024;
    /// The time for sending the request, and again for taking the answer; longer than any reload.
    const PATIENCE: Duration = Duration::from_secs(15);

    /// Takes a connection over. If there are too many, the oldest that has not sent its request goes: who is slow keeps no
    /// others out. If there is none, the new one is closed at once.
    pub(crate) fn add(&mut self, endpoint: Endpoint, socket: OwnedFd, now: Instant) {
        let its = || self.all.iter().filter(|(_, connection)| connection.endpoint == endpoint);
        if its().count() >= Self::PER_ENDPOINT_MAX {
            let unfinished = its().find(|(_, connection)| matches!(connection.state, State::Reading(_)));
            let Some(id) = unfinished.map(|(id, _)| *id) else { return };
            self.all.remove(&id);
        }
        let connection = Connection {
            endpoint,
            socket,
            state: State::Reading(Vec::new()),
            deadline: now + Self::PATIENCE,
        };
        self.all.insert(self.next_id, connection);
        self.next_id += 1;
    }

    /// What to wait for: a connection's socket and readiness. Hang-ups are always reported.
    pub(crate) fn interests(&self) -> impl Iterator<Item = (ConnectionId, BorrowedFd<'_>, PollFlags)> {
        self.all.iter().map(|(&id, connection)| {
            let flags = match connection.state {
                State::Reading(_) => PollFlags::IN,
                State::Waiting => PollFlags::empty(),
                State::Writing(..) => PollFlags::OUT,
            };
            (id, connection.socket.as_fd(), flags)
        })
    }

    /// A connection's socket is ready, or hung up.
    pub(crate) fn handle_ready(&mut self, id: ConnectionId) -> Received {
        let Some(connection) = self.all.get_mut(&id) else { return Received::Nothing };
        match &mut connection.state {
            State::Reading(request) => match receive(&connection.socket, request, Self::REQUEST_BYTES_MAX) {
                Ok(()) if is_complete(connection.endpoint, request) => {
                    let request = std::mem::take(request);
                    connection.state = State::Waiting;
                    return Received::Request(connection.endpoint, request);
                }
                Ok(()) if request.len() >= Self::REQUEST_BYTES_MAX => {
                    connection.state = State::Waiting;
                    return Received::TooLong(connection.endpoint);
                }
                Ok(()) => {}
                Err(_) => drop(self.all.remove(&id)),
            },
            State::Waiting => drop(self.all.remove(&id)),
            State::Writing(..) => self.send_on(id),
        }
        Received::Nothing
    }

    /// Answers a connection, which may be closed by now.
    pub(crate) fn answer(&mut self, id: ConnectionId, answer: Vec<u8>, now: Instant) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.state = State::Writing(answer, 0);
            connection.deadline = now + Self::PATIENCE;
            self.send_on(id);
        }
    }

    /// The server's own address of a connection; `None`: a Unix socket.
    pub(crate) fn local(&self, id: ConnectionId) -> Option<IpAddr> {
        let address = rustix::net::getsockname(&self.all.get(&id)?.socket).ok()?;
        SocketAddr::try_from(address).ok().map(|address| address.ip())
    }

    /// When [`expire`](Self::expire) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.all.values().map(|connection| connection.deadline).min()
    }

    /// Closes connections that took too long.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.all.retain(|_, connection| now < connection.deadline);
    }

    fn send_on(&mut self, id: ConnectionId) {
        let Some(Connection { socket, state: State::Writing(answer, sent), .. }) = self.all.get_mut(&id)
        else {
            return;
        };
        while *sent < answer.len() {
            match rustix::net::send(&*socket, &answer[*sent..], SendFlags::NOSIGNAL) {
                Ok(bytes) => *sent += bytes,
                Err(rustix::io::Errno::AGAIN) => return,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        // All is sent, or the client has closed the connection: either way it is done.
        let _ = rustix::net::shutdown(&*socket, Shutdown::Write);
        self.all.remove(&id);
    }
}

/// Adds to `request` what has arrived.
fn receive(socket: &OwnedFd, request: &mut Vec<u8>, bytes_max: usize) -> io::Result<()> {
    let mut chunk = [0; 4096];
    let room = chunk.len().min(bytes_max - request.len());
    match rustix::net::recv(socket, &mut chunk[..room], RecvFlags::DONTWAIT) {
        Ok((0, _)) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok((bytes, _)) => {
            request.extend_from_slice(&chunk[..bytes]);
            Ok(())
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_complete(endpoint: Endpoint, request: &[u8]) -> bool {
    match endpoint {
        Endpoint::Control => request.ends_with(b"\n"),
        Endpoint::Admin => pages::is_complete(request),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn connect(connections: &mut Connections, endpoint: Endpoint) -> UnixStream {
        let (client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        connections.add(endpoint, server.into(), Instant::now());
        client
    }

    #[test]
    fn a_request_in_pieces_gets_a_large_answer_in_pieces() {
        let mut connections = Connections::default();
        let mut client = connect(&mut connections, Endpoint::Admin);
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
        assert_eq!(connections.handle_ready(0), Received::Nothing);
        client.write_all(b" a\r\n\r\n").unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        assert_eq!(connections.handle_ready(0), Received::Request(Endpoint::Admin, request));

        connections.answer(0, vec![b'x'; 1 << 20], Instant::now());
        let reader = std::thread::spawn(move || {
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).map(|_| answer.len())
        });
        while connections.interests().next().is_some() {
            connections.handle_ready(0);
        }
        assert_eq!(reader.join().unwrap().unwrap(), 1 << 20);
    }

    #[test]
    fn endless_requests_are_cut_off() {
        let mut connections = Connections::default();
        let mut client = connect(&mut connections, Endpoint::Control);
        let mut received = Received::Nothing;
        while received == Received::Nothing {
            client.write_all(&[b'x'; 1000]).unwrap();
            received = connections.handle_ready(0);
        }
        assert_eq!(received, Received::TooLong(Endpoint::Control));
    }

    #[test]
    fn the_slow_the_gone_and_the_many_are_dropped() {
        let mut connections = Connections::default();
        let slow = 40;
        let clients: Vec<_> = (0..slow).map(|_| connect(&mut connections, Endpoint::Admin)).collect();
        let ids: Vec<_> = connections.interests().map(|(id, ..)| id).collect();
        assert_eq!(ids, (8..slow).collect::<Vec<_>>(), "the oldest are gone");
        let _control = connect(&mut connections, Endpoint::Control);
        assert_eq!(
            connections.interests().count(),
            Connections::PER_ENDPOINT_MAX + 1,
            "endpoints do not crowd each other out"
        );
        drop(clients);
        for id in ids {
            assert_eq!(connections.handle_ready(id), Received::Nothing);
        }
        assert_eq!(connections.interests().count(), 1);
        let deadline = connections.deadline().unwrap();
        connections.expire(deadline);
        assert_eq!(connections.interests().count(), 0);
    }
}
