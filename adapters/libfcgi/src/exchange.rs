//! The implementation of a request's three streams: a connection, read and answered by `baton-responder`.

use std::ffi::{c_char, c_int};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::Mutex;

use baton_responder::{Answer, Connection, Ended, Link, Memory, ReadError, Role};

use crate::abi::{FCGX_PROTOCOL_ERROR, Stream};

/// Buffer of the stream for the error log; the answer buffers further.
const ERRORS_BYTES: usize = 512;

/// Memory of closed connections that is kept for later ones, at most.
const SPARE_MAX: usize = 16;

/// A connection and the request at hand.
///
/// The streams are separate, since the program reads and writes them: here they are used through pointers only. Their
/// windows are renewed after every use of the memory that they point into.
pub(crate) struct Exchange {
    connection: Connection,
    answer: Answer,
    streams: Box<Streams>,
    /// Variables as C wants them: the role, those of the server, null.
    envp: Vec<*mut c_char>,
    role: Role,
    /// Whether the body has been read and the data of a filter comes.
    filters: bool,
    app_status: c_int,
    /// Whether the window of the input stream is memory of this process's.
    input_is_own: bool,
}

/// The streams of a request, and the memory that is not part of the connection or the answer.
struct Streams {
    input: Stream,
    output: Stream,
    errors: Stream,
    errors_buffer: [u8; ERRORS_BYTES],
    /// `FCGI_ROLE=...`, which a program may change like any variable.
    role: [u8; 24],
}

/// What remains of an exchange when its connection is closed.
struct Spare {
    memory: Memory,
    answer: Answer,
    envp: Vec<*mut c_char>,
}

// SAFETY: the pointers in `envp` are leftovers: they are overwritten before they are used again.
unsafe impl Send for Spare {}

static SPARES: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

impl Exchange {
    /// For a connection. It is closed with the exchange.
    pub(crate) fn new(socket: OwnedFd) -> Box<Self> {
        let spare = SPARES.lock().ok().and_then(|mut spares| spares.pop());
        let Spare { memory, answer, envp } = spare.unwrap_or_else(|| Spare {
            memory: Memory::default(),
            answer: Answer::new(),
            envp: Vec::new(),
        });
        Box::new(Self {
            connection: Connection::new(socket, memory),
            answer,
            streams: Box::new(Streams {
                input: reader(),
                output: writer(empty_output),
                errors: writer(empty_errors),
                errors_buffer: [0; ERRORS_BYTES],
                role: [0; 24],
            }),
            envp,
            role: Role::Responder,
            filters: false,
            app_status: 0,
            input_is_own: true,
        })
    }

    /// Closes the connection.
    pub(crate) fn close(self: Box<Self>) {
        let Self { connection, mut answer, envp, .. } = *self;
        answer.abandon();
        let spare = Spare { memory: connection.close(), answer, envp };
        if let Ok(mut spares) = SPARES.lock()
            && spares.len() < SPARE_MAX
        {
            spares.push(spare);
        }
    }

    /// The connection.
    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Whether this is the exchange of this descriptor.
    pub(crate) fn is_of(&self, descriptor: c_int) -> bool {
        self.connection.socket().as_raw_fd() == descriptor
    }

    /// A request has begun on the connection: opens its streams. `this` is how they refer to the exchange.
    pub(crate) fn begin(&mut self, this: *mut Self, role: Role) {
        self.role = role;
        self.filters = false;
        self.app_status = 0;
        self.connection.begin(&mut self.answer);
        let streams = &mut *self.streams;
        for stream in [&mut streams.input, &mut streams.output, &mut streams.errors] {
            stream.data = this.cast();
            stream.is_closed = 0;
            stream.was_fclose_called = 0;
            stream.fcgi_errno = 0;
        }
        streams.input.read_from(ptr::NonNull::dangling().as_ptr(), 0);
        self.input_is_own = true;
        streams.errors.write_to(&mut streams.errors_buffer);
        streams.output.write_to(self.answer.space());
        self.list_variables();
    }

