//! `baton ctl status` and the `/status` page: what the master knows, and what each worker says of itself.

use std::collections::BTreeMap;
use std::time::Instant;

use baton_config::ConfigSource;
use baton_engine::metrics::{Counters, Metric};
use baton_report::utc;
use serde_json::{Value, json};

use super::Master;
use crate::channel::Order;
use crate::control::Answer;
use crate::crew::Place;
use crate::management::Asker;
use crate::pending::Survey;

impl Master {
    /// Asks all workers how they are, unless they are being asked already.
    pub(super) fn survey(&mut self, asker: Asker, now: Instant) {
        if let Some(survey) = &mut self.survey {
            survey.askers.push(asker);
            return;
        }
        self.tickets += 1;
        let ticket = self.tickets;
        let serving: Vec<usize> = self.crew.serving().collect();
        let told = serving
            .into_iter()
            .filter(|&index| self.crew.tell(index, &Order::Status { ticket }, &[]).is_ok());
        self.survey = Some(Survey {
            ticket,
            awaited: told.collect(),
            answers: BTreeMap::new(),
            deadline: now + Survey::PATIENCE,
            askers: vec![asker],
        });
        self.conclude_survey_if_complete(now);
    }

    /// A worker has answered.
    pub(super) fn handle_status(&mut self, index: usize, ticket: u64, status: Value, now: Instant) {
        if let Some(survey) = self.survey.as_mut().filter(|survey| survey.ticket == ticket) {
            survey.awaited.remove(&index);
            survey.answers.insert(index, status);
            self.conclude_survey_if_complete(now);
        }
    }

    /// A worker has ended and will not answer.
    pub(super) fn handle_death_during_survey(&mut self, index: usize, now: Instant) {
        if let Some(survey) = &mut self.survey {
            survey.awaited.remove(&index);
            self.conclude_survey_if_complete(now);
        }
    }

    /// Tells those who asked what is known by now.
    pub(super) fn conclude_survey(&mut self, now: Instant) {
        if let Some(survey) = self.survey.take() {
            let report = self.report(survey.answers, now);
            self.answer_all(survey.askers, &Answer::Ok(report), now);
        }
    }

    fn conclude_survey_if_complete(&mut self, now: Instant) {
        if self.survey.as_ref().is_some_and(|survey| survey.awaited.is_empty()) {
            self.conclude_survey(now);
        }
    }

    fn report(&self, mut engines: BTreeMap<usize, Value>, now: Instant) -> Value {
        let workers: Vec<Value> = self
            .crew
            .places
            .iter()
            .enumerate()
            .map(|(index, place)| worker(index, place, engines.remove(&index), now))
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
        let (successor, predecessor) = self.relatives();
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
            "descriptors": self.descriptors,
            "control_socket": self.control.as_ref().map(|door| door.name.current()),
            "admin": self.admin.iter().map(|(address, _)| address.to_string()).collect::<Vec<_>>(),
            "listeners": listeners,
            "sites": sites,
            "workers": workers,
            "applications": self.applications.report(),
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

fn worker(index: usize, place: &Place, engine: Option<Value>, now: Instant) -> Value {
    json!({
        "index": index,
        "pid": place.worker.as_ref().map(|worker| worker.pid),
        "stands_still": place.watch.stands_still(),
        "serves": place.worker.as_ref().is_some_and(|worker| worker.serves),
        "uptime_seconds": place.worker.as_ref().map(|worker| now.duration_since(worker.since).as_secs()),
        "cpu": place.cpu,
        "restarts": place.restarts,
        "connections_open": place.counters.get(Metric::ConnectionsOpen),
        "connections_accepted": place.counters.get(Metric::ConnectionsAccepted),
        "requests": requests(&place.counters),
        "engine": engine,
    })
}

/// Each request ends with exactly one outcome, so that their sum is the number of requests.
fn requests(counters: &Counters) -> u64 {
    let outcomes = Metric::ALL.iter().filter(|metric| metric.name() == Metric::OutcomeComplete.name());
    outcomes.map(|&metric| counters.get(metric)).sum()
}
