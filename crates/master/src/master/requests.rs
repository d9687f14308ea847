//! The master's doors: who comes in by the control socket and the admin listener, and what they are answered.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use baton_http::Status;
use baton_report::log;
use rustix::net::SocketFlags;

use super::Master;
use crate::control::{self, Answer};
use crate::management::{Asker, CallerId, Door, Figures, Heard, metrics_page, pages};
use crate::phase::Phase;

impl Master {
    /// Somebody is at a door.
    pub(super) fn admit(&mut self, door: Door, index: usize, now: Instant) {
        let listener = match (door, &self.control) {
            (Door::Admin, _) => self.admin[index].1.as_fd(),
            (Door::Control, Some(door)) => door.listener.as_fd(),
            (Door::Control, None) => return,
        };
        match rustix::net::accept_with(listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
            Ok(socket) => self.callers.admit(door, socket, now),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR | rustix::io::Errno::CONNABORTED) => {}
            Err(error) => {
                // Most likely out of descriptors: to try again at once would only keep the CPU busy.
                log::error(format_args!("cannot let a caller in: {error}"));
                self.doors_shut_until = Some(now + Duration::from_secs(1));
            }
        }
    }

    /// A caller asks, takes the answer, or has hung up.
    pub(super) fn handle_caller(&mut self, id: CallerId, now: Instant) {
        match self.callers.handle_ready(id) {
            Heard::Nothing => {}
            Heard::Question(Door::Control, line) => match control::parse(&line) {
                Ok(command) => self.handle_command(command, Asker::Control(id), now),
                Err(why) => self.answer_all([Asker::Control(id)], &Answer::Error(why), now),
            },
            Heard::Question(Door::Admin, head) => self.handle_page(&head, id, now),
            Heard::TooMuch(Door::Control) => {
                self.answer_all([Asker::Control(id)], &Answer::error("the request is too long"), now);
            }
            Heard::TooMuch(Door::Admin) => {
                self.callers.answer(id, pages::plain(Status::REQUEST_HEADER_FIELDS_TOO_LARGE, false), now);
            }
        }
    }

    fn handle_page(&mut self, head: &[u8], id: CallerId, now: Instant) {
        let (page, head_only) = pages::page(head);
        let response = match page {
            pages::Page::Status => return self.survey(Asker::Admin(id, head_only), now),
            pages::Page::Metrics => {
                let counters: Vec<_> = self.crew.places.iter().map(|place| place.counters).collect();
                let figures = Figures {
                    workers_serving: self.crew.serving().count() as u64,
                    worker_restarts: self.crew.places.iter().map(|place| place.restarts).sum(),
                    ..self.figures
                };
                let text = metrics_page::page(&counters, &figures);
                pages::response(Status::OK, pages::PROMETHEUS_TEXT, text.as_bytes(), head_only)
            }
            pages::Page::Health => {
                let serves = self.phase == Phase::Serving && self.crew.serving().next().is_some();
                match self.still_workers() {
                    still if still.is_empty() && serves => pages::plain(Status::OK, head_only),
                    still if still.is_empty() => pages::plain(Status::SERVICE_UNAVAILABLE, head_only),
                    still => pages::text(Status::SERVICE_UNAVAILABLE, &still, head_only),
                }
            }
            pages::Page::Error(status) => pages::plain(status, head_only),
        };
        self.callers.answer(id, response, now);
    }

    /// Gives the same answer to several who asked, each in the way of the door that they came in by.
    pub(super) fn answer_all(
        &mut self,
        askers: impl IntoIterator<Item = Asker>,
        answer: &Answer,
        now: Instant,
    ) {
        for asker in askers {
            match (asker, answer) {
                (Asker::Signal, _) => {}
                (Asker::Control(id), answer) => self.callers.answer(id, answer.to_line(), now),
                (Asker::Admin(id, head_only), Answer::Ok(told)) => {
                    let body = format!("{told}\n");
                    let response =
                        pages::response(Status::OK, "application/json", body.as_bytes(), head_only);
                    self.callers.answer(id, response, now);
                }
                (Asker::Admin(id, head_only), Answer::Error(_)) => {
                    let response = pages::plain(Status::SERVICE_UNAVAILABLE, head_only);
                    self.callers.answer(id, response, now);
                }
            }
        }
    }
}
