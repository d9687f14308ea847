//! For applications in Rust: sequential requests, read and answered like any stream.

use std::io::{self, BufRead, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::answer::{Answer, Ended};
use crate::body::BodyPiece;
use crate::connection::{Begun, Connection, Memory, ReadError, Role};
use crate::link::Link;

/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 1024;

/// An application: a listening socket, and the connection at hand.
///
/// It answers one request at a time. Several threads, or processes that have inherited the socket, have one each
/// ([`try_clone`](Self::try_clone)).
#[derive(Debug)]
pub struct Responder {
    listener: OwnedFd,
    connection: Option<Connection>,
    answer: Answer,
    memory: Memory,
}

impl Responder {
    /// An application at a listening socket.
    #[must_use]
    pub fn new(listener: OwnedFd) -> Self {
        Self { listener, connection: None, answer: Answer::new(), memory: Memory::default() }
    }

    /// An application that was started by a server or a spawner: standard input is its listening socket.
    ///
    /// # Errors
    /// `ENOTSOCK` or `EINVAL` if it is not.
    pub fn inherited() -> io::Result<Self> {
        let stdin = io::stdin();
        if !rustix::net::sockopt::socket_acceptconn(&stdin)? {
            return Err(Errno::INVAL.into());
        }
        Ok(Self::new(rustix::io::fcntl_dupfd_cloexec(stdin, 0)?))
    }

    /// An application that listens at a path, where nothing may be yet.
    ///
    /// # Errors
    /// `EADDRINUSE`, and those of `bind`.
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let kind = SocketType::STREAM;
        let listener = rustix::net::socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        rustix::net::bind(&listener, &SocketAddrUnix::new(path.as_ref())?)?;
        rustix::net::listen(&listener, BACKLOG)?;
        Ok(Self::new(listener))
    }

    /// An application at the same socket, for another thread.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self::new(self.listener.try_clone()?))
    }

    /// Waits for the next request.
    ///
    /// # Errors
    /// Errors of `accept`: the application is no longer reachable. An error on a connection ends only that
    /// connection.
    pub fn next_request(&mut self) -> io::Result<Request<'_>> {
        let (connection, begun) = loop {
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => Connection::new(self.accept()?, std::mem::take(&mut self.memory)),
            };
            match read_request(&mut connection) {
                Ok(Some(begun)) => break (connection, begun),
                Ok(None) | Err(_) => self.close(connection),
            }
        };
        let connection = self.connection.insert(connection);
        connection.begin(&mut self.answer);
        Ok(Request { responder: self, begun, unread: None, exit_status: 0 })
    }

    fn accept(&self) -> io::Result<OwnedFd> {
        loop {
            match rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC) {
                Ok(socket) => {
                    if rustix::net::sockopt::socket_domain(&socket) != Ok(AddressFamily::UNIX) {
                        // Without it the last packet would wait for an acknowledgement.
                        rustix::net::sockopt::set_tcp_nodelay(socket.as_fd(), true)?;
                    }
                    return Ok(socket);
                }
                Err(Errno::INTR | Errno::CONNABORTED | Errno::PROTO) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn close(&mut self, connection: Connection) {
        self.memory = connection.close();
        self.answer.abandon();
    }
}

fn read_request(connection: &mut Connection) -> Result<Option<Begun>, ReadError> {
    loop {
        match connection.next_request() {
            Err(ReadError::Failed(Errno::INTR)) => {}
            other => return other,
        }
    }
}

/// A request: reads as its body, writes as the response, CGI head first.
///
/// [`finish`](Self::finish) ends it; to drop it does the same, and says nothing of errors. When its thread panics, the
/// response is cut off, as by [`abort`](Self::abort).
#[derive(Debug)]
pub struct Request<'a> {
    responder: &'a mut Responder,
    begun: Begun,
    /// The piece of the body that has arrived, as far as it is unread.
    unread: Option<BodyPiece>,
    exit_status: u32,
}

