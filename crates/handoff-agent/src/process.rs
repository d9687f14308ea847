//! The process: waits, hears, and does what the machine wants.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::time::{Duration, SystemTime};

use baton_cluster::Tuple;
use baton_cluster::agent::{Action, ForServer, Handoff, HandoffAgent, Peer};
use baton_cluster::local::{AgentSettings, AgentStatus, FromMaster, FromWorker, Node, ToMaster, VERSION};
use baton_confine::Limits;
use baton_passport::Passport;
use baton_report::{OperatorError, log};
use baton_sys::tcp_repair;
use baton_tls::MemberKey;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{SocketFlags, sockopt};
use rustix::rand::GetRandomFlags;
use rustix::time::{ClockId, clock_gettime};

use crate::clock::Clock;
use crate::confine::confine;
use crate::entrance::Entrance;
use crate::kernel::Kernel;
use crate::log_pace::LogPace;
use crate::peers::Peers;
use crate::server::{Said, Server};
use crate::settings;

/// Moves connections for the servers that connect to `path`, until there is nothing left to do.
///
/// # Errors
/// If the socket cannot be made, or privileges not be given up.
pub fn run(path: &Path, limits: Limits) -> Result<(), OperatorError> {
    let Some(entrance) = Entrance::open(path)? else {
        log::notice(format_args!("another handoff agent serves at {}", path.display()));
        return Ok(());
    };
    // When it ends it removes the socket.
    let writes = path.parent().map(Path::to_owned).into_iter().collect();
    confine(&Limits { writes, ..limits })?;
    let mut secret = [0; 16];
    rustix::rand::getrandom(&mut secret, GetRandomFlags::empty())
        .map_err(|error| OperatorError::of("get random numbers", &error.into()))?;
    let clock = Clock::start();
    let mut process = Process {
        clock,
        entrance,
        agent: HandoffAgent::new(secret, clock.now_ms()),
        kernel: Kernel::default(),
        key: None,
        listener: None,
        servers: Vec::new(),
        has_server: false,
        peers: Peers::default(),
        log: LogPace::default(),
        told: AgentStatus::default(),
        status_due_ms: 0,
        sweep_due_ms: 0,
    };
    while !process.is_over() {
        process.step().map_err(|error| OperatorError::of("wait for messages", &error))?;
    }
    Ok(())
}

struct Process {
    clock: Clock,
    entrance: Entrance,
    agent: HandoffAgent<OwnedFd>,
    kernel: Kernel,
    key: Option<MemberKey>,
    /// For other agents.
    listener: Option<(SocketAddr, OwnedFd)>,
    /// The one that has said `Hello` last is the last of those that have.
    servers: Vec<Server>,
    has_server: bool,
    peers: Peers,
    log: LogPace,
    /// The status that the server was told.
    told: AgentStatus,
    status_due_ms: u64,
    sweep_due_ms: u64,
}

/// What is waited for.
#[derive(Clone, Copy)]
enum Source {
    Entrance,
    Listener,
    Master(usize),
    Workers(usize),
    Peer(Peer),
}

/// Messages of one worker socket, or connections, in a row: others want to be heard, too.
const ROUND: usize = 64;

/// Messages that a worker socket holds, at the most.
const LAST_WORDS: usize = 4096;

/// Times between two looks at the status and at the kernel's table.
const STATUS_MS: u64 = 1_000;
const SWEEP_MS: u64 = 5_000;

impl Process {
    fn is_over(&self) -> bool {
        self.ends_ms().is_some_and(|ends_ms| ends_ms <= self.clock.now_ms())
    }

    /// When the process ends, if nothing changes. It waits for a master that is connected, whatever it has said.
    fn ends_ms(&self) -> Option<u64> {
        let has_master = self.servers.iter().any(|server| server.master.is_some());
        self.agent.ends_ms().filter(|_| !has_master)
    }

