//! `baton ctl status` and the `/status` page: what the master knows, and the report of each worker.

use std::collections::BTreeMap;
use std::time::{Instant, SystemTime};

use baton_config::ConfigSource;
use baton_report::utc;
use baton_telemetry::metrics::{Counters, Metric};
use serde_json::{Map, Value, json};

use super::Master;
use crate::cluster_report;
use crate::control::Answer;
use crate::figures::{AllFigures, ProcessUsage};
use crate::management::Requester;
use crate::status_collection::Collection;
use crate::workers::WorkerSlot;

impl Master {
    /// Asks all workers for their status, and answers when they have reported.
    pub(super) fn begin_status(&mut self, requester: Requester, now: Instant) {
        self.status_collection.begin(requester, &self.workers, now);
        self.finish_status(now);
    }

    /// Answers if all reports have arrived, or those that are late are not awaited any longer.
    pub(super) fn finish_status(&mut self, now: Instant) {
        if let Some(Collection { reports, requesters, .. }) = self.status_collection.take_finished(now) {
            let report = self.report(reports, now);
            self.endpoints.answer(requesters, &Answer::Ok(report), now);
        }
    }

    /// What is counted of each site, application and origin.
    pub(super) fn all_figures(&self) -> AllFigures {
        let settled = self.applications.settled(&self.config, self.workers.count());
        AllFigures::of(self.workers.tables().figures, &settled, &self.applications.names())
    }

    /// What the master and its workers take.
    pub(super) fn taken(&mut self) -> ProcessUsage {
        let workers = self.workers.pids().filter_map(|pid| u32::try_from(pid).ok());
        self.process_figures.look(std::iter::once(self.startup.pid).chain(workers))
    }

    /// Sums over all workers.
    fn totals(&mut self) -> Value {
        let ProcessUsage { cpu_seconds, resident_bytes, open_fds, threads, .. } = self.taken();
        let sum = |metric: Metric| {
            let values = self.workers.counters().map(|counters| counters.get(metric));
            values.fold(0, u64::wrapping_add)
        };
        let by_label = |one: Metric| -> Map<_, _> {
            let all = Metric::ALL.iter().filter(|metric| metric.name() == one.name());
            all.map(|&metric| (metric.label().unwrap_or_default().1.to_owned(), sum(metric).into())).collect()
        };
        json!({
            "sent_bytes": sum(Metric::BytesSent),
            "log_lines_lost": sum(Metric::LogLinesLost),
            "shared_cache": by_label(Metric::CacheHits),
            "answers": by_label(Metric::AnswersUnix),
            "process": { "cpu_seconds": cpu_seconds, "resident_bytes": resident_bytes, "open_fds": open_fds, "threads": threads },
        })
    }

    fn report(&mut self, mut engines: BTreeMap<usize, Value>, now: Instant) -> Value {
        let workers: Vec<Value> = self
            .workers
            .slots()
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
        let (totals, drains) = (self.totals(), self.drains());
        let (successor, predecessor) = self.upgrade.report();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": self.startup.pid,
            "state": self.phase.word(),
            "started": utc(self.startup.began_at),
            "uptime_seconds": now.duration_since(self.startup.began).as_secs(),
            "configuration": match &self.startup.source {
                ConfigSource::File(path) => path.display().to_string(),
                ConfigSource::CommandLine(_) => "command line".to_owned(),
            },
            "architecture": self.startup.tuning.architecture.to_string(),
            "cache_memory": self.startup.cache_memory,
            "memory_pressure": self.cache_pressure.told(&self.config),
            "kernel_tls": self.startup.kernel_tls,
            "descriptors": self.startup.descriptors,
            "control_socket": self.endpoints.control_path(),
            "admin": self.endpoints.admin().iter().map(|(address, _)| address.to_string()).collect::<Vec<_>>(),
            "listeners": listeners,
            "sites": sites,
            "acme": self.acme.report(),
            "documents": self.documents.report(),
            "certificates": self.certificates.used().report(SystemTime::now()),
            "workers": workers,
            "figures": self.all_figures().report(),
            "totals": totals,
            "applications": self.applications.report(),
            "origins": self.origins.report(&self.config),
            "mover": self.handoff_agent.report(),
            "cluster": cluster_report::report(&self.config, &self.members, &drains, &self.origins),
            "drains": drains,
            "successor": successor,
            "predecessor": predecessor,
            "last_reload": self.reloads.report(),
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
