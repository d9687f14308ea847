//! What a process prints, line by line, with the name of who says it in front unless it does so itself.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The pipe into which a process, and whoever it starts, prints.
#[derive(Debug)]
pub struct Lines {
    pipe: File,
    speaker: Option<String>,
    begun: Vec<u8>,
}

/// Bytes after which a line is shown although it has not ended.
const LINE_BYTES_MAX: usize = 8 * 1024;

impl Lines {
    /// Lines out of a pipe whose descriptor does not block.
    pub fn new(pipe: OwnedFd, speaker: Option<String>) -> Self {
        Self { pipe: pipe.into(), speaker, begun: Vec::new() }
    }

    /// Shows all that has been printed, and says whether there can be more.
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

    /// One call per line, so that those of several programs do not mix.
    fn show(&mut self) {
        let line = std::mem::take(&mut self.begun);
        let mut text = self.speaker.as_ref().map(|name| format!("{name}: ")).unwrap_or_default().into_bytes();
        text.extend_from_slice(&line);
        if !line.ends_with(b"\n") {
            text.push(b'\n');
        }
        // Nobody is left to tell if standard error cannot be written.
        let _ = io::stderr().write_all(&text);
    }
}

impl AsFd for Lines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}