    /// The variables of the request: `FCGI_ROLE` first, as the original has it.
    fn list_variables(&mut self) {
        let role: &[u8] = match self.role {
            Role::Responder => b"FCGI_ROLE=RESPONDER\0",
            Role::Authorizer => b"FCGI_ROLE=AUTHORIZER\0",
            Role::Filter => b"FCGI_ROLE=FILTER\0",
        };
        self.streams.role[..role.len()].copy_from_slice(role);
        self.envp.clear();
        self.envp.push(self.streams.role.as_mut_ptr().cast());
        let variables = self.connection.environment_mut().c_strings();
        self.envp.extend(variables.map(|variable| variable.as_mut_ptr().cast::<c_char>()));
        self.envp.push(ptr::null_mut());
    }

    /// Whether the program may write into the window of the input stream.
    pub(crate) fn input_is_own(&self) -> bool {
        self.input_is_own
    }

    /// The variables as C wants them.
    pub(crate) fn envp(&mut self) -> *mut *mut c_char {
        self.envp.as_mut_ptr()
    }

    /// The streams: input, output, error log.
    pub(crate) fn streams(&mut self) -> [*mut Stream; 3] {
        let streams = &mut *self.streams;
        [&raw mut streams.input, &raw mut streams.output, &raw mut streams.errors]
    }

    /// Sets the exit status for the server.
    pub(crate) fn set_app_status(&mut self, status: c_int) {
        self.app_status = status;
    }

    /// Continues with a filter's data. Returns false if there is none.
    pub(crate) fn start_filter_data(&mut self) -> bool {
        let starts = self.role == Role::Filter && !std::mem::replace(&mut self.filters, true);
        if starts {
            self.streams.input.is_closed = 0;
        }
        starts
    }

    /// Ends the request. Returns whether the connection can be used for another.
    pub(crate) fn finish(&mut self) -> bool {
        self.commit();
        self.take_errors();
        let streams = &mut *self.streams;
        streams.output.close();
        streams.errors.close();
        #[expect(clippy::cast_sign_loss, reason = "the protocol has 32 bits for it, without a meaning")]
        let finished = self.answer.finish(&mut self.connection, self.app_status as u32);
        self.connection.forget_body();
        finished.is_ok() && streams.input.fcgi_errno == 0
    }

    /// Takes the output in the stream's window into the answer, which uses up the window.
    fn commit(&mut self) {
        let output = &mut self.streams.output;
        if output.is_closed == 0 {
            // The window is what `space` gave, and nothing was written to the answer since.
            let start = self.answer.space().as_ptr();
            let written = (output.wr_next as usize).saturating_sub(start as usize);
            self.answer.commit(written);
            output.write_to(&mut []);
        }
    }

    /// Writes to the answer, after the contents of the output stream's window, which is renewed.
    pub(crate) fn output(&mut self, write: impl FnOnce(&mut Answer, &mut Connection) -> Result<(), Ended>) {
        self.commit();
        match write(&mut self.answer, &mut self.connection) {
            Ok(()) => self.streams.output.write_to(self.answer.space()),
            Err(ended) => {
                let errno = match ended {
                    Ended::ConnectionLost(errno) => errno.raw_os_error(),
                    Ended::ClientGone | Ended::Unfinished => libc::EPIPE,
                };
                self.streams.output.fail(errno);
            }
        }
    }

    /// Sends the messages for the error log.
    pub(crate) fn flush_errors(&mut self) {
        self.take_errors();
        if self.answer.flush_errors(&mut self.connection).is_err() {
            self.streams.errors.fail(libc::EPIPE);
        }
    }

