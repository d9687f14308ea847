//! Reload: from one configuration to another while clients are served, in two phases.
//!
//! ```text
//! master: read, check, bind new addresses ──► Prepare to each worker
//! worker: make the plan (open the trees) ──► Prepared, or Refused and why
//! master: all prepared ──► Commit to each; close what is no longer listened on
//!         one refused, died or was silent ──► Abort to each; all continue as before
//! worker: hand the plan to the engine ──► Committed
//! master: all committed ──► the answer
//! ```
//!
//! No worker switches unless all can, and no socket is closed before all have switched. Connections are not touched:
//! each uses the new plan from its next request on.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use baton_config::Config;
use baton_report::log;
use serde_json::json;
use zeroize::Zeroizing;

use super::Master;
use crate::certificates::Certificates;
use crate::channel::ToWorker;
use crate::control::Answer;
use crate::listeners::{Listeners, Listening, listen_addresses};
use crate::management::Requester;
use crate::phase::Phase;
use crate::reloads::{Change, Reload, Subject};
use crate::{fixed_settings, memory_file, notify};

/// Descriptors of listeners in one message; the configuration has one of its own.
const LISTENERS_PER_MESSAGE: usize = baton_sys::passing::DESCRIPTORS_MAX;

impl Master {
    /// Reads the configuration again. If the workers have been withdrawn, starts new ones instead, with the old
    /// configuration, as nginx does. A request during a reload gets a reload of its own, since the file may have changed
    /// meanwhile.
    pub(super) fn reload(&mut self, requester: Requester, now: Instant) {
        if self.phase == Phase::Withdrawn {
            self.resume(now);
            self.endpoints.answer(
                [requester],
                &Answer::Ok(json!({ "resumed": true, "needs_restart": [] })),
                now,
            );
        } else if self.reloads.is_under_way() {
            self.reloads.ask_again(requester);
        } else {
            self.reload_for(vec![requester], now);
        }
    }

    fn reload_for(&mut self, requesters: Vec<Requester>, now: Instant) {
        if let Err(why) = self.may_reload() {
            return self.endpoints.answer(requesters, &Answer::error(why), now);
        }
        notify::reloading();
        let read = self.startup.source.load().map_err(|error| error.to_string());
        let read = read.map(|config| fixed_settings::keep_fixed(&self.config, config));
        self.begin_reload(Subject::Configuration, read, requesters, now);
    }

    /// When [`look_at_certificates`](Self::look_at_certificates) is due.
    pub(super) fn certificates_due(&self) -> Option<Instant> {
        let due = || {
            if self.acme.has_news() {
                Some(self.startup.began)
            } else {
                self.certificates.deadline(&self.config)
            }
        };
        self.may_begin_reload().then(due).flatten()
    }

    /// Reads the certificates again if a file of them has changed, and nothing else: the configuration may be half
    /// edited.
    pub(super) fn look_at_certificates(&mut self, now: Instant) {
        if self.acme.take_news() || self.certificates.look(&self.config, now) {
            let config = self.config.clone();
            self.begin_reload(Subject::Certificates, Ok((config, Vec::new())), Vec::new(), now);
        }
    }

    /// Begins a reload to a configuration that was read, with the names of settings that need a restart.
    pub(super) fn begin_reload(
        &mut self,
        subject: Subject,
        read: Result<(Config, Vec<String>), String>,
        requesters: Vec<Requester>,
        now: Instant,
    ) {
        let prepared = read.and_then(|(config, needs_restart)| {
            self.prepare(subject, config, needs_restart, requesters.clone(), now)
        });
        match prepared {
            Ok(reload) => {
                self.reloads.begin(reload);
                self.advance_reload(now);
            }
            Err(why) => self.conclude(subject, requesters, Err(why), now),
        }
    }

