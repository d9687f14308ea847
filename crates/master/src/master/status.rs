//! `baton ctl status` and the `/status` page: what the master knows, and the report of each worker.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use baton_config::ConfigSource;
use baton_report::utc;
use baton_telemetry::metrics::{Counters, Metric};
use serde_json::{Map, Value, json};

use super::Master;
use crate::channel::ToWorker;
use crate::control::Answer;
use crate::figures::{AllFigures, Taken};
use crate::management::Requester;
use crate::pending::StatusCollection;
use crate::workers::WorkerSlot;

impl Master {
    /// Asks all workers for their status, unless a collection is under way.
    pub(super) fn collect_status(&mut self, requester: Requester, now: Instant) {
        if let Some(collection) = &mut self.status_collection {
            collection.requesters.push(requester);
            return;
        }
        self.tickets += 1;
        let ticket = self.tickets;
        let serving: Vec<usize> = self.workers.serving().collect();
        let told = serving
            .into_iter()
            .filter(|&index| self.workers.tell(index, &ToWorker::Status { ticket }, &[]).is_ok());
        self.status_collection = Some(StatusCollection {
            ticket,
            awaited: told.collect(),
            answers: BTreeMap::new(),
            deadline: now + StatusCollection::PATIENCE,
            requesters: vec![requester],
        });
        self.finish_status_if_complete(now);
    }

    /// A worker has answered.
    pub(super) fn handle_status(&mut self, index: usize, ticket: u64, status: Value, now: Instant) {
        if let Some(collection) =
            self.status_collection.as_mut().filter(|collection| collection.ticket == ticket)
        {
            collection.awaited.remove(&index);
            collection.answers.insert(index, status);
            self.finish_status_if_complete(now);
        }
    }

    /// A worker has ended and will not answer.
    pub(super) fn handle_death_during_status(&mut self, index: usize, now: Instant) {
        if let Some(collection) = &mut self.status_collection {
            collection.awaited.remove(&index);
            self.finish_status_if_complete(now);
        }
    }

    /// Answers with the reports that have arrived.
    pub(super) fn finish_status(&mut self, now: Instant) {
        if let Some(collection) = self.status_collection.take() {
            let report = self.report(collection.answers, now);
            self.answer_all(collection.requesters, &Answer::Ok(report), now);
        }
    }

    fn finish_status_if_complete(&mut self, now: Instant) {
        if self.status_collection.as_ref().is_some_and(|collection| collection.awaited.is_empty()) {
            self.finish_status(now);
        }
    }

    /// What is counted of each site, application and origin.
    pub(super) fn all_figures(&self) -> AllFigures {
        let settled = self.applications.settled(&self.config, self.workers.slots.len());
        AllFigures::of(self.figures, &settled, &self.applications.names())
    }

    /// What the master and its workers take.
    pub(super) fn taken(&mut self) -> Taken {
        let workers = self.workers.pids().filter_map(|pid| u32::try_from(pid).ok());
        self.process_figures.look(std::iter::once(self.pid).chain(workers))
    }

    /// Sums over all workers.
    fn totals(&mut self) -> Value {
        let Taken { cpu_seconds, resident_bytes, open_fds, threads, .. } = self.taken();
        let sum = |metric: Metric| {
            let values = self.workers.slots.iter().map(|slot| slot.counters.get(metric));
            values.fold(0, u64::wrapping_add)
        };
        let of_cache = Metric::ALL.iter().filter(|metric| metric.name() == Metric::CacheHits.name());
        let shared_cache: Map<_, _> = of_cache
            .map(|&metric| (metric.label().unwrap_or_default().1.to_owned(), sum(metric).into()))
            .collect();
        json!({
            "sent_bytes": sum(Metric::BytesSent),
            "log_lines_lost": sum(Metric::LogLinesLost),
            "shared_cache": shared_cache,
            "process": { "cpu_seconds": cpu_seconds, "resident_bytes": resident_bytes, "open_fds": open_fds, "threads": threads },
        })
    }

    fn report(&mut self, mut engines: BTreeMap<usize, Value>, now: Instant) -> Value {
        let workers: Vec<Value> = self
            .workers
            .slots
            .iter()
            .enumerate()
            .map(|(index, slot)| worker(index, slot, engines.remove(&index), now))
            .collect();
        let listeners: Vec<Value> = self
            .listeners
            .iter()
            .map(|one| json!({ "address": one.actual.to_string(), "inherited": one.managed }))
            .collect();
        let sites: Vec<Value> = self
            .config
            .sites
            .iter()
            .map(|site| {
                let listen: Vec<String> = site.settings.listen.iter().map(ToString::to_string).collect();
                json!({ "name": site.name(), "hosts": site.settings.hosts, "listen": listen, "root": site.files.root })
            })
            .collect();
        let totals = self.totals();
        let (successor, predecessor) = self.other_servers();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": self.pid,
            "state": self.phase.word(),
            "started": utc(self.started_at),
            "uptime_seconds": now.duration_since(self.started).as_secs(),
            "configuration": match &self.source {
                ConfigSource::File(path) => path.display().to_string(),
                ConfigSource::CommandLine(_) => "command line".to_owned(),
            },
            "architecture": self.tuning.architecture.to_string(),
            "cache_memory": self.cache_memory,
            "kernel_tls": self.kernel_tls,
            "descriptors": self.descriptors,
            "control_socket": self.control.as_ref().map(|door| door.name.current()),
            "admin": self.admin.iter().map(|(address, _)| address.to_string()).collect::<Vec<_>>(),
            "listeners": listeners,
            "sites": sites,
            "acme": self.acme.report(),
            "documents": self.documents.report(),
            "certificates": self.certificates.report(SystemTime::now()),
            "workers": workers,
            "figures": self.all_figures().report(),
            "totals": totals,
            "applications": self.applications.report(),
            "origins": self.origins.report(&self.config),
            "mover": self.mover.report(),
            "cluster": self.cluster_report(),
            "successor": successor,
            "predecessor": predecessor,
            "last_reload": self.last_reload.as_ref().map(|last| json!({
                "at": utc(last.at),
                "error": last.error,
                "needs_restart": last.needs_restart,
            })),
        })
    }
}

fn worker(index: usize, slot: &WorkerSlot, engine: Option<Value>, now: Instant) -> Value {
    json!({
        "index": index,
        "pid": slot.worker.as_ref().map(|worker| worker.pid),
        "stands_still": slot.watch.stands_still(),
        "serves": slot.worker.as_ref().is_some_and(|worker| worker.serves),
        "uptime_seconds": slot.worker.as_ref().map(|worker| now.duration_since(worker.since).as_secs()),
        "cpu": slot.cpu,
        "restarts": slot.restarts,
        "connections_open": slot.counters.get(Metric::ConnectionsOpen),
        "connections_accepted": slot.counters.get(Metric::ConnectionsAccepted),
        "requests": requests(&slot.counters),
        "engine": engine,
    })
}

/// Each request ends with exactly one outcome, so that their sum is the number of requests.
fn requests(counters: &Counters) -> u64 {
    let outcomes = Metric::ALL.iter().filter(|metric| metric.name() == Metric::OutcomeComplete.name());
    outcomes.map(|&metric| counters.get(metric)).sum()
}