    /// Waits, and does what is due.
    fn step(&mut self) -> io::Result<()> {
        let ready = self.wait()?;
        for (source, flags) in ready {
            self.handle(source, flags);
            self.act();
        }
        // Before anything else: clients wait for these messages.
        self.peers.flush(&mut self.agent, self.clock.now_ms());
        self.forget_gone();
        let now_ms = self.clock.now_ms();
        if self.agent.deadline_ms().is_some_and(|due_ms| due_ms <= now_ms) {
            self.agent.handle_time(now_ms);
        }
        if now_ms >= self.sweep_due_ms {
            self.sweep_due_ms = now_ms + SWEEP_MS;
            for tuple in self.kernel.ended() {
                self.agent.handle_idle(tuple, now_ms);
            }
        }
        self.act();
        self.peers.flush(&mut self.agent, now_ms);
        self.act();
        self.tell_status(now_ms);
        Ok(())
    }

    fn wait(&self) -> io::Result<Vec<(Source, PollFlags)>> {
        let mut sources = vec![(Source::Entrance, self.entrance.as_fd(), PollFlags::IN)];
        if let Some((_, listener)) = &self.listener {
            sources.push((Source::Listener, listener.as_fd(), PollFlags::IN));
        }
        let or_out = |wants: bool| if wants { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        for (index, server) in self.servers.iter().enumerate() {
            if let Some(master) = &server.master {
                sources.push((Source::Master(index), master.as_fd(), or_out(server.wants_write())));
            }
            if let Some(requests) = &server.requests {
                sources.push((Source::Workers(index), requests.as_fd(), PollFlags::IN));
            }
        }
        for (peer, channel) in &self.peers.channels {
            sources.push((Source::Peer(*peer), channel.as_fd(), or_out(channel.wants_write())));
        }
        let mut fds: Vec<_> = sources.iter().map(|(_, fd, flags)| PollFd::new(fd, *flags)).collect();
        let longest_ms = self.clock.now_ms() + STATUS_MS;
        let due = [self.agent.deadline_ms(), self.ends_ms(), self.peers.deadline_ms(), Some(longest_ms)];
        let wait = self.clock.until(due.into_iter().flatten().min().unwrap_or(longest_ms));
        // Rounded up to a millisecond of the machine's clock, or time would come too early, again and again.
        let wait = wait + Duration::from_micros(10);
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match rustix::event::poll(&mut fds, Some(&wait)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let ready = sources.iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|((source, ..), fd)| (*source, fd.revents())).collect())
    }

    fn handle(&mut self, source: Source, flags: PollFlags) {
        let now_ms = self.clock.now_ms();
        match source {
            Source::Entrance => self.servers.extend(self.entrance.accept().map(Server::new)),
            Source::Listener => self.accept(now_ms),
            Source::Master(index) => {
                self.servers[index].flush();
                while let Some((message, sockets)) = self.servers[index].next_of_master() {
                    self.handle_master(index, message, sockets);
                }
            }
            Source::Workers(index) => self.hear_workers(index, ROUND),
            Source::Peer(peer) => {
                let writable = flags.contains(PollFlags::OUT);
                self.peers.handle_ready(peer, writable, &mut self.agent, now_ms);
            }
        }
    }

    fn hear_workers(&mut self, index: usize, most: usize) {
        for _ in 0..most {
            match self.servers[index].next_of_workers() {
                Said::Message(message, socket) => {
                    self.handle_worker(index, message, socket, self.clock.now_ms());
                }
                Said::Nonsense => {}
                Said::Nothing | Said::End => break,
            }
            self.act();
        }
    }

    fn accept(&mut self, now_ms: u64) {
        let (Some((_, listener)), Some(key)) = (&self.listener, &self.key) else { return };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..ROUND {
            let Ok(socket) = rustix::net::accept_with(listener, flags) else { return };
            self.peers.accept(socket, key, now_ms);
        }
    }

    fn handle_master(&mut self, index: usize, message: FromMaster, sockets: Vec<OwnedFd>) {
        let handled = match message {
            FromMaster::Hello { version, .. } if version != VERSION => Err(OperatorError::new(format!(
                "the server speaks version {version} with its handoff agent, which speaks version {VERSION}"
            ))
            .cause("the handoff agent is older than the server, and still has connections")
            .remedy("requests are relayed until its last connection has ended; `kill` ends it at once, with these")),
            FromMaster::Hello { settings, .. } => self.handle_hello(index, &settings, sockets),
            FromMaster::Nodes { nodes } => self.handle_nodes(&nodes),
            FromMaster::Drain { node, is_drained } => {
                self.agent.handle_drain(&node, is_drained, clock_ms());
                Ok(())
            }
            FromMaster::WorkerEnded { worker } => {
                // Its last words may not have been read.
                self.hear_workers(index, LAST_WORDS);
                self.agent.handle_worker_ended(worker, self.clock.now_ms());
                Ok(())
            }
        };
        if let Err(trouble) = handled {
            log::error(&trouble);
            self.servers[index].tell(ToMaster::Refused { trouble: trouble.to_string() });
        }
    }

