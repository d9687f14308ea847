//! `baton app cgi`: a FastCGI application that runs a program for each request (RFC 3875).
//!
//! The program is the request's `SCRIPT_FILENAME`, run without a shell. Its environment is that of this process and the
//! request's variables. It starts at once, and then bytes pass both ways as they arrive:
//!
//! ```text
//!   server ──► body ────► one piece ──► the program's standard input     the next one when that has been taken
//!   server ◄── response ◄─ one piece ◄── its standard output              error log ◄── its standard error
//! ```
//!
//! Neither direction waits for the other: a program may answer before it reads, while it reads, or without reading.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};

use baton_fcgi::environment::environment_of;
use baton_report::OperatorError;
use baton_responder::{Request, Responder};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Access;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Run CGI programs for the requests that come to the socket that is standard input
///
/// A program is killed when the server hangs up: because the client has, or because it took too long.
#[derive(Debug, Args)]
pub(crate) struct Cgi {}

impl Cgi {
    /// Answers requests for ever.
    ///
    /// # Errors
    /// If standard input is not, or no longer, a listening socket.
    pub(super) fn run(&self) -> Result<ExitCode, OperatorError> {
        let trouble = |error: io::Error| {
            OperatorError::of("accept requests", &error).cause("standard input is not a listening socket")
        };
        let mut responder = Responder::inherited().map_err(trouble)?;
        loop {
            let mut request = responder.next_request().map_err(trouble)?;
            // The server notices a failed connection itself; other errors are reported to it.
            match answer(&mut request) {
                Ok(Ending::Complete) => {}
                Ok(Ending::Killed) => {
                    request.abort();
                    continue;
                }
                Err(error) => {
                    let _ = request.log(format!("{error}\n").as_bytes());
                    request.set_exit_status(1);
                }
            }
            let _ = request.finish();
        }
    }
}

/// How a response ends.
enum Ending {
    Complete,
    /// A signal ended the program within its response.
    Killed,
}

