//! From bytes to answers: the half of a session that reads.

use std::sync::Arc;

use baton_buf::Buffer;
use baton_fcgi::offer::Client;
use baton_http::Status;

use super::deadline::Waiting;
use super::delegated::Delegated;
use super::feeding::Feeding;
use super::{Need, Session, State};
use crate::context::{Context, SCRATCH_BYTES};
use crate::exchange::{self, Answer, Delegation, Given};
use crate::job::Job;
use crate::log::Outcome;
use crate::metrics::Metric;
use crate::plan::Plan;
use crate::protocol::{Body, LastClose, Request, Taken};
use crate::transport::{Received, Terms};

/// What follows an attempt to answer a request.
#[derive(Debug)]
enum Next {
    /// The request behind it.
    Request,
    /// The end of the connection.
    End,
    /// The same request again, when what is in the outlet has been sent.
    SameAgain,
    /// The same request again, when the job is done.
    Job(Job),
    /// The answer of an application to this request.
    Application(Box<baton_gateway::Request>),
    /// The same request again, when so much of its body has come at the most. `is_wanted`: the answer depends on it.
    Body { bytes_max: u64, is_wanted: bool },
}

impl Session {
    /// `None`: something was done, the outlet or the state tells what.
    pub(super) fn receive(&mut self, ctx: &mut Context) -> Option<Need> {
        // The scratch memory is the context's; it is taken out while the context is in use otherwise.
        let mut scratch = std::mem::take(&mut ctx.scratch);
        let need = self.receive_into(&mut scratch, ctx);
        ctx.scratch = scratch;
        need
    }

    fn receive_into(&mut self, scratch: &mut Vec<u8>, ctx: &mut Context) -> Option<Need> {
        let mut filled = self.inbox.len();
        let tried_before = !self.inbox_untried && matches!(self.state, State::Open);
        if filled == 0 || tried_before {
            if self.transport.has_ended_input() {
                return Some(self.end(Outcome::ClientGone, ctx));
            }
            if !self.transport.is_readable() {
                return Some(Need::Readable);
            }
        }
        if scratch.len() < filled + SCRATCH_BYTES / 2 {
            scratch.resize(filled + SCRATCH_BYTES, 0); // Limits on heads were raised beyond the usual.
        }
        scratch[..filled].copy_from_slice(&self.inbox);
        if filled == 0 || tried_before {
            match self.transport.receive(&mut scratch[filled..]) {
                Received::Bytes(count) => filled += count,
                Received::Nothing => return Some(Need::Readable),
                Received::End => return Some(self.end(Outcome::ClientGone, ctx)),
            }
        }
        self.take_requests(&scratch[..filled], ctx)
    }

    /// Answers as many requests as `input` holds, within bounds; what is left over stays in the inbox.
    fn take_requests(&mut self, input: &[u8], ctx: &mut Context) -> Option<Need> {
        let plan = Arc::clone(&ctx.plan);
        // A head whose body has not arrived stays in front of what follows.
        let (mut head, mut rest): (&[u8], _) = (&[], input);
        let mut need = None;
        self.inbox_untried = false;
        for answered in 1.. {
            let request = match self.protocol.next(rest, &plan.limits, &mut self.upload) {
                Ok(Taken::Request(request)) => request,
                Ok(Taken::Part { head_len, passed }) => {
                    head = &rest[..head_len];
                    rest = &rest[head_len + passed..];
                    if self.protocol.is_in_body() {
                        self.wait_for(Waiting::Body, ctx); // Anew with each part of it.
                    }
                    break;
                }
                Ok(Taken::Unwanted(len)) => {
                    rest = &rest[len..];
                    if rest.is_empty() {
                        if self.protocol.is_in_unwanted_body() && self.outlet.is_empty() {
                            self.wait_for(Waiting::Unwanted, ctx); // Anew with each part of it.
                        }
                        break;
                    }
                    continue;
                }
                Ok(Taken::Unusable) => {
                    self.state = State::Ending(LastClose::Linger);
                    rest = &[];
                    break;
                }
                Err(refusal) => {
                    let (status, why) = (refusal.status(), refusal.to_string());
                    self.refuse(rest, status, &why, Outcome::Refused, ctx);
                    rest = &[];
                    break;
                }
            };
            match self.answer(&request, &plan, ctx) {
                Next::Request => rest = &rest[request.len..],
                Next::End => {
                    let unread = rest.len() > request.len
                        || request.body != Body::Passed
                        || self.transport.is_readable();
                    self.state = State::Ending(LastClose::Orderly.lingering(unread));
                    rest = &[];
                }
                Next::Body { bytes_max, is_wanted } => {
                    self.protocol.read_body(request.len, request.head.framing, bytes_max);
                    if let Some(leave) = self.protocol.leave_to_send(request.body).filter(|_| is_wanted) {
                        self.outlet.push(Buffer::new(leave.to_vec()));
                    }
                }
                Next::SameAgain => self.inbox_untried = true,
                Next::Job(job) => need = Some(Need::Job(job)),
                Next::Application(given) => {
                    rest = &rest[request.len..];
                    need = Some(Need::Delegate(given));
                    break;
                }
            }
            let enough = answered >= plan.limits.pipelined_max || self.outlet.queued() >= BATCH_BYTES;
            if rest.is_empty() || need.is_some() || self.inbox_untried {
                break;
            }
            if enough {
                self.inbox_untried = true;
                break;
            }
        }
        self.keep(head, rest);
        need
    }

