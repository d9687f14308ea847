//! A closed loop: each connection sends its next request when its reply is complete. Overload cannot occur, and CPU
//! time per request is exact.
//!
//! The exception is a load with a *pace*: its requests are due at fixed times, independently of earlier ones, and
//! latency counts from then on. A server that stops for a second is late for all requests of that second; a closed loop
//! would have made only one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::busy::BusyClock;
use super::exchange::{Exchange, Step};
use super::idle;
use super::pace::Pace;
use super::poll::Poll;
use super::report::{Failure, LoadReport};
use super::requests::RequestOrder;
use super::targets::{LoadRequest, Targets};
use super::wire::Wire;

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
    poll: Poll,
    /// Held open until the load ends.
    _idle: Vec<std::net::TcpStream>,
    duration: Duration,
}

/// What all clients have in common.
#[derive(Debug)]
struct Shared {
    wire: Wire,
    order: RequestOrder,
    report: LoadReport,
    busy: BusyClock,
    /// Begin no more requests, and count no more answers.
    stopping: bool,
    /// The number of requests left to begin.
    requests_left: u64,
    /// Clients with a request in flight.
    in_flight: usize,
    /// When requests are due, if not at once.
    pace: Option<Pace>,
}

/// A connection that asks as long as the load goes on.
#[derive(Debug)]
struct Client {
    index: usize,
    exchange: Exchange,
    asked: Instant,
    /// None of its connections has carried a reply yet.
    never_answered: bool,
}

impl LoadSettings {
    /// One kept connection that spins, asks as often as it can, and drops what it reads. Callers have other wishes.
    pub fn new(address: SocketAddr, duration: Duration) -> Self {
        Self {
            address,
            connections: 1,
            connection_per_request: false,
            idle_connections: 0,
            duration,
            requests_max: None,
            requests_per_second: None,
            sleep: false,
            verify: false,
        }
    }
}

impl Load {
    /// Opens the idle connections, and those that will ask.
    ///
    /// # Errors
    /// If there is no connection to make or no request, the server does not answer, or descriptors run out.
    pub fn connect(settings: &LoadSettings, requests: impl IntoIterator<Item = LoadRequest>) -> Result<Self> {
        ensure!(settings.connections > 0, "a load needs at least one connection");
        allow_descriptors(settings.connections + settings.idle_connections)?;
        let (order, different) = RequestOrder::of(requests);
        let first = different.first().context("a load needs a request")?;
        let idle = idle::open(settings.address, settings.idle_connections, first)?;
        let host = settings.address.to_string();
        let targets = Targets::new(&host, settings.connection_per_request, different);
        let wire = Wire::new(settings.address, targets, settings.connection_per_request, settings.verify)?;
        let mut shared = Shared {
            wire,
            order,
            report: LoadReport::default(),
            busy: BusyClock::start(),
            stopping: false,
            requests_left: settings.requests_max.unwrap_or(u64::MAX),
            in_flight: 0,
            pace: settings.requests_per_second.map(Pace::new),
        };
        let clients = (0..settings.connections)
            .map(|index| Client::new(index, &mut shared))
            .collect::<Result<Vec<_>>>()
            .with_context(|| format!("connecting to {}", settings.address))?;
        // Connections wait in the kernel until they carry a request; this much time lets all of them be accepted.
        std::thread::sleep(Duration::from_millis(50));
        let poll = Poll::new(settings.sleep);
        Ok(Self { shared, clients, poll, _idle: idle, duration: settings.duration })
    }

    /// Runs the load. The report contains the server's errors. The connections stay open until the load is dropped,
    /// so that the caller can read the server's CPU clocks before they close.
    ///
    /// # Errors
    /// If epoll fails or no new connection can be opened.
    pub fn run(&mut self) -> Result<LoadReport> {
        self.shared.busy = BusyClock::start();
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
            if self.shared.stopping || (self.shared.requests_left == 0 && self.shared.in_flight == 0) {
                break;
            }
        }
        // Count and clock end here. Answers that come later would be counted at the rate of a server with less and less to do.
        let report = &mut self.shared.report;
        report.bytes = self.shared.wire.bytes;
        report.elapsed = now - start;
        report.client_cpu = self.shared.busy.cpu();
        report.client_busy = self.shared.busy.share(now);
        self.drain(now + DRAIN)?;
        self.fail_for_never_answered();
        let mut report = std::mem::take(&mut self.shared.report);
        report.unanswered = self.shared.in_flight as u64;
        report.span = start.elapsed();
        report.connections = self.shared.wire.connections;
        Ok(report)
    }

    /// Lets requests in flight finish, so that the server sees no aborted transfer.
    fn drain(&mut self, limit: Instant) -> Result<()> {
        self.shared.stopping = true;
        let mut now = Instant::now();
        while self.shared.in_flight > 0 && now < limit {
            now = self.turn()?;
        }
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
        let due = self.shared.pace.as_ref().and_then(Pace::next_due);
        let after = self.poll.look(&self.shared.wire.epoll, due, &mut self.shared.busy)?;
        for number in 0..self.poll.tokens.len() {
            self.clients[self.poll.tokens[number] as usize].handle_event(&mut self.shared)?;
        }
        Ok(after)
    }
}

