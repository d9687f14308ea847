//! The thread of a worker that handles the master's messages.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_acme::Challenge;
use baton_config::{Config, PemFiles, Resources};
use baton_engine::listen::Listener;
use baton_engine::listen::{address_of, addresses_of};
use baton_engine::{DrainLimits, Steering};
use baton_process_table::{Claim, ProcessTable};
use baton_report::log;
use baton_session::departures::Destination;
use baton_site::plan::Plan;
use baton_sys::memory::give_back;
use baton_telemetry::clock::Clock;
use baton_tls::{PemFile, TicketSecrets};
use rustix::event::{PollFd, PollFlags, Timespec};
use serde_json::Value;

use super::cache_purges::CachePurges;
use super::documents;
use super::plan::{claims, make_plan};
use super::why;
use crate::channel::{self, FromWorker, MESSAGE_BYTES_MAX, ToWorker};
use crate::control::RouteTopic;
use crate::memory_file;
use crate::privileges::WorkerUser;

/// The thread's state.
#[derive(Debug)]
pub(super) struct CommandThread {
    channel: Arc<OwnedFd>,
    user: WorkerUser,
    steering: Arc<Steering>,
    plan: Arc<Plan>,
    /// The worker's own listeners.
    listeners: Vec<Arc<Listener>>,
    /// Listeners of workers that are down, by their slots.
    accepted_for: BTreeMap<usize, Vec<Arc<Listener>>>,
    /// Listeners for the next plan.
    fresh: Vec<Arc<Listener>>,
    /// Shared by its plans.
    resources: Resources,
    purges: CachePurges,
    prepared: Option<Prepared>,
    lingering: Option<Lingering>,
    /// What certificate authorities get to see, by the master's numbers.
    challenges: BTreeMap<u64, Challenge>,
}

/// A drain that is to begin, as soon as clients had time for another request each.
#[derive(Clone, Copy, Debug)]
struct Lingering {
    until: Instant,
    limits: DrainLimits,
}

/// The plan of the next commit.
#[derive(Debug)]
struct Prepared {
    generation: u64,
    plan: Arc<Plan>,
    claims: Vec<Claim>,
    listeners: Vec<Arc<Listener>>,
}

impl CommandThread {
    /// For a worker that begins on these listeners.
    pub(super) fn new(
        channel: Arc<OwnedFd>,
        user: WorkerUser,
        steering: Arc<Steering>,
        plan: Arc<Plan>,
        listeners: Vec<Arc<Listener>>,
        resources: Resources,
        purges: CachePurges,
    ) -> Self {
        Self {
            channel,
            user,
            steering,
            plan,
            listeners,
            accepted_for: BTreeMap::new(),
            fresh: Vec::new(),
            resources,
            purges,
            prepared: None,
            lingering: None,
            challenges: BTreeMap::new(),
        }
    }

