//! `baton app cgi`: a FastCGI application that runs a program for each request (RFC 3875).
//!
//! The program is the request's `SCRIPT_FILENAME`; no shell has a part in it. Its environment is that of this process
//! and the request's variables. The body is complete before it begins, in a file without a name: a program may answer
//! before it reads, or never read.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use baton_fcgi::environment::environment_of;
use baton_responder::{Request, Responder};
use clap::Args;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Access, Mode, OFlags};

use crate::run::Trouble;

/// Run CGI programs for the requests that come to the socket that is standard input
///
/// A program is killed when the server hangs up: because the client has, or because it took too long.
#[derive(Debug, Args)]
pub(crate) struct Cgi {}

impl Cgi {
    /// Answers requests for ever.
    ///
    /// # Errors
    /// Standard input is no listening socket, or stopped being one.
    pub(super) fn run(&self) -> Result<ExitCode, Trouble> {
        let trouble = |error: io::Error| {
            Trouble::of("accept requests", &error).cause("standard input is not a listening socket")
        };
        let mut responder = Responder::inherited().map_err(trouble)?;
        loop {
            let mut request = responder.next_request().map_err(trouble)?;
            // The server knows already if it was the connection; what else goes wrong it has to be told.
            if let Err(error) = answer(&mut request) {
                let _ = request.log(format!("{error}\n").as_bytes());
                request.set_exit_status(1);
            }
            let _ = request.finish();
        }
    }
}

/// Runs the program of a request.
fn answer(request: &mut Request<'_>) -> io::Result<()> {
    let program = match program_of(request) {
        Ok(program) => program,
        Err((status, why)) => {
            request.log(format!("{why}\n").as_bytes())?;
            return write!(request, "Status: {status}\r\nContent-Type: text/plain\r\n\r\n{status}\n");
        }
    };
    let body = body_of(request)?;
    let mut command = Command::new(&program);
    command
        .envs(variables_of(request)?)
        .current_dir(program.parent().unwrap_or(Path::new("/")))
        .stdin(body.map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running(command.spawn()?);
    forward(&mut running.0, request)?;
    let status = running.0.wait()?;
    request.set_exit_status(u32::try_from(status.code().unwrap_or(1)).unwrap_or(1));
    Ok(())
}

/// Passes on what the program prints, until it has closed both its outputs.
fn forward(program: &mut Child, request: &mut Request<'_>) -> io::Result<()> {
    let mut output = program.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let mut errors = program.stderr.take().map(|pipe| File::from(OwnedFd::from(pipe)));
    let mut buffer = vec![0; PIECE_BYTES];
    while output.is_some() || errors.is_some() {
        let [prints, complains, hangs_up] = wait([
            (output.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (errors.as_ref().map(AsFd::as_fd), PollFlags::IN),
            (request.socket(), PollFlags::RDHUP),
        ])?;
        if hangs_up {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if prints && let Some(piece) = piece(&mut output, &mut buffer)? {
            request.write_all(piece)?;
            // A client that waits for a line is not to wait for the next one.
            request.flush()?;
        }
        if complains && let Some(piece) = piece(&mut errors, &mut buffer)? {
            request.log(piece)?;
        }
    }
    Ok(())
}

/// Bytes that are read at a time: what a pipe holds.
const PIECE_BYTES: usize = 64 << 10;

/// A program. Whatever happens, it does not outlive the request.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, if all is well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What is run, or the status of a request for something that cannot be, and why.
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

/// The variables of a request, but those that are about how it travels.
fn variables_of(request: &Request<'_>) -> io::Result<Vec<(std::ffi::OsString, std::ffi::OsString)>> {
    let mut block = Vec::new();
    for (name, value) in request.variables().filter(|(name, _)| !name.starts_with(b"BATON_")) {
        baton_fcgi::params::push(&mut block, name, value);
    }
    environment_of(&block).map_err(|_| io::Error::other("a variable cannot be one of an environment"))
}

/// The body of a request, in a file without a name.
fn body_of(request: &mut Request<'_>) -> io::Result<Option<File>> {
    if request.variable("CONTENT_LENGTH").is_none_or(|length| length.is_empty() || length == b"0") {
        return Ok(None);
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?);
    io::copy(request, &mut file)?;
    file.rewind()?;
    Ok(Some(file))
}

/// Waits until something is so of one of the descriptors that are there; says of which.
fn wait<const N: usize>(descriptors: [(Option<BorrowedFd<'_>>, PollFlags); N]) -> io::Result<[bool; N]> {
    let present = descriptors.iter().filter_map(|(descriptor, flags)| Some(((*descriptor)?, *flags)));
    let mut polled: Vec<_> =
        present.map(|(descriptor, flags)| PollFd::from_borrowed_fd(descriptor, flags)).collect();
    loop {
        match rustix::event::poll(&mut polled, None) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => break,
        }
    }
    let mut ready = polled.iter().map(|descriptor| !descriptor.revents().is_empty());
    Ok(descriptors.map(|(descriptor, _)| descriptor.is_some() && ready.next().unwrap_or(false)))
}

/// What a pipe has; one that has ended is closed.
fn piece<'b>(pipe: &mut Option<File>, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
    let Some(file) = pipe else { return Ok(None) };
    let bytes = file.read(buffer)?;
    if bytes == 0 {
        *pipe = None;
        return Ok(None);
    }
    Ok(Some(&buffer[..bytes]))
}