/// Runs the program of a request.
fn answer(request: &mut Request<'_>) -> io::Result<Ending> {
    let program = match program_of(request) {
        Ok(program) => program,
        Err((status, why)) => {
            request.log(format!("{why}\n").as_bytes())?;
            write!(request, "Status: {status}\r\nContent-Type: text/plain\r\n\r\n{status}\n")?;
            return Ok(Ending::Complete);
        }
    };
    let has_body =
        request.variable("CONTENT_LENGTH").is_some_and(|length| !length.is_empty() && length != b"0");
    let mut command = Command::new(&program);
    command
        .envs(variables_of(request)?)
        .current_dir(program.parent().unwrap_or(Path::new("/")))
        .stdin(if has_body { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (status, has_output) = Running::new(command.spawn()?)?.run(request)?;
    if let Some(signal) = status.signal() {
        request.log(format!("{} was killed by signal {signal}\n", program.display()).as_bytes())?;
        // Without output, the server has an error response for it. Cut off, an idempotent request would be repeated.
        if has_output {
            return Ok(Ending::Killed);
        }
    }
    request.set_exit_status(u32::try_from(status.code().unwrap_or(1)).unwrap_or(1));
    Ok(Ending::Complete)
}

/// Bytes to read at a time: the capacity of a pipe.
const PIECE_BYTES: usize = 64 << 10;

/// A program and its pipes. It never outlives the request.
struct Running {
    program: Child,
    /// Readable when the program ends; `None` after that.
    life: Option<OwnedFd>,
    /// `None`: there is no body, or the program has all of it, or has closed its input.
    input: Option<File>,
    output: Option<File>,
    errors: Option<File>,
    body: Body,
}

/// The rest of the request's body.
struct Body {
    piece: Box<[u8]>,
    /// The part of the piece that the program has not taken.
    unwritten: std::ops::Range<usize>,
    ended: bool,
}

impl Running {
    fn new(mut program: Child) -> io::Result<Self> {
        let input = program.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let output = program.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let errors = program.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let piece = if input.is_some() { vec![0; PIECE_BYTES] } else { Vec::new() };
        let body = Body { piece: piece.into(), unwritten: 0..0, ended: input.is_none() };
        let mut running = Self { program, life: None, input, output, errors, body };
        if let Some(input) = &running.input {
            // Else a write would wait until the program has taken the whole piece.
            rustix::io::ioctl_fionbio(input, true)?;
        }
        let pid = i32::try_from(running.program.id()).ok().and_then(Pid::from_raw);
        running.life = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())).transpose()?;
        Ok(running)
    }

    /// Passes on the body and the program's output, until the program has ended and all its outputs are closed. Returns
    /// how it ended, and whether there was any output.
    ///
    /// # Errors
    /// If the server has closed the connection, or the body breaks off, which the program must not take for its end.
    fn run(mut self, request: &mut Request<'_>) -> io::Result<(ExitStatus, bool)> {
        let mut has_output = false;
        let mut buffer = vec![0; PIECE_BYTES];
        while self.life.is_some() || self.output.is_some() || self.errors.is_some() {
            let goes_on = self.feed(request)?;
            let wants_more = !self.body.ended && self.body.unwritten.is_empty();
            let news = if wants_more { PollFlags::IN | PollFlags::RDHUP } else { PollFlags::RDHUP };
            let room = if self.body.unwritten.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            let descriptors = [
                (self.life.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (self.input.as_ref().map(AsFd::as_fd), room),
                (self.output.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (self.errors.as_ref().map(AsFd::as_fd), PollFlags::IN),
                (request.socket(), news),
            ];
            let [life, input, output, errors, server] = wait(descriptors, goes_on)?;
            if server.intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR) {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            if !life.is_empty() {
                self.life = None;
            }
            if input.intersects(PollFlags::ERR | PollFlags::HUP) {
                self.input = None;
            }
            if !output.is_empty()
                && let Some(piece) = piece(&mut self.output, &mut buffer)?
            {
                has_output = true;
                request.write_all(piece)?;
                // A client that waits for a line must not wait for the next one.
                request.flush()?;
            }
            if !errors.is_empty()
                && let Some(piece) = piece(&mut self.errors, &mut buffer)?
            {
                request.log(piece)?;
            }
        }
        Ok((self.program.wait()?, has_output))
    }

    /// Gives the program a piece of the arrived body. If the program has closed its input, reads and drops the rest:
    /// records of the server may follow it. Returns whether another piece may follow at once.
    fn feed(&mut self, request: &mut Request<'_>) -> io::Result<bool> {
        let body = &mut self.body;
        if body.unwritten.is_empty() {
            if body.ended {
                return Ok(false);
            }
            match request.read_now(&mut body.piece)? {
                None => return Ok(false),
                Some(bytes) => (body.unwritten, body.ended) = (0..bytes, bytes == 0),
            }
        }
        let Some(input) = &mut self.input else {
            body.unwritten = 0..0;
            return Ok(true);
        };
        if body.ended {
            // This closes the pipe.
            self.input = None;
            return Ok(false);
        }
        match input.write(&body.piece[body.unwritten.clone()]) {
            Ok(bytes) => body.unwritten.start += bytes,
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(false),
                io::ErrorKind::Interrupted => {}
                // The program has closed its standard input, or has ended.
                io::ErrorKind::BrokenPipe => self.input = None,
                _ => return Err(error),
            },
        }
        Ok(true)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Normally the program has ended. If not, kill it before its input closes: a body that broke off would look
        // complete.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The program to run, or the status and the reason if it cannot run.
fn program_of(request: &Request<'_>) -> Result<PathBuf, (&'static str, String)> {
    let name = request.variable("SCRIPT_FILENAME").unwrap_or_default();
    let path = PathBuf::from(OsStr::from_bytes(name));
    let shown = path.display();
    if !path.is_absolute() || !path.is_file() {
        return Err(("404 Not Found", format!("there is no program {shown}")));
    }
    match rustix::fs::access(&path, Access::EXEC_OK) {
        Ok(()) => Ok(path),
        Err(error) => Err(("403 Forbidden", format!("{shown} cannot be executed: {error}"))),
    }
}

/// The variables of a request, except those about its transport.
fn variables_of(request: &Request<'_>) -> io::Result<Vec<(std::ffi::OsString, std::ffi::OsString)>> {
    let mut block = Vec::new();
    for (name, value) in request.variables().filter(|(name, _)| !name.starts_with(b"BATON_")) {
        baton_fcgi::params::push(&mut block, name, value);
    }
    environment_of(&block).map_err(|_| io::Error::other("a variable cannot be one of an environment"))
}

/// Waits until a descriptor is ready; does not wait with `only_looks`. Returns the readiness of each.
fn wait<const N: usize>(
    descriptors: [(Option<BorrowedFd<'_>>, PollFlags); N],
    only_looks: bool,
) -> io::Result<[PollFlags; N]> {
    let no_time = Timespec::default();
    let present = descriptors.iter().filter_map(|(descriptor, flags)| Some(((*descriptor)?, *flags)));
    let mut polled: Vec<_> =
        present.map(|(descriptor, flags)| PollFd::from_borrowed_fd(descriptor, flags)).collect();
    loop {
        match rustix::event::poll(&mut polled, only_looks.then_some(&no_time)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let mut seen = polled.iter().map(PollFd::revents);
    Ok(descriptors.map(|(descriptor, _)| descriptor.and_then(|_| seen.next()).unwrap_or(PollFlags::empty())))
}

/// Reads from a pipe; closes it at its end.
fn piece<'b>(pipe: &mut Option<File>, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
    let Some(file) = pipe else { return Ok(None) };
    let bytes = file.read(buffer)?;
    if bytes == 0 {
        *pipe = None;
        return Ok(None);
    }
    Ok(Some(&buffer[..bytes]))
}