    /// Handles messages until the master ends; then the worker ends, too.
    pub(super) fn run(mut self) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        loop {
            if !self.wait_for_message() {
                continue;
            }
            match channel::receive(&*self.channel, &mut buffer) {
                Ok(Some((message, descriptors))) => self.handle(message, descriptors),
                Ok(None) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    log::error(format_args!("a message of the master that cannot be read: {error}"));
                }
                Err(error) => {
                    log::error(format_args!("cannot receive from the master: {error}"));
                    break;
                }
            }
        }
        self.steering.stop();
    }

    /// Waits for a message. False: something else was due, and was done.
    fn wait_for_message(&mut self) -> bool {
        let limit = self.lingering.map(|lingering| lingering.until.saturating_duration_since(Instant::now()));
        let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
        let outbox = self.purges.descriptor();
        let sources = std::iter::once(self.channel.as_fd()).chain(outbox);
        let mut sources: Vec<_> =
            sources.map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)).collect();
        let polled = rustix::event::poll(&mut sources, timeout.as_ref());
        let has_message = !sources[0].revents().is_empty();
        if let Some(Lingering { limits, .. }) = self.lingering.take_if(|_| matches!(polled, Ok(0))) {
            self.steering.drain(limits);
        }
        for orders in self.purges.messages() {
            self.report(&FromWorker::Invalidated { orders });
        }
        has_message
    }

    fn handle(&mut self, message: ToWorker, descriptors: Vec<OwnedFd>) {
        match message {
            ToWorker::Listeners { ids } => self.fresh.extend(listeners(ids, descriptors)),
            ToWorker::ProcessTable { path } => self.take_table(path, descriptors),
            ToWorker::Prepare { generation, listeners } => self.prepare(generation, &listeners, descriptors),
            ToWorker::Commit { generation } => self.commit(generation),
            ToWorker::Abort => {
                self.prepared = None;
                self.fresh.clear();
            }
            ToWorker::ReopenLogs { access, error } => self.reopen_logs(access, error, descriptors),
            ToWorker::SiteLogs { paths, reopened } => self.take_site_logs(paths, reopened, descriptors),
            ToWorker::AcceptFor { slot, ids } => {
                self.accepted_for.entry(slot).or_default().extend(listeners(ids, descriptors));
                self.accept();
            }
            ToWorker::StopAcceptingFor { slot } => {
                if self.accepted_for.remove(&slot).is_some() {
                    self.accept();
                }
            }
            ToWorker::TicketSecrets => self.take_ticket_secrets(descriptors),
            ToWorker::PutProof { id, challenge } => self.put_proof(id, challenge),
            ToWorker::RemoveProof { id } => self.remove_proof(id),
            ToWorker::DocumentMap => {
                documents::take_map(&self.resources.documents, &self.purges.cache, descriptors);
            }
            ToWorker::CountDocuments => {
                for report in documents::served(&self.resources.documents) {
                    self.report(&report);
                }
            }
            ToWorker::Purge { orders, tickets } => {
                self.purges.cache.purge(&orders);
                if !tickets.is_empty() {
                    let responses = self.purges.cache.sweep();
                    let channel = Arc::clone(&self.channel);
                    // A disk that fails to record it is not read again before it is emptied.
                    self.purges.cache.when_recorded(move |_| {
                        report(&channel, &FromWorker::Purged { tickets, responses });
                    });
                }
            }
            ToWorker::CacheMemory { permille } => {
                let files = self.steering.set_memory_share(permille);
                let responses = self.purges.cache.set_memory_share(permille, Clock::default().now_ms());
                if files || responses {
                    give_back();
                }
            }
            ToWorker::Wake => self.steering.wake(),
            ToWorker::GiveBack { gives_back } => self.steering.give_back(gives_back),
            ToWorker::Why { ticket, topic, asked } => {
                let told = match topic {
                    RouteTopic::Node => why::node(&self.plan, &asked),
                    RouteTopic::Cache => why::stored(&self.plan, &self.purges.cache, &asked),
                };
                self.report(&FromWorker::Why { ticket, told });
            }
            ToWorker::Status { ticket } => {
                // The engine's report is JSON; any other text is passed on as it is.
                let status = self.steering.status();
                let status = serde_json::from_str(&status).unwrap_or(Value::String(status));
                self.report(&FromWorker::Status { ticket, status });
            }
            ToWorker::Drain { linger_ms, limit_ms, tunnels_ms, passports } => {
                let limits = DrainLimits { requests_ms: limit_ms, tunnels_ms };
                if linger_ms == 0 {
                    self.close_listeners();
                    self.steering.drain(limits);
                } else {
                    self.linger(Duration::from_millis(linger_ms), limits, passports, descriptors);
                }
            }
            ToWorker::Stop => {
                self.lingering = None;
                self.close_listeners();
                self.steering.stop();
            }
        }
    }

    /// Accepts from the worker's own sockets and from those of workers that are down.
    fn accept(&self) {
        let served = |id| self.listeners.iter().any(|own| own.id == id);
        let accepted_for = self.accepted_for.values().flatten().filter(|listener| served(listener.id));
        let all = self.listeners.iter().chain(accepted_for).cloned().collect();
        self.steering.reload(Arc::clone(&self.plan), all);
    }

    fn take_table(&mut self, path: PathBuf, descriptors: Vec<OwnedFd>) {
        if let Entry::Vacant(vacant) = self.resources.process_tables.entry(path) {
            match ProcessTable::open(descriptors) {
                Ok(table) => {
                    vacant.insert(Arc::new(table));
                }
                // Requests for this application find no process.
                Err(error) => log::error(format_args!("processes that cannot be used: {error}")),
            }
        }
    }

    fn put_proof(&mut self, id: u64, challenge: Challenge) {
        let proofs = &self.resources.proofs;
        match &challenge {
            Challenge::Http { token, key_authorization } => proofs.http.put(token.clone(), key_authorization),
            Challenge::TlsAlpn { name, pem } => {
                let file = PemFile::new("a proof for the authority", pem.clone().into_bytes());
                if let Err(trouble) = proofs.tls.put(name, &file) {
                    log::error(trouble);
                }
            }
        }
        self.challenges.insert(id, challenge);
        self.report(&FromWorker::HasProof { id });
    }

    fn remove_proof(&mut self, id: u64) {
        match self.challenges.remove(&id) {
            Some(Challenge::Http { token, .. }) => self.resources.proofs.http.remove(&token),
            Some(Challenge::TlsAlpn { name, .. }) => self.resources.proofs.tls.remove(&name),
            None => {}
        }
    }

    fn take_ticket_secrets(&self, descriptors: Vec<OwnedFd>) {
        let secrets = memory_file::read(descriptors.into_iter().next()).ok();
        let secrets = secrets.and_then(|bytes| TicketSecrets::from_bytes(&bytes));
        match (secrets, &self.resources.tickets) {
            (Some(secrets), Some(tickets)) => tickets.replace(secrets),
            _ => log::error("ticket keys that cannot be used: the old ones stay"),
        }
    }

    fn prepare(&mut self, generation: u64, ids: &[usize], descriptors: Vec<OwnedFd>) {
        let made = contents_of(descriptors)
            .map_err(|error| format!("cannot read the configuration: {error}"))
            .and_then(|(text, pem_files)| {
                self.resources.pem_files = pem_files;
                let config = Config::from_toml(&text).map_err(|error| error.to_string())?;
                let known = || self.listeners.iter().chain(&self.fresh);
                if ids.iter().any(|id| !known().any(|listener| listener.id == *id)) {
                    return Err("a listener is missing".to_owned());
                }
                let listeners = known().filter(|listener| ids.contains(&listener.id)).cloned().collect();
                Ok(Prepared {
                    generation,
                    plan: make_plan(&config, ids, &self.resources, &self.user)?,
                    claims: claims(&config, &self.resources.process_tables),
                    listeners,
                })
            });
        // The plan has what it needs of them.
        self.resources.pem_files = PemFiles::default();
        match made {
            Ok(prepared) => {
                self.prepared = Some(prepared);
                self.report(&FromWorker::Prepared { generation });
            }
            Err(error) => self.report(&FromWorker::Refused { generation, error }),
        }
    }

    fn commit(&mut self, generation: u64) {
        if let Some(prepared) = self.prepared.take_if(|prepared| prepared.generation == generation) {
            self.plan = prepared.plan;
            self.listeners = prepared.listeners;
            self.fresh.clear();
            // Listeners that no plan needs any more.
            self.resources.process_tables.retain(|_, table| Arc::strong_count(table) > 1);
            self.resources.roots.forget_closed();
            self.accept();
            self.steering.hold(prepared.claims);
            self.report(&FromWorker::Committed { generation });
        }
    }

    /// Accepts no further connections. Other processes go on with those that they can have, if there is a way to them; on each
    /// of the others one more request is answered.
    fn linger(&mut self, time: Duration, limits: DrainLimits, passports: u32, sockets: Vec<OwnedFd>) {
        if self.lingering.is_none() {
            let destination = |socket| Destination::new(socket, addresses_of(&self.listeners), passports);
            match sockets.into_iter().next().map(destination).transpose() {
                Ok(destination) => destination.into_iter().for_each(|one| self.steering.move_clients(one)),
                Err(error) => log::error(format_args!("clients cannot move to other processes: {error}")),
            }
            self.close_listeners();
            self.steering.linger();
            self.lingering = Some(Lingering { until: Instant::now() + time, limits });
        }
    }

    /// Closes the sockets. Once all processes have, the kernel refuses clients; otherwise they would wait in a queue
    /// until the last client is served.
    fn close_listeners(&mut self) {
        self.listeners.clear();
        self.accepted_for.clear();
        self.fresh.clear();
        self.prepared = None;
    }

    fn reopen_logs(&self, access: bool, error: bool, descriptors: Vec<OwnedFd>) {
        let mut descriptors = descriptors.into_iter();
        if access && let Some(file) = descriptors.next() {
            self.steering.reopen_log(file);
        }
        if error
            && let Some(file) = descriptors.next()
            && let Err(why) = log::redirect_to(file)
        {
            log::error(format_args!("cannot write to the new error log: {why}"));
        }
    }

    fn take_site_logs(&self, paths: Vec<PathBuf>, reopened: bool, descriptors: Vec<OwnedFd>) {
        let Some(logs) = &self.resources.site_logs else { return };
        for (path, file) in paths.into_iter().zip(descriptors) {
            if !reopened {
                logs.put(path, file);
            } else if let Err(why) = logs.reopen(&path, file) {
                log::error(format_args!("cannot write to the new log {}: {why}", path.display()));
            }
        }
    }

    fn report(&self, message: &FromWorker) {
        report(&self.channel, message);
    }
}

fn report(channel: &OwnedFd, message: &FromWorker) {
    if let Err(error) = channel::send(channel, message, &[]) {
        log::error(format_args!("cannot report to the master: {error}"));
    }
}

/// Sockets that came with a message.
fn listeners(ids: Vec<usize>, sockets: Vec<OwnedFd>) -> Vec<Arc<Listener>> {
    let listener = |(id, socket)| match address_of(&socket) {
        Ok(address) => Some(Arc::new(Listener { id, address, socket })),
        // The plan that needs this socket will be refused.
        Err(error) => {
            log::error(format_args!("a listener that cannot be used: {error}"));
            None
        }
    };
    ids.into_iter().zip(sockets).filter_map(listener).collect()
}

/// The configuration and the PEM files that came with a message.
fn contents_of(descriptors: Vec<OwnedFd>) -> io::Result<(String, PemFiles)> {
    let mut descriptors = descriptors.into_iter();
    let text = memory_file::read(descriptors.next())?;
    let pem_files = PemFiles::from_bytes(&memory_file::read(descriptors.next())?);
    let text = String::from_utf8(text.to_vec()).map_err(io::Error::other)?;
    Ok((text, pem_files.ok_or(io::ErrorKind::InvalidData)?))
}
