//! What a process prints, line by line.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::pipe::PipeFlags;

/// The pipe into which a process and its children print.
#[derive(Debug)]
pub struct Lines {
    pipe: File,
    speaker: Option<String>,
    begun: Vec<u8>,
}

/// A line is shown in pieces of this many bytes if it is longer.
const LINE_BYTES_MAX: usize = 8 * 1024;

impl Lines {
    /// Opens a pipe. Returns its lines and the end into which a process prints.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE`.
    pub fn open() -> io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok((Self { pipe: ours.into(), speaker: None, begun: Vec::new() }, theirs))
    }

    /// Puts a name in front of each line.
    pub fn said_by(self, speaker: String) -> Self {
        Self { speaker: Some(speaker), ..self }
    }

    /// Shows what has been printed. Returns whether more can come.
    pub fn forward(&mut self) -> bool {
        let mut buffer = [0; LINE_BYTES_MAX];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => self.take(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => break,
            }
        }
        if !self.begun.is_empty() {
            self.take(b"\n");
        }
        false
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.begun.len() >= LINE_BYTES_MAX {
                self.show();
            }
        }
    }

    /// One call per line, so that lines of several programs do not mix.
    fn show(&mut self) {
        let line = std::mem::take(&mut self.begun);
        let mut text = self.speaker.as_ref().map(|name| format!("{name}: ")).unwrap_or_default().into_bytes();
        text.extend_from_slice(&line);
        if !line.ends_with(b"\n") {
            text.push(b'\n');
        }
        // If standard error cannot be written, no place is left to report that.
        let _ = io::stderr().write_all(&text);
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