impl Client {
    fn new(index: usize, shared: &mut Shared) -> Result<Self> {
        let exchange = Exchange::open(index as u64, &mut shared.wire)?;
        Ok(Self { index, exchange, asked: Instant::now(), never_answered: true })
    }

    /// Begins with the first request, or continues after a pause.
    fn start(&mut self, shared: &mut Shared, now: Instant) -> Result<()> {
        self.begin(shared, now);
        self.handle_event(shared)
    }

    /// Whether it waits for its very first reply.
    fn was_never_answered(&self) -> bool {
        self.never_answered && !self.exchange.is_resting()
    }

    /// Something may have become possible: does all that is.
    fn handle_event(&mut self, shared: &mut Shared) -> Result<()> {
        loop {
            match self.exchange.advance(&mut shared.wire) {
                Step::Again | Step::Wait => return Ok(()),
                Step::Finished => {
                    let now = Instant::now();
                    shared.in_flight -= 1;
                    match shared.stopping {
                        true => shared.report.late += 1,
                        false => shared.report.finished(now - self.asked, self.exchange.body_bytes),
                    }
                    self.never_answered = false;
                    if self.exchange.closes {
                        self.exchange.await_end();
                    } else {
                        self.begin(shared, now);
                    }
                }
                Step::Ended => {
                    self.exchange.reopen(&mut shared.wire)?;
                    self.begin(shared, Instant::now());
                }
                Step::Stale => {
                    shared.report.reconnects += 1;
                    self.exchange.reopen(&mut shared.wire)?;
                    self.exchange.ask_again();
                }
                Step::Failed(failure, detail) => {
                    if !self.exchange.is_closing() {
                        shared.in_flight -= 1;
                    }
                    shared.report.fail(failure, detail);
                    shared.stopping |= shared.report.failed() >= FAILURES_MAX;
                    self.exchange.reopen(&mut shared.wire)?;
                    self.begin(shared, Instant::now());
                }
            }
        }
    }

    fn begin(&mut self, shared: &mut Shared, now: Instant) {
        if shared.stopping || shared.requests_left == 0 {
            return self.exchange.rest();
        }
        let asked = match &mut shared.pace {
            None => now,
            Some(pace) => {
                let Some(due) = pace.take_due(now) else {
                    pace.rest(self.index);
                    return self.exchange.rest();
                };
                due
            }
        };
        shared.requests_left -= 1;
        shared.in_flight += 1;
        self.asked = asked;
        self.exchange.ask(&mut shared.wire, shared.order.take_next());
    }
}

/// Raises the limit of open descriptors to what so many connections need.
pub(super) fn allow_descriptors(connections: usize) -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let wanted = connections as u64 + DESCRIPTORS_BESIDE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    ensure!(
        maximum.is_none_or(|maximum| maximum >= wanted),
        "{connections} connections need {wanted} descriptors, and this process may have {}: raise it with `ulimit -n {wanted}`",
        maximum.unwrap_or_default()
    );
    let current = current.map(|current| current.max(wanted));
    setrlimit(Resource::Nofile, Rlimit { current, maximum }).context("raising the limit of descriptors")
}

/// Descriptors of the process that are no connections of the load, with much to spare.
const DESCRIPTORS_BESIDE: u64 = 256;
/// After so many failures the rest would say nothing new.
const FAILURES_MAX: u64 = 1_000;
/// Without a finished request for this long the server is considered to hang.
const STALL: Duration = Duration::from_secs(3);
/// How long requests in flight may take after the end.
const DRAIN: Duration = Duration::from_secs(1);
