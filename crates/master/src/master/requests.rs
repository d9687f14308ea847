//! Requests over the control socket and to the admin listener, and the answers to them.

use std::time::{Instant, SystemTime};

use baton_http::Status;

use super::Master;
use crate::control::{self, Answer};
use crate::management::pages::MetricsFormat;
use crate::management::{
    ConnectionId, Endpoint, Received, Requester, ServerMetrics, cluster_page, documents_page, figures_page,
    metrics_page, open_metrics, origins_page, pages, screen,
};
use crate::phase::Phase;
use crate::watchdog::still_workers;

impl Master {
    /// A connection is readable, writable, or closed.
    pub(super) fn handle_connection(&mut self, id: ConnectionId, now: Instant) {
        match self.endpoints.handle_ready(id) {
            Received::Nothing => {}
            Received::Request(Endpoint::Control, line) => match control::parse(&line) {
                Ok(command) => self.handle_command(command, Requester::Control(id), now),
                Err(why) => self.endpoints.answer([Requester::Control(id)], &Answer::Error(why), now),
            },
            Received::Request(Endpoint::Admin, head) => self.handle_page(&head, id, now),
            Received::TooLong(Endpoint::Control) => {
                self.endpoints.answer(
                    [Requester::Control(id)],
                    &Answer::error("the request is too long"),
                    now,
                );
            }
            Received::TooLong(Endpoint::Admin) => {
                self.endpoints.respond(id, pages::plain(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, false), now);
            }
        }
    }

    fn handle_page(&mut self, request: &[u8], id: ConnectionId, now: Instant) {
        let arrival = self.endpoints.arrival(id, &self.config.admin.hosts);
        let (page, head_only) = pages::page(request, arrival);
        let response = match page {
            pages::Page::Status => return self.begin_status(Requester::Admin(id, head_only), now),
            pages::Page::Screen => screen::response(head_only),
            pages::Page::Metrics(format) => {
                let counters: Vec<_> = self.workers.counters().collect();
                let (reloads_done, reloads_refused) = self.reloads.counts();
                let metrics = ServerMetrics {
                    start_time_seconds: self.startup.began_at_s(),
                    workers_serving: self.workers.serving().count() as u64,
                    worker_restarts: self.workers.slots().iter().map(|slot| slot.restarts).sum(),
                    workers_killed: self.watchdog.killed(),
                    reloads_done,
                    reloads_refused,
                };
                let days_left = self.certificates.used().days_left(SystemTime::now());
                let taken = self.taken();
                let text = metrics_page::page(&counters, &metrics, &days_left)
                    + &figures_page::page(&self.all_figures(), &taken, metrics.start_time_seconds)
                    + &origins_page::page(&self.origins.figures(&self.config))
                    + &cluster_page::page(self.members.members(), self.members.etcd(), self.members.age_s())
                    + &documents_page::page(self.documents.sites());
                let (media_type, text) = match format {
                    MetricsFormat::Prometheus => (pages::PROMETHEUS_TEXT, text),
                    MetricsFormat::OpenMetrics => {
                        (open_metrics::MEDIA_TYPE, open_metrics::of_prometheus(&text))
                    }
                };
                pages::response(Status::OK, media_type, text.as_bytes(), head_only)
            }
            pages::Page::Health => {
                let serves = self.phase == Phase::Serving && self.workers.serving().next().is_some();
                match still_workers(&self.workers) {
                    still if still.is_empty() && serves => pages::plain(Status::OK, head_only),
                    still if still.is_empty() => pages::plain(Status::SERVICE_UNAVAILABLE, head_only),
                    still => pages::text(Status::SERVICE_UNAVAILABLE, &still, head_only),
                }
            }
            pages::Page::Purge(_) if !self.config.admin.purge => {
                pages::text(Status::FORBIDDEN, "admin.purge is off\n", head_only)
            }
            pages::Page::Purge(request) => match request.orders(&self.config) {
                Ok(orders) => return self.begin_purge(orders, Requester::Admin(id, head_only), now),
                Err(why) => pages::text(Status::BAD_REQUEST, &format!("{why}\n"), head_only),
            },
            pages::Page::BadPurge(why) => pages::text(Status::BAD_REQUEST, &format!("{why}\n"), head_only),
            pages::Page::NotAllowed(methods) => pages::not_allowed(methods, head_only),
            pages::Page::Error(status, text) => pages::text(status, &format!("{text}\n"), head_only),
        };
        self.endpoints.respond(id, response, now);
    }
}
