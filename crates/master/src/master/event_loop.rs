//! The master's loop, over signals, workers' reports, the control socket, the admin listener and the clock.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_cache::PurgeOrder;
use baton_config::Server;
use baton_engine::listen::Listener;
use baton_report::OperatorError;
use baton_report::log;
use baton_supervise::{End, describe_end};
use baton_sys::process::{self, Ended};
use baton_telemetry::log::LogSettings;
use rustix::event::PollFlags;
use rustix::process::Signal;
use serde_json::json;

use super::{Master, Outcome};
use crate::channel::{self, FromWorker, MESSAGE_BYTES_MAX, ToWorker};
use crate::child::{Child, ChildName};
use crate::control::{Answer, Command, RouteTopic};
use crate::listeners::{Listening, listen_addresses};
use crate::logs::Logs;
use crate::management::Requester;
use crate::phase::Phase;
use crate::poll::{Source, WaitList};
use crate::signals::SignalOrder;
use crate::worker::WorkerSetup;
use crate::workers::Worker;

impl Master {
    /// Runs the server. Returns in the master when it has ended, and in each worker when that has just begun.
    ///
    /// # Errors
    /// Why the server never came to serve.
    pub(crate) fn run(mut self) -> Result<Outcome, OperatorError> {
        loop {
            let now = Instant::now();
            if let Some(index) = self.next_to_start(now) {
                if let Some(channel) = self.workers.start(index, now) {
                    return Ok(Outcome::Worker(self.into_worker_setup(index), channel));
                }
                continue;
            }
            // Applications end last: they still answer the workers' requests.
            if matches!(self.phase, Phase::Ending(_))
                && self.workers.is_empty()
                && self.applications.end(now)
                && self.children().iter().all(|(_, child)| child.pid().is_none())
            {
                return self.end();
            }
            self.handle_deadlines(now);
            let ready = self.wait_list().wait(self.next_deadline()).unwrap_or_else(|error| {
                log::error(format_args!("cannot wait: {error}"));
                std::thread::sleep(Duration::from_secs(1));
                Vec::new()
            });
            let now = Instant::now();
            ready.into_iter().for_each(|source| self.handle_ready(source, now));
        }
    }

    /// The slot in which to start a worker now. None during a reload: the worker's configuration might be replaced.
    fn next_to_start(&self, now: Instant) -> Option<usize> {
        self.may_start_workers().then(|| self.workers.next_to_start(now)).flatten()
    }

