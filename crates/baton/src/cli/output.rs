//! What a sub-command prints, and how it fails.

use std::io::Write;
use std::process::ExitCode;

/// What goes wrong in a sub-command: a message for a human.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Prints a result. A reader that closes its end (`baton config --default | head`) is no failure.
pub(super) fn print(text: &str) -> Result<ExitCode, Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