    fn handle_hello(
        &mut self,
        index: usize,
        settings: &AgentSettings,
        sockets: Vec<OwnedFd>,
    ) -> Result<(), OperatorError> {
        let Ok([requests, arrivals]) = <[OwnedFd; 2]>::try_from(sockets) else {
            return Err(OperatorError::new("a server says hello without the two sockets of its workers"));
        };
        Node::check(&settings.nodes).map_err(|refused| OperatorError::new(refused.to_string()))?;
        let key = settings::load_key(&settings.key, &settings.revoked)?;
        self.kernel.attach(&settings.interfaces)?;
        if self.listener.as_ref().map(|(address, _)| *address) != settings.listen {
            // The old one first: the address may differ in its host only.
            self.listener = None;
            self.listener = match settings.listen {
                Some(address) => Some((address, settings::listen(address)?)),
                None => None,
            };
        }
        // Connections that are there go on with the key that they began with, unless they are a revoked member's.
        self.key = Some(key);
        self.peers.revoke(&settings.revoked, &mut self.agent, self.clock.now_ms());
        let mut server = self.servers.remove(index);
        let met = server
            .meet(requests, arrivals)
            .map_err(|error| OperatorError::of("use the workers' sockets", &error));
        self.servers.iter_mut().for_each(|older| older.leave_workers_to(&server));
        self.servers.push(server);
        met?;
        let now_ms = self.clock.now_ms();
        self.agent.handle_server(&settings.nodes, now_ms);
        (self.told, self.status_due_ms) = (AgentStatus::default(), now_ms);
        Ok(())
    }

    fn handle_nodes(&mut self, nodes: &[Node]) -> Result<(), OperatorError> {
        Node::check(nodes).map_err(|refused| OperatorError::new(refused.to_string()))?;
        self.agent.handle_nodes(nodes, self.clock.now_ms());
        Ok(())
    }

    fn handle_worker(&mut self, index: usize, message: FromWorker, socket: Option<OwnedFd>, now_ms: u64) {
        match (message, socket) {
            (FromWorker::Handoff { node, passport }, Some(socket)) => {
                let is_counted = self.current() == Some(index);
                match tuple_of(&socket) {
                    Ok(tuple) => {
                        let handoff = Handoff { node, socket, tuple, passport, is_counted };
                        self.agent.handle_handoff(handoff, now_ms);
                    }
                    Err(why) => self.give_back(&socket, *passport, why),
                }
            }
            (FromWorker::Return { flow, passport }, Some(socket)) => {
                self.agent.handle_return(flow, socket, passport, now_ms);
            }
            (FromWorker::Report(report), _) => self.agent.handle_report(&report, now_ms),
            (FromWorker::Handoff { .. } | FromWorker::Return { .. }, None) => {
                log::error("a worker's message comes without the client's socket");
            }
        }
    }

    /// What is no connection of TCP cannot move.
    fn give_back(&self, socket: &OwnedFd, passport: Passport, why: &str) {
        let passport = Passport { stay: true, ..passport };
        let is_given = self.serving().is_some_and(|server| server.give(socket, &passport));
        let outcome = if is_given { "it is relayed" } else { "it is closed" };
        log::error(format_args!("a connection cannot be handed over: {why}; {outcome}"));
    }

    /// The server that has said `Hello` last. One behind it has only connected so far.
    fn current(&self) -> Option<usize> {
        self.servers.iter().rposition(Server::has_said_hello)
    }

    /// The server that is given connections.
    fn serving(&self) -> Option<&Server> {
        self.current().map(|index| &self.servers[index]).filter(|server| server.serves())
    }