impl Request<'_> {
    /// The application's role. Roles other than responder are rare.
    #[must_use]
    pub fn role(&self) -> Role {
        self.begun.role
    }

    /// The value of a variable, as CGI names it: `REQUEST_METHOD`, `QUERY_STRING`, `HTTP_COOKIE`.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&[u8]> {
        self.responder.connection.as_ref()?.environment().get(name)
    }

    /// All variables.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.responder.connection.iter().flat_map(|connection| connection.environment().iter())
    }

    /// Memory for the response without another copy: the shared region itself, by `shm`. Never empty; call
    /// [`commit`](Self::commit) after writing.
    ///
    /// # Errors
    /// As for writing.
    pub fn space(&mut self) -> io::Result<&mut [u8]> {
        self.write_answer(|answer, connection| answer.send_if_overdue(connection))?;
        if self.responder.answer.space().is_empty() {
            self.write_answer(|answer, connection| answer.make_room(connection))?;
        }
        Ok(self.responder.answer.space())
    }

    /// So many bytes of [`space`](Self::space) have been written.
    ///
    /// # Panics
    /// If there was not so much space.
    pub fn commit(&mut self, bytes: usize) {
        self.responder.answer.commit(bytes);
    }

    /// Writes to the server's error log.
    ///
    /// # Errors
    /// The connection to the server is lost.
    pub fn log(&mut self, message: &[u8]) -> io::Result<()> {
        self.write_answer(|answer, connection| answer.write_error(connection, message))
    }

    /// The connection to the server, for `poll` with other descriptors: when it hangs up (`POLLRDHUP`), the response
    /// is no longer wanted.
    #[must_use]
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.responder.connection.as_ref().map(Link::socket)
    }

    /// Reads the part of the body that has arrived, without waiting: `None` if there is none, 0 at its end. Call it
    /// before polling [`socket`](Self::socket) for input, since some may have been received already.
    ///
    /// # Errors
    /// The body does not go on, now or later.
    pub fn read_now(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Some(connection) = &mut self.responder.connection else { return Ok(Some(0)) };
        if self.unread.is_none() && !buffer.is_empty() {
            match connection.read_body_now()? {
                Some(piece) => self.unread = Some(piece),
                None => return Ok(None),
            }
        }
        Ok(Some(self.take_unread(buffer)))
    }

    /// Sets the exit status for the server, like a CGI program's.
    pub fn set_exit_status(&mut self, status: u32) {
        self.exit_status = status;
    }

    /// Ends the request.
    ///
    /// # Errors
    /// The connection to the server is lost, or the response is shorter than its declared length after the rest of it
    /// had been handed back. The application can go on with the next request.
    pub fn finish(mut self) -> io::Result<()> {
        self.end()
    }

    /// Cuts the response off, so that no part of it is taken for the whole. The server closes the client's connection, or
    /// sends an error response if there is no head yet.
    pub fn abort(mut self) {
        let _ = self.write_answer(|answer, connection| answer.flush_errors(connection));
        self.cut_off();
    }

    /// Without an end of the response, the server knows that it is incomplete.
    fn cut_off(&mut self) {
        if let Some(connection) = self.responder.connection.take() {
            self.responder.close(connection);
        }
    }

    fn end(&mut self) -> io::Result<()> {
        let status = self.exit_status;
        let finished = self.write_answer(|answer, connection| {
            let finished = answer.finish(connection, status);
            connection.forget_body();
            finished
        });
        if (finished.is_err() || !self.begun.keep_connection)
            && let Some(connection) = self.responder.connection.take()
        {
            self.responder.close(connection);
        }
        finished
    }

    fn take_unread(&mut self, buffer: &mut [u8]) -> usize {
        let (Some(connection), Some(piece)) = (&self.responder.connection, &mut self.unread) else {
            return 0;
        };
        let read = piece.len().min(buffer.len());
        buffer[..read].copy_from_slice(&connection.bytes(piece)[..read]);
        piece.advance(read);
        if piece.is_empty() {
            self.unread = None;
        }
        read
    }

    fn write_answer(
        &mut self,
        write: impl FnOnce(&mut Answer, &mut Connection) -> Result<(), Ended>,
    ) -> io::Result<()> {
        let Some(connection) = &mut self.responder.connection else { return Ok(()) };
        Ok(write(&mut self.responder.answer, connection)?)
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        if !self.responder.answer.is_begun() {
            return;
        }
        if std::thread::panicking() {
            self.cut_off();
        } else {
            // Call `finish` to get the error.
            let _ = self.end();
        }
    }
}

impl Read for Request<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !buffer.is_empty() {
            self.fill_buf()?;
        }
        Ok(self.take_unread(buffer))
    }
}

/// The body where it lies: in memory that the server has lent, or in the buffer of the connection.
impl BufRead for Request<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let Some(connection) = &mut self.responder.connection else { return Ok(&[]) };
        if self.unread.is_none() {
            self.unread = Some(connection.read_body()?);
        }
        Ok(self.unread.as_ref().map_or(&[], |piece| connection.bytes(piece)))
    }

    fn consume(&mut self, bytes: usize) {
        if let Some(piece) = &mut self.unread {
            piece.advance(bytes);
        }
        self.unread.take_if(|piece| piece.is_empty());
    }
}

impl Write for Request<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_answer(|answer, connection| answer.write(connection, bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_answer(|answer, connection| answer.flush(connection))
    }
}
