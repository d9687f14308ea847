//! A load generator: one thread, one epoll instance, closed loop.
//!
//! It must cost less per request than the servers it measures, or it measures itself. So it
//! - lets the kernel drop the bodies of replies (`MSG_TRUNC`) instead of copying unused bytes;
//! - prepares each request once, as bytes;
//! - spins on its sockets instead of sleeping. Under virtualisation waking an idle CPU is an interrupt with a VM exit,
//!   and the bill goes to the waker: the server. With a sleeping client a server that sends a reply in many pieces
//!   looks up to twice as expensive as it is, and rankings turn round.
//!
//! Closed loop: each connection sends its next request when its reply is complete. Overload cannot occur, and CPU
//! time per request is exact. The exception is a load with a *pace*: its requests are due at fixed times,
//! independently of earlier ones, and latency counts from then on. A server that stops for a second is late for all
//! requests of that second; a closed loop would have made only one.

mod chunks;
mod client;
pub mod files;
mod idle;
pub mod mix;
mod pace;
mod reply;
mod report;
mod requests;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use client::{Client, Shared};
pub use idle::{ANSWER_MAX, ask};
use pace::Pace;
pub use report::{Failure, Figures, LoadReport, Quantiles};
pub use requests::{LoadRequest, RequestList};

/// What load to make.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// The server.
    pub address: SocketAddr,
    /// How many connections ask at the same time; at least 1.
    pub connections: usize,
    /// A new connection for every request, as clients of HTTP/1.0 did, instead of kept ones.
    pub connection_per_request: bool,
    /// Connections that make one request before the measurement and are silent from then on.
    pub idle_connections: usize,
    /// How long to go on at most.
    pub duration: Duration,
    /// How many requests to make at most.
    pub requests_max: Option<u64>,
    /// Requests that are due per second, taken by whichever connection is free; `None`: each connection asks again
    /// when its reply is complete.
    pub requests_per_second: Option<f64>,
    /// Sleep when there is nothing to read, instead of spinning.
    pub sleep: bool,
    /// Read every body and check that the same path always gives the same bytes, instead of dropping them unread.
    pub verify: bool,
}

/// A load whose connections are open and whose first request has not been sent.
#[derive(Debug)]
pub struct Load {
    shared: Shared,
    clients: Vec<Client>,
    /// Held open until the load ends.
    _idle: Vec<std::net::TcpStream>,
    duration: Duration,
    timeout: Timespec,
}

impl Load {
    /// Opens the idle connections, and those that will ask (unless each request opens its own).
    ///
    /// # Errors
    /// If there is no connection to make, the server does not answer, or descriptors run out.
    pub fn connect(settings: &LoadSettings, requests: RequestList) -> Result<Self> {
        ensure!(settings.connections > 0, "a load needs at least one connection");
        let idle = idle::open(settings.address, settings.idle_connections, &requests)?;
        let mut shared = Shared {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC).context("epoll_create1")?,
            address: settings.address,
            requests,
            connection_per_request: settings.connection_per_request,
            verify: settings.verify,
            scratch: vec![0; SCRATCH_BYTES],
            report: LoadReport::new(),
            stopping: false,
            requests_left: settings.requests_max.unwrap_or(u64::MAX),
            busy: 0,
            pace: settings.requests_per_second.map(Pace::new),
        };
        let clients = (0..settings.connections)
            .map(|index| Client::new(index, &mut shared))
            .collect::<Result<Vec<_>>>()
            .with_context(|| format!("connecting to {}", settings.address))?;
        // Connections wait in the kernel until they carry a request; this much time lets all of them be accepted.
        std::thread::sleep(Duration::from_millis(50));
        let timeout = if settings.sleep { SLEEP } else { Timespec { tv_sec: 0, tv_nsec: 0 } };
        Ok(Self { shared, clients, _idle: idle, duration: settings.duration, timeout })
    }

    /// Runs the load. The report contains the server's errors. The connections stay open until the load is dropped,
    /// so that the caller can read the server's CPU clocks before they close.
    ///
    /// # Errors
    /// If epoll fails or no new connection can be opened.
    pub fn run(&mut self) -> Result<LoadReport> {
        let cpu_before = thread_cpu();
        let start = Instant::now();
        for client in &mut self.clients {
            client.start(&mut self.shared, start)?;
        }
        let mut progress = (0, start);
        let mut now = start;
        while now - start < self.duration {
            self.start_due(now)?;
            now = self.turn()?;
            let finished = self.shared.report.requests + self.shared.report.failed();
            if finished != progress.0 {
                progress = (finished, now);
            } else if now - progress.1 > STALL {
                self.shared.report.fail(Failure::Stalled, "no request finished for 3 s".into());
                break;
            }
            if self.shared.stopping || (self.shared.requests_left == 0 && self.shared.busy == 0) {
                break;
            }
        }
        // Count and clock end here. Answers that come later would be counted at the rate of a server with less and less to do.
        let mut report = self.shared.report.clone();
        report.elapsed = now - start;
        report.client_cpu = thread_cpu() - cpu_before;
        self.drain(now + DRAIN)?;
        report.late = self.shared.report.requests - report.requests;
        report.unanswered = self.shared.busy as u64;
        report.span = start.elapsed();
        self.fail_for_never_answered();
        report.failures = self.shared.report.failures.clone();
        report.first_failure = self.shared.report.first_failure.clone();
        Ok(report)
    }

    /// Lets requests in flight finish, so that the server sees no aborted transfer.
    fn drain(&mut self, limit: Instant) -> Result<()> {
        self.shared.stopping = true;
        while self.shared.busy > 0 && self.turn()? < limit {}
        Ok(())
    }

    /// A server that answers some connections and never the others has not carried this load.
    fn fail_for_never_answered(&mut self) {
        let count = self.clients.iter().filter(|client| client.was_never_answered()).count();
        if count > 0 {
            let what = format!("{count} of {} connections were never answered", self.clients.len());
            self.shared.report.fail(Failure::NeverAnswered, what);
        }
    }

    /// Lets resting connections make the requests that are due.
    fn start_due(&mut self, now: Instant) -> Result<()> {
        while let Some(client) = self.shared.pace.as_mut().and_then(|pace| pace.take_free(now)) {
            self.clients[client].start(&mut self.shared, now)?;
        }
        Ok(())
    }

    /// One look at the sockets; returns the time after it.
    fn turn(&mut self) -> Result<Instant> {
        let mut events =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 256];
        let until_due = self.shared.pace.as_ref().and_then(|pace| pace.until_due(Instant::now()));
        let timeout = until_due.and_then(|due| Timespec::try_from(due).ok()).map_or(self.timeout, |due| {
            if (due.tv_sec, due.tv_nsec) < (self.timeout.tv_sec, self.timeout.tv_nsec) {
                due
            } else {
                self.timeout
            }
        });
        let count = match epoll::wait(&self.shared.epoll, &mut events[..], Some(&timeout)) {
            Err(Errno::INTR) => 0,
            result => result.context("epoll_wait")?,
        };
        for event in &events[..count] {
            let data = event.data;
            self.clients[data.u64() as usize].handle_event(&mut self.shared)?;
        }
        Ok(Instant::now())
    }
}

/// CPU time of this thread so far.
pub fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Room for what one receive call may take or drop. Dropped bytes never touch it.
const SCRATCH_BYTES: usize = 1 << 20;
/// Without a finished request for this long the server is considered to hang.
const STALL: Duration = Duration::from_secs(3);
/// How long requests in flight may take after the end.
const DRAIN: Duration = Duration::from_secs(1);
/// The longest sleep of a load that sleeps.
const SLEEP: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