    /// Answers one request into the outlet.
    fn answer(&mut self, request: &Request<'_>, plan: &Plan, ctx: &mut Context) -> Next {
        let found = match std::mem::replace(&mut self.state, State::Open) {
            State::Found(found) => Some(*found),
            _ => None,
        };
        let given =
            Given { listener: self.listener, found, client: &self.transport, upload: &mut self.upload };
        let start = self.outlet.end();
        let mut reply = self.protocol.respond(&mut self.outlet, ctx.draining);
        let ready = match exchange::answer(ctx, plan, request, given, &mut reply) {
            Answer::Ready(ready) => ready,
            Answer::AfterOthers => return Next::SameAgain,
            Answer::Delegated(delegation) => return self.delegate(request, *delegation, ctx),
            Answer::NeedsBody { upload, bytes_max } => {
                let is_wanted = upload.is_some();
                self.upload = upload;
                return Next::Body { bytes_max, is_wanted };
            }
            // The answers before it need not wait for the disk: they are sent first.
            Answer::Needs(_) if !self.outlet.is_empty() => return Next::SameAgain,
            Answer::Needs(job) => {
                self.state = State::Finding;
                ctx.tally.add(Metric::Jobs, 1);
                return Next::Job(job);
            }
        };
        // Of a request that was to be an application's before a reload.
        self.upload = None;
        self.trial = ready.trial.filter(|_| start == self.outlet.sent());
        let logged = plan.sites().get(ready.site).is_none_or(|site| site.log);
        let text = match self.redirected.take() {
            Some(redirected) => redirected.text,
            None => ctx.log.as_mut().filter(|_| logged).map(|log| log.note(&request.head)),
        };
        self.begin_response(&ready, start, text, ctx);
        if !self.protocol.goes_on() {
            return Next::End;
        }
        self.protocol.handle_answered();
        Next::Request
    }

    /// Gives a request away.
    fn delegate(&mut self, request: &Request<'_>, delegation: Delegation, ctx: &mut Context) -> Next {
        let Delegation { request: mut given, passed_fields, origin } = delegation;
        given.handover = passed_fields.and_then(|fields| {
            let Client { minor, keep, head } = self.protocol.respond(&mut self.outlet, ctx.draining).client();
            let keep = keep && origin.delegate.keep_passed;
            self.transport.hand_over(Terms { minor, keep, head, fields }, self.outlet.sent())
        });
        self.feeding = given.rest.as_ref().map(|rest| Feeding::new(rest.left()));
        let logged = origin.plan.sites().get(origin.site_index).is_none_or(|site| site.log);
        let (text, redirected) = match self.redirected.take() {
            Some(redirected) => (redirected.text, redirected.times),
            None => (ctx.log.as_mut().filter(|_| logged).map(|log| log.note(&request.head)), 0),
        };
        let mut delegated = Delegated::new(origin, text, redirected, ctx.clock.now_ms());
        delegated.handed_over = given.handover.is_some();
        self.state = State::Delegated(Box::new(delegated));
        self.protocol.handle_given_away();
        Next::Application(Box::new(given))
    }

    /// Keeps what is left of the input; a connection with nothing left keeps no memory for it.
    fn keep(&mut self, head: &[u8], rest: &[u8]) {
        if head.is_empty() && rest.is_empty() {
            if self.inbox.capacity() > 0 {
                self.inbox = Vec::new();
            }
        } else {
            self.inbox.clear();
            self.inbox.extend_from_slice(head);
            self.inbox.extend_from_slice(rest);
        }
    }

    /// Refuses what the client sends; `input` is all there is of it.
    pub(super) fn refuse(
        &mut self,
        input: &[u8],
        status: Status,
        why: &str,
        outcome: Outcome,
        ctx: &mut Context,
    ) {
        self.inbox_untried = false;
        self.state = State::Ending(LastClose::Linger);
        let body_start = self.outlet.end();
        let plan = Arc::clone(&ctx.plan);
        self.protocol.refuse();
        let mut reply = self.respond(ctx);
        let mut ready = exchange::refuse(ctx, &plan, status, why, &mut reply);
        ready.outcome = outcome;
        let text = ctx.log.as_mut().map(|log| log.note_unreadable(input));
        self.begin_response(&ready, body_start, text, ctx);
    }
}

/// Bytes of responses that are collected before they are sent, when requests are pipelined.
const BATCH_BYTES: u64 = 256 * 1024;