    /// Moves the error stream's window to the answer.
    fn take_errors(&mut self) {
        let streams = &mut *self.streams;
        if streams.errors.is_closed != 0 {
            return;
        }
        let written = (streams.errors.wr_next as usize)
            .saturating_sub(streams.errors_buffer.as_ptr() as usize)
            .min(ERRORS_BYTES);
        match self.answer.write_error(&mut self.connection, &streams.errors_buffer[..written]) {
            Ok(()) => streams.errors.write_to(&mut streams.errors_buffer),
            Err(_) => streams.errors.fail(libc::EPIPE),
        }
    }

    fn fill_input(&mut self) {
        match self.connection.read_body() {
            Ok(piece) if piece.is_empty() => {
                self.streams.input.read_from(self.streams.input.stop, 0);
                self.streams.input.is_closed = 1;
            }
            Ok(piece) => {
                self.input_is_own = piece.is_own();
                let start = match self.connection.own_bytes(&piece) {
                    Some(bytes) => bytes.as_mut_ptr(),
                    // The server's: `FCGX_UnGetChar`, the only function that would write there, does not.
                    None => self.connection.bytes(&piece).as_ptr().cast_mut(),
                };
                self.streams.input.read_from(start, piece.len());
            }
            Err(ReadError::Failed(errno)) => self.streams.input.fail(errno.raw_os_error()),
            Err(_) => self.streams.input.fail(FCGX_PROTOCOL_ERROR),
        }
    }
}

/// The kind of a stream, by its procedures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The body of a request.
    Input,
    /// Its response.
    Output,
    /// Its messages for the error log.
    Errors,
    /// No stream of a request.
    Other,
}

/// What `stream` is.
///
/// # Safety
/// `stream` points to a stream of this library.
pub(crate) unsafe fn kind_of(stream: *const Stream) -> Kind {
    // SAFETY: of the caller.
    let (fills, empties) = unsafe { ((*stream).fill_buff_proc, (*stream).empty_buff_proc) };
    let empties_with = |its| empties.is_some_and(|procedure| ptr::fn_addr_eq(procedure, its));
    if fills.is_some() {
        Kind::Input
    } else if empties_with(empty_output as EmptyBuffProc) {
        Kind::Output
    } else if empties_with(empty_errors as EmptyBuffProc) {
        Kind::Errors
    } else {
        Kind::Other
    }
}

/// The exchange behind one of its streams.
///
/// # Safety
/// `stream` is a stream of an exchange (its kind is not [`Kind::Other`]) that has not been closed, and nothing else
/// refers to that exchange.
pub(crate) unsafe fn behind<'a>(stream: *mut Stream) -> &'a mut Exchange {
    // SAFETY: `begin` has pointed `data` at the exchange, which lives until it is closed.
    unsafe { &mut *(*stream).data.cast::<Exchange>() }
}

type EmptyBuffProc = unsafe extern "C" fn(*mut Stream, c_int);

/// `fillBuffProc` of the input stream.
unsafe extern "C" fn fill_input(stream: *mut Stream) {
    // SAFETY: a program that calls a stream's procedure passes that stream.
    unsafe { behind(stream) }.fill_input();
}

/// `emptyBuffProc` of the output stream.
unsafe extern "C" fn empty_output(stream: *mut Stream, closes: c_int) {
    // SAFETY: as above.
    unsafe { behind(stream) }.output(|answer, connection| {
        if closes == 0 { answer.make_room(connection) } else { answer.end_output(connection) }
    });
}

/// `emptyBuffProc` of the stream for the error log.
unsafe extern "C" fn empty_errors(stream: *mut Stream, _closes: c_int) {
    // SAFETY: as above.
    unsafe { behind(stream) }.take_errors();
}

const fn reader() -> Stream {
    Stream { is_reader: 1, fill_buff_proc: Some(fill_input), ..Stream::CLOSED }
}

const fn writer(empty: EmptyBuffProc) -> Stream {
    Stream { empty_buff_proc: Some(empty), ..Stream::CLOSED }
}