    /// Does everything that can fail, without changing what serves.
    fn prepare(
        &mut self,
        subject: Subject,
        mut config: Config,
        needs_restart: Vec<String>,
        requesters: Vec<Requester>,
        now: Instant,
    ) -> Result<Reload, String> {
        if subject != Subject::Configuration {
            config.cluster.nodes = self.members.listed().to_vec();
        }
        let listed_nodes = config.cluster.nodes.clone();
        let members = config.members_settings().map_err(|trouble| trouble.to_string())?;
        config.cluster.nodes = self.members.merged(&config.cluster);
        let certificates = Certificates::read(&config).map_err(|trouble| trouble.to_string())?;
        let acme = config.acme_settings().map_err(|trouble| trouble.to_string())?;
        let documents =
            self.documents.settings_of(&config, &certificates).map_err(|trouble| trouble.to_string())?;
        let logs = self.logs.reopened(&config).map_err(|trouble| trouble.to_string())?;
        self.applications.prepare(&config, &self.startup.user, now).map_err(|trouble| trouble.to_string())?;
        self.origins.begin(&config);
        let text = self.applications.settled(&config, self.workers.count()).to_toml();
        let files = memory_file::write("baton-configuration", text.as_bytes()).and_then(|text| {
            let pem_files = Zeroizing::new(certificates.files.to_bytes());
            Ok([text, memory_file::write("baton-certificates", &pem_files)?])
        });
        let files = files.map_err(|error| format!("cannot pass the configuration on: {error}"))?;
        let fresh =
            self.listeners.prepare(&listen_addresses(&config)).map_err(|trouble| trouble.to_string())?;

        // A worker that does not serve yet knows only the old configuration, which may be the reason. The master kills
        // it, and the next one begins with the new configuration.
        let starting: Vec<usize> =
            self.workers.occupied().filter(|(_, worker)| !worker.serves).map(|(index, _)| index).collect();
        for index in starting {
            log::notice(format_args!(
                "worker {index} does not serve yet and makes room for one that knows more"
            ));
            self.workers.kill(index);
        }

        let generation = self.reloads.next_generation();
        let change = Change { config, fresh, logs, certificates, acme, documents, members, listed_nodes };
        let awaited: BTreeSet<usize> = self.workers.serving().collect();
        for &index in &awaited {
            if let Err(error) = self.order_to_prepare(index, generation, &change, &files) {
                self.undo(&change);
                return Err(format!("cannot reach worker {index}: {error}"));
            }
        }
        Ok(Reload {
            subject,
            change: Some(change),
            needs_restart,
            awaited,
            deadline: now + Reload::PATIENCE,
            requesters,
        })
    }

    fn order_to_prepare(
        &self,
        index: usize,
        generation: u64,
        change: &Change,
        files: &[File; 2],
    ) -> io::Result<()> {
        let processes = self.workers.count();
        let own = |one| Listening::sockets_of(one, index, processes).map(|socket| (one.id, socket));
        let fresh: Vec<_> = change.fresh.iter().flat_map(own).collect();
        for part in fresh.chunks(LISTENERS_PER_MESSAGE) {
            let (ids, sockets): (_, Vec<_>) = part.iter().copied().unzip();
            self.workers.tell(index, &ToWorker::Listeners { ids }, &sockets)?;
        }
        for (path, table) in self.applications.process_tables() {
            self.workers.tell(index, &ToWorker::ProcessTable { path }, &table.descriptors())?;
        }
        for (paths, files) in change.logs.sites() {
            self.workers.tell(index, &ToWorker::SiteLogs { paths, reopened: false }, &files)?;
        }
        let listeners = self.listeners.ids(&listen_addresses(&change.config), &change.fresh);
        self.workers.tell(
            index,
            &ToWorker::Prepare { generation, listeners },
            &[files[0].as_fd(), files[1].as_fd()],
        )
    }

    /// Takes the next step once all workers have answered.
    pub(super) fn advance_reload(&mut self, now: Instant) {
        if let Some(change) = self.reloads.take_prepared() {
            self.commit(change, now);
        }
        if let Some(reload) = self.reloads.take_committed() {
            self.conclude(reload.subject, reload.requesters, Ok(reload.needs_restart), now);
        }
    }