    fn may_start_workers(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Serving) && !self.reloads.is_under_way()
    }

    /// Keeps what a worker needs and drops the rest: it must not have the master's other descriptors.
    fn into_worker_setup(self, index: usize) -> io::Result<Box<WorkerSetup>> {
        let slot = &self.workers.slots()[index];
        let processes = self.workers.count();
        let own = |one| Listening::sockets_of(one, index, processes).map(move |socket| (one, socket));
        let listener = |(one, socket): (&Listening, BorrowedFd<'_>)| {
            let socket = socket.try_clone_to_owned()?;
            Ok(Arc::new(Listener { id: one.id, address: one.actual.clone(), socket }))
        };
        let mut tuning = self.startup.tuning;
        let disk = tuning.shared_cache.disk.take();
        tuning.shared_cache.disk = disk.map(|disk| disk.of_process(index, processes));
        Ok(Box::new(WorkerSetup {
            master_pid: self.startup.pid,
            user: self.startup.user.clone(),
            cpu: slot.cpu,
            listener_ids: self.listeners.ids(&listen_addresses(&self.config), &[]),
            listeners: self.listeners.iter().flat_map(own).map(listener).collect::<io::Result<_>>()?,
            counters: slot.counters,
            figures: self.workers.tables().figures,
            heartbeats: slot.heartbeats,
            all_counters: self.workers.counters().collect(),
            log: self.logs.access_for_worker()?.map(|file| LogSettings {
                file,
                syslog: self.config.log.access.syslog(),
                lines: self.config.log.lines(),
                buffer_bytes: self.config.log.buffer_bytes as usize,
                flush_ms: self.config.log.flush_ms,
            }),
            site_logs: self.logs.sites_for_worker()?,
            tuning,
            cache_permille: self.cache_pressure.permille(),
            purges: slot.missed.orders.clone(),
            pem_files: self.certificates.into_files(),
            ticket_secrets: self.ticket_keys.into_secrets(),
            config: self.applications.settled(&self.config, processes),
            process_tables: self.applications.process_tables(),
            notices: self.workers.tables().notices,
            documents_socket: self.documents.socket().to_owned(),
            origins: (self.origins.table(), index),
            rates: self.workers.tables().rates,
            addresses: self.workers.tables().addresses,
            arrivals: self.upgrade.into_arrivals(),
            of_siblings: self.siblings.map(|siblings| siblings.arrivals),
            handoff_agent: self.handoff_agent.into_worker_ends(),
        }))
    }

    fn children(&self) -> [(ChildName, &Child); 3] {
        [
            (ChildName::Acme, &self.acme.child),
            (ChildName::Documents, &self.documents.child),
            (ChildName::Members, &self.members.child),
        ]
    }

    fn wait_list(&self) -> WaitList<'_> {
        let mut list = WaitList::default();
        list.add(Source::Signals, self.signals.as_fd(), PollFlags::IN);
        for (index, channel) in self.workers.channels() {
            list.add(Source::Worker(index), channel, PollFlags::IN);
        }
        for (index, output) in self.applications.outputs() {
            list.add(Source::Application(index), output, PollFlags::IN);
        }
        for (name, child) in self.children() {
            if let Some(channel) = child.channel() {
                list.add(Source::Child(name), channel, PollFlags::IN);
            }
            if let Some(output) = child.output() {
                list.add(Source::ChildOutput(name), output, PollFlags::IN);
            }
        }
        if let Some(link) = self.handoff_agent.link() {
            list.add(Source::HandoffAgent, link, PollFlags::IN);
        }
        for (id, socket, flags) in self.endpoints.interests() {
            list.add(Source::Connection(id), socket, flags);
        }
        for (endpoint, index, socket) in self.endpoints.listeners(self.upgrade.serves_admin(self.phase)) {
            list.add(Source::Endpoint(endpoint, index), socket, PollFlags::IN);
        }
        self.upgrade.poll(&mut list);
        list
    }

    fn next_deadline(&self) -> Option<Instant> {
        let deadlines = [
            self.may_start_workers().then(|| self.workers.next_due()).flatten(),
            self.workers.kill_deadline(),
            self.applications.deadline(),
            self.acme.deadline(self.may_reload().is_ok()),
            self.handoff_agent.deadline(self.may_reload().is_ok()),
            self.documents.deadline(self.may_reload().is_ok()),
            self.members.deadline(self.members_wanted()),
            self.members_due(),
            self.members.left_due(),
            self.upgrade.deadline(),
            self.endpoints.deadline(),
            self.watchdog_due(),
            self.certificates_due(),
            self.cache_pressure.deadline(&self.config),
            Some(self.ticket_keys.deadline(&self.config)),
            self.reloads.deadline(),
            self.status_collection.deadline(),
            self.purges.deadline(),
            self.phase.deadline(),
        ];
        deadlines.into_iter().flatten().min()
    }

    fn handle_deadlines(&mut self, now: Instant) {
        let passed = |deadline: Option<Instant>| deadline.is_some_and(|deadline| deadline <= now);
        self.endpoints.advance(now);
        self.workers.kill_late(now);
        self.applications.advance(now);
        self.acme.advance(self.may_reload().is_ok(), &self.startup.user, now);
        self.handoff_agent.advance(self.may_reload().is_ok(), &self.config, &self.origins, now);
        self.documents.advance(self.may_reload().is_ok(), &self.startup.user, now);
        self.members.advance(self.members_wanted(), &self.startup.user, now);
        if passed(self.members_due()) {
            self.look_at_members(now);
        }
        if passed(self.members.left_due()) {
            self.tell_left(now);
        }
        self.upgrade.advance(now);
        if let Some(why) = self.reloads.lateness(now) {
            self.abort_reload(why, now);
        }
        self.finish_status(now);
        self.purges.answer_finished(&mut self.endpoints, now);
        self.purges.retry(&mut self.workers, now);
        if passed(self.watchdog_due()) {
            self.watchdog.look(&mut self.workers, &self.config, now);
            self.update_failover();
        }
        if passed(self.certificates_due()) {
            self.look_at_certificates(now);
        }
        self.ticket_keys.advance(&self.config, &self.workers, now);
        self.cache_pressure.advance(&self.config, &self.workers, now);
        if passed(self.phase.deadline()) {
            self.kill_remaining(now);
        }
    }

    fn handle_ready(&mut self, source: Source, now: Instant) {
        match source {
            Source::Signals => self.handle_signals(now),
            Source::Worker(index) => self.handle_reports(index, now),
            Source::Endpoint(endpoint, index) => {
                self.endpoints.accept(endpoint, index, &self.applications, now);
            }
            Source::Application(index) => self.applications.handle_output(index),
            Source::Child(ChildName::Acme) => self.acme.handle_messages(&self.workers),
            Source::Child(ChildName::Documents) => {
                for (requester, told) in self.documents.handle_messages(&self.workers) {
                    self.endpoints.answer([requester], &Answer::Ok(told), now);
                }
            }
            Source::Child(ChildName::Members) => self.handle_members(now),
            Source::ChildOutput(ChildName::Acme) => self.acme.child.handle_output(),
            Source::ChildOutput(ChildName::Documents) => self.documents.child.handle_output(),
            Source::ChildOutput(ChildName::Members) => self.members.child.handle_output(),
            Source::HandoffAgent => {
                self.handoff_agent.handle_messages(&self.config, &self.origins);
                if self.handoff_agent.take_drain_news() {
                    self.follow_orders(now);
                }
                self.tell_left(now);
            }
            Source::Connection(id) => self.handle_connection(id, now),
            Source::Successor => self.handle_successor(now),
            Source::Predecessor => self.upgrade.handle_predecessor_end(self.phase == Phase::Serving),
        }
    }

    fn handle_signals(&mut self, now: Instant) {
        while let Some((signal, order)) = self.signals.next() {
            match order {
                Some(SignalOrder::Command(command)) => {
                    log::notice(format_args!("{command}: {signal}"));
                    self.handle_command(command, Requester::Signal, now);
                }
                Some(SignalOrder::Withdraw) => {
                    log::notice(format_args!("the workers leave: {signal}"));
                    self.withdraw(now);
                }
                Some(SignalOrder::Reap) => self.reap(now),
                None => {}
            }
        }
    }

    /// Carries out a command of a signal, `baton ctl` or a monitoring request.
    pub(super) fn handle_command(&mut self, command: Command, requester: Requester, now: Instant) {
        let answer = match command {
            Command::Status => return self.begin_status(requester, now),
            Command::Reload => return self.reload(requester, now),
            Command::Upgrade => return self.begin_upgrade(requester, now),
            Command::Drain => {
                self.begin_drain(now);
                let Server { drain_timeout_ms, drain_tunnels_ms, .. } = &self.config.server;
                Answer::Ok(
                    json!({ "draining": true, "limit_ms": drain_timeout_ms, "tunnels_ms": drain_tunnels_ms }),
                )
            }
            Command::Recycle => self.recycle(now),
            Command::Stop => {
                self.begin_stop(now);
                Answer::Ok(json!({ "stopping": true }))
            }
            Command::DrainOrigin(url) => self.origins.set_drained(&self.config, &url, true).into(),
            Command::UndrainOrigin(url) => self.origins.set_drained(&self.config, &url, false).into(),
            Command::Cluster(command) => return self.handle_cluster(command, requester, now),
            Command::Document(path) => {
                if let Err(why) = self.documents.ask(path, requester) {
                    self.endpoints.answer([requester], &Answer::error(why), now);
                }
                return;
            }
            Command::Cache(asked) => {
                return self.ask_of_route(RouteTopic::Cache, asked, requester, now);
            }
            Command::Purge(request) => match request.orders(&self.config) {
                Ok(orders) => return self.begin_purge(orders, requester, now),
                Err(why) => Answer::Error(why),
            },
            Command::ReopenLogs => match self.logs.reopened(&self.config) {
                Ok(logs) => {
                    let reopened: Vec<&str> = logs.names().collect();
                    let answer = Answer::Ok(json!({ "reopened": reopened }));
                    self.use_logs(logs);
                    answer
                }
                Err(trouble) => {
                    log::error(&trouble);
                    Answer::error(trouble)
                }
            },
        };
        self.endpoints.answer([requester], &answer, now);
    }

    fn handle_reports(&mut self, index: usize, now: Instant) {
        let mut buffer = vec![0; MESSAGE_BYTES_MAX];
        while let Some(channel) = self.workers.worker_mut(index).and_then(|worker| worker.channel.as_ref()) {
            match channel::receive(channel, &mut buffer) {
                Ok(Some((report, _))) => self.handle_report(index, report, now),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Ok(None) | Err(_) => {
                    if let Some(worker) = self.workers.worker_mut(index) {
                        worker.channel = None;
                    }
                }
            }
        }
    }

    fn handle_report(&mut self, index: usize, report: FromWorker, now: Instant) {
        match report {
            FromWorker::Ready => {
                if let Some(worker) = self.workers.worker_mut(index) {
                    worker.serves = true;
                }
                self.release_replaced(index, now);
                self.acme.introduce(index, &self.workers);
                self.documents.introduce(index, &self.workers);
                self.handoff_agent.introduce(index, &self.workers);
                if self.phase == Phase::Starting && self.workers.serving().count() == self.workers.count() {
                    self.begin_serving();
                }
                self.update_failover();
            }
            FromWorker::Failed { error } if self.phase == Phase::Starting => {
                self.fail(OperatorError::new(error), now);
            }
            FromWorker::Failed { .. } if self.failure.is_some() => {} // Likely for the same reason as the first.
            FromWorker::Failed { error } => log::error(format_args!("worker {index}: {error}")),
            FromWorker::Prepared { generation } | FromWorker::Committed { generation } => {
                self.reloads.handle_step_done(index, generation);
                self.advance_reload(now);
            }
            FromWorker::Refused { generation, error } if self.reloads.is_current(generation) => {
                self.abort_reload(error, now);
            }
            FromWorker::Refused { .. } => {}
            FromWorker::DocumentsServed { site, served } => self.documents.handle_served(site, served),
            FromWorker::HasProof { id } => self.acme.handle_has_proof(index, id),
            FromWorker::Purged { tickets, responses } => {
                self.purges.handle_purged(index, &tickets, responses);
                self.purges.answer_finished(&mut self.endpoints, now);
            }
            FromWorker::Invalidated { orders } => {
                self.purges.handle_invalidated(index, &orders, &mut self.workers, now);
            }
            FromWorker::Why { ticket, told } => {
                self.endpoints.answer(self.route_questions.take(ticket), &told.into(), now);
            }
            FromWorker::Status { ticket, status } => {
                self.status_collection.handle_status(index, ticket, status);
                self.finish_status(now);
            }
        }
    }

    /// Has all workers purge, and answers when they have.
    pub(super) fn begin_purge(&mut self, orders: Vec<PurgeOrder>, requester: Requester, now: Instant) {
        self.purges.begin(orders, requester, &mut self.workers, now);
        self.purges.answer_finished(&mut self.endpoints, now);
    }

    /// When the watchdog looks at the workers again.
    fn watchdog_due(&self) -> Option<Instant> {
        (self.phase == Phase::Serving).then(|| self.watchdog.deadline(&self.config)).flatten()
    }

    /// To be called after everything that changes which workers are down.
    pub(super) fn update_failover(&mut self) {
        self.failover.update(self.phase == Phase::Serving, &self.workers, &self.listeners);
    }

    fn reap(&mut self, now: Instant) {
        // An error means that there are no children.
        while let Ok(Some((pid, ended))) = process::reap() {
            self.applications.forget_worker(pid);
            if let Some(index) = self.workers.slot_of(pid) {
                // Its last reports may still be in the channel.
                self.handle_reports(index, now);
                if let Some((worker, end)) = self.workers.note_end(index, ended, now) {
                    self.handle_death(index, &worker, ended, end, now);
                }
            } else if self.upgrade.successor().is_some_and(|successor| successor.pid == pid) {
                self.handle_successor_end(ended, now);
            } else if self.applications.handle_end(pid, ended, now) {
                // The pool has logged the end of its manager.
            } else if let Some(lost) = self.documents.handle_end(pid, ended, now) {
                let why = "the process that decides where documents are has ended: ask again";
                self.endpoints.answer(lost, &Answer::error(why), now);
            } else if self.acme.handle_end(pid, ended, &self.workers, now) {
                // It has logged its end.
            } else if self.handoff_agent.handle_end(pid, ended, now) {
                // As above.
            } else if let Some(lost) = self.members.handle_end(pid, ended, now) {
                self.handle_lost_orders(lost, now);
            } else if self.workers.forget_retired(pid) && ended != Ended::Exited(0) {
                self.handoff_agent.handle_worker_end(pid);
                log::warning(format_args!("process {pid}, which was about to end, {}", describe_end(ended)));
            }
        }
    }

    fn handle_death(&mut self, index: usize, worker: &Worker, ended: Ended, end: End, now: Instant) {
        let who = format!("worker {index} (process {})", worker.pid);
        match self.phase {
            Phase::Starting => self.fail(OperatorError::new(end.of(who)), now),
            Phase::Serving => log::error(end.with_restart(who)),
            Phase::Withdrawn => log::error(end.of(who)),
            Phase::Ending(_) if ended == Ended::Exited(0) || self.failure.is_some() => {}
            // Service managers and shells send the signal that ends the master to its whole group.
            Phase::Ending(_) if ended == Ended::Killed(Signal::TERM.as_raw()) => {}
            Phase::Ending(_) => log::warning(end.of(who)),
        }
        if ended != Ended::Exited(0) {
            self.handoff_agent.handle_worker_end(worker.pid);
        }
        self.acme.forget_worker(index);
        self.update_failover();
        match self.reloads.handle_death(index) {
            Some(why) => self.abort_reload(why, now),
            None => self.advance_reload(now),
        }
        self.status_collection.handle_death(index);
        self.finish_status(now);
        self.purges.handle_death(index, &mut self.workers);
        self.purges.answer_finished(&mut self.endpoints, now);
    }

    /// Lets the master and its workers write to these logs.
    pub(super) fn use_logs(&mut self, reopened: Logs) {
        let order =
            ToWorker::ReopenLogs { access: reopened.access().is_some(), error: reopened.error().is_some() };
        let files: Vec<_> = reopened.access().into_iter().chain(reopened.error()).collect();
        self.workers.tell_all(&order, &files);
        for (paths, files) in reopened.sites() {
            self.workers.tell_all(&ToWorker::SiteLogs { paths, reopened: true }, &files);
        }
        self.logs.replace(reopened);
        if let Err(error) = self.logs.take_over_stderr() {
            log::error(format_args!("cannot write to the new error log: {error}"));
        }
    }
}
