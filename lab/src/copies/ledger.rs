//! How many bytes of responses were copied between processes and the kernel, and where.

use std::collections::HashSet;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::trace::{Call, CallKind, Descriptor, Trace};

/// Bytes of responses, by path, and of requests to the application. Without copies within a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The application to the kernel, for the server (C1 in the paper).
    pub application_to_kernel: u64,
    /// The kernel to the server, from the application (C2).
    pub kernel_to_server: u64,
    /// Server or application to the kernel, for the client (C3).
    pub to_client: u64,
    /// The kernel to the application, of requests. The server has copied as many to the kernel.
    pub requests_to_application: u64,
    /// From the page cache to the client's socket, by reference: not copied.
    pub by_reference: u64,
}

impl Ledger {
    /// All that was copied of responses.
    pub fn copied(&self) -> u64 {
        self.application_to_kernel + self.kernel_to_server + self.to_client
    }
}

/// Processes that are watched.
#[derive(Debug)]
pub struct Watch {
    server: Trace,
    application: Trace,
}

impl Watch {
    /// Traces the processes of a server and its application. `folder`, a new one, gets the traces.
    ///
    /// # Errors
    /// If strace is not there or may not attach.
    pub fn begin(server: &[i32], application: &[i32], folder: &Path) -> Result<Self> {
        // A client has its response before the server has heard of its end.
        sleep(QUIET);
        Ok(Self {
            server: Trace::attach(server, &folder.join("server"))?,
            application: Trace::attach(application, &folder.join("application"))?,
        })
    }

    /// Detaches when the processes are idle, and sums up.
    ///
    /// # Errors
    /// If the traces cannot be read, bytes took an unknown path, or the processes do not become idle.
    pub fn end(self) -> Result<Ledger> {
        let limit = Instant::now() + QUIET_MAX;
        let mut before = None;
        loop {
            let ledger = sum(&self.server.calls()?, &self.application.calls()?)?;
            if before == Some(ledger) {
                return Ok(ledger);
            }
            ensure!(Instant::now() < limit, "there is no end of bytes: {ledger:?}");
            before = Some(ledger);
            sleep(QUIET);
        }
    }
}

/// Nothing that belongs to a response comes later than this after the rest of it.
const QUIET: Duration = Duration::from_millis(250);
const QUIET_MAX: Duration = Duration::from_secs(30);

fn sum(server: &[Call], application: &[Call]) -> Result<Ledger> {
    let mut ledger = Ledger::default();
    // The server has other Unix sockets, too: its processes talk to each other.
    let mut ends = HashSet::new();
    for Call { kind, descriptor, bytes } in application {
        match (kind, descriptor) {
            (CallKind::Send, Descriptor::Unix { own, .. }) => {
                ends.insert(*own);
                ledger.application_to_kernel += bytes;
            }
            (CallKind::Send, Descriptor::Tcp) => ledger.to_client += bytes,
            (CallKind::ByReference, Descriptor::Tcp) => ledger.by_reference += bytes,
            (CallKind::ByReference, _) => {
                bail!("the application moved bytes to a descriptor that is not the client's socket")
            }
            (CallKind::Receive, Descriptor::Unix { .. }) => ledger.requests_to_application += bytes,
            (CallKind::Receive, _) | (CallKind::Send, Descriptor::Other) => {}
        }
    }
    for Call { kind, descriptor, bytes } in server {
        match (kind, descriptor) {
            (CallKind::Receive, Descriptor::Unix { peer, .. }) if ends.contains(peer) => {
                ledger.kernel_to_server += bytes;
            }
            (CallKind::Send, Descriptor::Tcp) => ledger.to_client += bytes,
            (CallKind::ByReference, Descriptor::Tcp) => ledger.by_reference += bytes,
            // Bodies of requests go from files to the application, too.
            (CallKind::ByReference | CallKind::Receive | CallKind::Send, _) => {}
        }
    }
    Ok(ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(kind: CallKind, descriptor: Descriptor, bytes: u64) -> Call {
        Call { kind, descriptor, bytes }
    }

    #[test]
    fn responses_are_counted_once_on_each_border() {
        let (app, other) = (Descriptor::Unix { own: 8, peer: 7 }, Descriptor::Unix { own: 1, peer: 2 });
        let at_server = Descriptor::Unix { own: 7, peer: 8 };
        let application = [
            call(CallKind::Receive, app.clone(), 500),
            call(CallKind::Send, app, 100),
            call(CallKind::Send, Descriptor::Other, 9),
        ];
        let server = [
            call(CallKind::Receive, Descriptor::Tcp, 40),
            call(CallKind::Send, at_server.clone(), 500),
            call(CallKind::Receive, at_server, 100),
            call(CallKind::Receive, other, 3),
            call(CallKind::Send, Descriptor::Tcp, 110),
            call(CallKind::ByReference, Descriptor::Tcp, 1000),
        ];
        let ledger = sum(&server, &application).unwrap();
        let expected = Ledger {
            application_to_kernel: 100,
            kernel_to_server: 100,
            to_client: 110,
            requests_to_application: 500,
            by_reference: 1000,
        };
        assert_eq!(ledger, expected);
        assert_eq!(ledger.copied(), 310);
        assert!(sum(&[], &[call(CallKind::ByReference, Descriptor::Other, 1)]).is_err());
    }
}