    fn commit(&mut self, change: Change, now: Instant) {
        let order = ToWorker::Commit { generation: self.reloads.generation() };
        // If the message cannot be sent, the worker has ended: the next one begins with the new configuration.
        let told =
            self.workers.serving().filter(|&index| self.workers.tell(index, &order, &[]).is_ok()).collect();
        self.reloads.await_commit(told);
        self.listeners.commit(&listen_addresses(&change.config), change.fresh);
        self.failover.reset(&self.workers);
        self.update_failover();
        self.config = change.config;
        self.certificates.replace(change.certificates);
        self.acme.configure(change.acme, now);
        self.handoff_agent.configure(&self.config);
        self.documents.configure(change.documents);
        self.members.configure(change.listed_nodes, change.members, now);
        self.use_logs(change.logs);
        self.workers.restart_now(now);
    }

    /// Ends a reload that is under way: undoes it, or, if workers have been told to commit, leaves it as it is.
    pub(super) fn abort_reload(&mut self, why: String, now: Instant) {
        match self.reloads.take() {
            Some(Reload { change: Some(change), subject, requesters, .. }) => {
                self.undo(&change);
                if subject == Subject::Certificates {
                    self.certificates.retry();
                }
                self.conclude(subject, requesters, Err(why), now);
            }
            Some(reload) => {
                log::warning(format_args!("some workers have yet to follow the reload: {why}"));
                self.conclude(reload.subject, reload.requesters, Ok(reload.needs_restart), now);
            }
            None => {}
        }
    }

    fn undo(&self, change: &Change) {
        self.workers.tell_all(&ToWorker::Abort, &[]);
        Listeners::discard(&change.fresh);
    }

    pub(super) fn may_reload(&self) -> Result<(), String> {
        match (self.phase, self.upgrade.successor()) {
            (Phase::Starting, _) => Err("the server is still starting".into()),
            (Phase::Serving, Some(successor)) => {
                Err(format!("process {} takes the place of this one: reload that one", successor.pid))
            }
            (Phase::Serving, None) => Ok(()),
            (Phase::Withdrawn, _) => Err("the workers have left".into()),
            (Phase::Ending(_), _) => Err("the server is ending".into()),
        }
    }

    /// Whether a reload may begin that no operator has asked for.
    pub(super) fn may_begin_reload(&self) -> bool {
        self.may_reload().is_ok() && !self.reloads.is_under_way()
    }

    /// Tells the log, the service manager and the requesters how the reload ended.
    fn conclude(
        &mut self,
        subject: Subject,
        requesters: Vec<Requester>,
        result: Result<Vec<String>, String>,
        now: Instant,
    ) {
        let what = subject.word();
        if self.phase == Phase::Serving {
            notify::ready();
        }
        // The old configuration or the new one: the one that counts from now on.
        self.applications.keep(&self.config, now);
        self.origins.keep(&self.config);
        self.follow_orders(now);
        if subject == Subject::Nodes && result.is_err() {
            self.members.retry(now);
        }
        let (error, needs_restart) = match result {
            Ok(needs_restart) => (None, needs_restart),
            Err(why) => (Some(format!("not reloaded, the old {what} stays:\n{why}")), Vec::new()),
        };
        let answer = match &error {
            None => {
                log::notice(format_args!("reloaded the {what}"));
                if !needs_restart.is_empty() {
                    log::warning(format_args!("needs a restart: {}", needs_restart.join(", ")));
                }
                Answer::Ok(json!({ "reloaded": true, "needs_restart": needs_restart }))
            }
            Some(error) => {
                log::error(error);
                Answer::error(error)
            }
        };
        self.reloads.note(error, needs_restart);
        self.endpoints.answer(requesters, &answer, now);
        let waiting = self.reloads.take_waiting();
        if !waiting.is_empty() {
            self.reload_for(waiting, now);
        }
    }
}
