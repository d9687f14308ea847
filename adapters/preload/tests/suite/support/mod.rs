//! Support for the tests: programs to preload (`fpm`, `program`), the server's part (`server`) and the client's
//! (`client`).

pub(crate) mod client;
pub(crate) mod fpm;
pub(crate) mod pattern;
pub(crate) mod program;
pub(crate) mod server;

pub(crate) use client::{Client, Response};
pub(crate) use fpm::Fpm;
pub(crate) use server::{Offered, Outcome, Request, Server};

use std::time::{Duration, Instant};

/// Far more than anything here takes; only a defect makes a test wait so long.
pub(crate) const GENEROUS: Duration = Duration::from_secs(60);

/// Waits for `what`.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + GENEROUS;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reads once. A read with a limit is interrupted when the test is stopped and goes on.
pub(crate) fn read_some(stream: &mut impl std::io::Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}
