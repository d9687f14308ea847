//! Requests over the control socket and to the admin listener, and the answers to them.

use std::os::fd::{AsFd, OwnedFd};
use std::time::SystemTime;
use std::time::{Duration, Instant};

use baton_http::Status;
use baton_report::log;
use rustix::net::SocketFlags;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::Master;
use crate::control::{self, Answer};
use crate::management::pages::MetricsFormat;
use crate::management::{
    Arrival, ConnectionId, Endpoint, Received, Requester, ServerMetrics, cluster_page, documents_page,
    figures_page, metrics_page, open_metrics, origins_page, pages, screen,
};
use crate::phase::Phase;

impl Master {
    /// A client connects to the control socket or the admin listener.
    pub(super) fn accept(&mut self, door: Endpoint, index: usize, now: Instant) {
        let listener = match (door, &self.control) {
            (Endpoint::Admin, _) => self.admin[index].1.as_fd(),
            (Endpoint::Control, Some(door)) => door.listener.as_fd(),
            (Endpoint::Control, None) => return,
        };
        match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) if door == Endpoint::Control && !self.admits(&socket) => {}
            Ok(socket) => self.connections.add(door, socket, now),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            Err(error) => {
                // Most likely no descriptor is left: trying again at once would only burn CPU time.
                log::error(format_args!("cannot accept a connection for control or monitoring: {error}"));
                self.accept_paused_until = Some(now + Duration::from_secs(1));
            }
        }
    }

    /// Whether the process at the other end of a connection may command the server: one of this user or of root that no
    /// application has started. The mode of the socket's file says less: it may be changed, and applications may have the
    /// server's user.
    fn admits(&self, socket: &OwnedFd) -> bool {
        let Ok(peer) = socket_peercred(socket) else { return false };
        let why = if peer.uid != geteuid() && !peer.uid.is_root() {
            format!("its user is {}", peer.uid.as_raw())
        } else if let Some(application) = self.applications.origin_of(peer.pid) {
            format!("the application {application} has started it")
        } else {
            return true;
        };
        log::warning(format_args!(
            "process {} has connected to the control socket, and was refused: {why}",
            peer.pid.as_raw_nonzero()
        ));
        false
    }

    /// A connection is readable, writable, or closed.
    pub(super) fn handle_connection(&mut self, id: ConnectionId, now: Instant) {
        match self.connections.handle_ready(id) {
            Received::Nothing => {}
            Received::Request(Endpoint::Control, line) => match control::parse(&line) {
                Ok(command) => self.handle_command(command, Requester::Control(id), now),
                Err(why) => self.answer_all([Requester::Control(id)], &Answer::Error(why), now),
            },
            Received::Request(Endpoint::Admin, head) => self.handle_page(&head, id, now),
            Received::TooLong(Endpoint::Control) => {
                self.answer_all([Requester::Control(id)], &Answer::error("the request is too long"), now);
            }
            Received::TooLong(Endpoint::Admin) => {
                self.connections.answer(
                    id,
                    pages::plain(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, false),
                    now,
                );
            }
        }
    }

    fn handle_page(&mut self, request: &[u8], id: ConnectionId, now: Instant) {
        let arrival = Arrival { local: self.connections.local(id), hosts: &self.config.admin.hosts };
        let (page, head_only) = pages::page(request, arrival);
        let response = match page {
            pages::Page::Status => return self.collect_status(Requester::Admin(id, head_only), now),
            pages::Page::Screen => screen::response(head_only),
            pages::Page::Metrics(format) => {
                let counters: Vec<_> = self.workers.slots.iter().map(|slot| slot.counters).collect();
                let metrics = ServerMetrics {
                    workers_serving: self.workers.serving().count() as u64,
                    worker_restarts: self.workers.slots.iter().map(|slot| slot.restarts).sum(),
                    ..self.metrics
                };
                let days_left = self.certificates.days_left(SystemTime::now());
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
                match self.still_workers() {
                    still if still.is_empty() && serves => pages::plain(Status::OK, head_only),
                    still if still.is_empty() => pages::plain(Status::SERVICE_UNAVAILABLE, head_only),
                    still => pages::text(Status::SERVICE_UNAVAILABLE, &still, head_only),
                }
            }
            pages::Page::Purge(_) if !self.config.admin.purge => {
                pages::text(Status::FORBIDDEN, "admin.purge is off\n", head_only)
            }
            pages::Page::Purge(request) => match request.orders(&self.config) {
                Ok(orders) => return self.begin_purge(&orders, Requester::Admin(id, head_only), now),
                Err(why) => pages::text(Status::BAD_REQUEST, &format!("{why}\n"), head_only),
            },
            pages::Page::BadPurge(why) => pages::text(Status::BAD_REQUEST, &format!("{why}\n"), head_only),
            pages::Page::NotAllowed(methods) => pages::not_allowed(methods, head_only),
            pages::Page::Error(status, text) => pages::text(status, &format!("{text}\n"), head_only),
        };
        self.connections.answer(id, response, now);
    }

    /// Gives the same answer to several requesters, each in the form of its endpoint.
    pub(super) fn answer_all(
        &mut self,
        requesters: impl IntoIterator<Item = Requester>,
        answer: &Answer,
        now: Instant,
    ) {
        for requester in requesters {
            match (requester, answer) {
                (Requester::Signal, _) => {}
                (Requester::Control(id), answer) => self.connections.answer(id, answer.to_line(), now),
                (Requester::Admin(id, head_only), Answer::Ok(told)) => {
                    let body = format!("{told}\n");
                    let response =
                        pages::response(Status::OK, "application/json", body.as_bytes(), head_only);
                    self.connections.answer(id, response, now);
                }
                (Requester::Admin(id, head_only), Answer::Error(why)) => {
                    let response = pages::text(Status::SERVICE_UNAVAILABLE, &format!("{why}\n"), head_only);
                    self.connections.answer(id, response, now);
                }
            }
        }
    }
}