    /// Tells its master something.
    fn tell(&mut self, message: ToMaster) {
        if let Some(index) = self.current() {
            self.servers[index].tell(message);
        }
    }

    /// Servers that have ended.
    fn forget_gone(&mut self) {
        self.servers.retain(|server| !server.is_gone());
        let has_server = self.servers.iter().any(Server::has_workers);
        if std::mem::replace(&mut self.has_server, has_server) && !has_server {
            self.agent.handle_server_gone(self.clock.now_ms());
        }
    }

    /// Does everything that the machine wants.
    fn act(&mut self) {
        while let Some(action) = self.agent.next_action() {
            self.act_one(action);
        }
    }

    fn act_one(&mut self, action: Action<OwnedFd>) {
        let now_ms = self.clock.now_ms();
        match action {
            Action::Connect { node, address } => {
                if let Err(why) = self.peers.connect(node, address, self.key.as_ref(), now_ms) {
                    self.agent.handle_closed(Peer::Node(node), why, now_ms);
                }
            }
            Action::Disconnect { peer } => self.peers.disconnect(peer),
            Action::Send { peer, bytes } => self.peers.send(peer, &bytes),
            Action::Freeze { flow, tuple, socket } => match self.kernel.freeze(tuple, socket) {
                Ok(tcp) => self.agent.handle_frozen(flow, tcp, now_ms),
                Err((socket, why)) => self.agent.handle_not_frozen(flow, socket, why, now_ms),
            },
            Action::Restore { flow, tuple, tcp } => {
                let restored = self.kernel.restore(tuple, &tcp);
                self.agent.handle_restored(flow, restored, now_ms);
            }
            Action::Hold { tuple } => {
                if let Err(error) = self.kernel.hold(tuple) {
                    log::error(format_args!("packets of {tuple} cannot be held back: {error}"));
                }
            }
            Action::Forward { tuple, next_hop } => {
                if let Err(why) = self.kernel.forward(tuple, next_hop) {
                    log::error(format_args!(
                        "packets of {tuple} cannot be forwarded: {why}; the client gets a reset"
                    ));
                    self.agent.handle_idle(tuple, now_ms);
                }
            }
            Action::End { tuple } => self.kernel.end(tuple),
            Action::Remove { tuple } => self.kernel.remove(tuple),
            Action::Give(connection) => {
                let ForServer { socket, passport, .. } = &connection;
                // A socket that was never frozen stays as it is.
                let thawed = tcp_repair::thaw(socket).is_ok();
                if !thawed || !self.serving().is_some_and(|server| server.give(socket, passport)) {
                    self.agent.handle_not_given(connection, now_ms);
                }
            }
            // It is frozen: its end is silent.
            Action::Discard { socket } => drop(socket),
            Action::Reset { socket } => {
                let _ = tcp_repair::thaw(&socket);
                let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
            }
            Action::Tell(message) => self.tell(message),
            Action::Log(note) => self.log.write(&note, now_ms),
        }
    }

    fn tell_status(&mut self, now_ms: u64) {
        if now_ms < self.status_due_ms {
            return;
        }
        self.status_due_ms = now_ms + STATUS_MS;
        // Its own time passes in any case: that alone is no news.
        let mut status =
            AgentStatus { pid: std::process::id(), cpu_us: self.told.cpu_us, ..self.agent.status() };
        if status != self.told && self.serving().is_some() {
            status.cpu_us = cpu_us();
            self.told = status.clone();
            self.tell(ToMaster::Status(status));
        }
    }
}

/// Milliseconds since 1970: operators' words on different hosts are ordered by it.
fn clock_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// CPU time that this process has used, in microseconds.
fn cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
}

/// The ends of a client's socket.
fn tuple_of(socket: &OwnedFd) -> Result<Tuple, &'static str> {
    let end = |address: Option<rustix::net::SocketAddrAny>| {
        address.and_then(|address| SocketAddr::try_from(address).ok())
    };
    let client = rustix::net::getpeername(socket).map_err(|_| "its client is gone")?;
    let server = rustix::net::getsockname(socket).map_err(|_| "it is no socket")?;
    let (client, server) = end(client).zip(end(Some(server))).ok_or("it is no connection of TCP")?;
    Tuple::new(client, server).ok_or("it is no connection of TCP")
}
