//! A request that an application or an origin answers.
//!
//! ```text
//!   Receiving ── its body has arrived, as far as it is needed ─► Ready ── delegated ─► Waiting
//!
//!            ┌─ Answered: the application wrote to the client itself ─────────────────────────► answered
//!            │
//!   Waiting ─┼─ Rest ─► Sending ── Body … ── End ────────────────────────────────────────────► answered
//!            │
//!            ├─ Switch ───────────────────────────────────────────────────────────────────────► a tunnel
//!            │
//!            ├─ Head ─► Held ── all of it is there, or nothing more for now (*) ─► Sending ── End ─► answered
//!            │    └───► Collecting ── End ─► Assembly: its answer is assembled from files ─────► answered
//!            │
//!   Sending: a Coder may code the body ([`Coder`]). If it needs more turns for it, Sending ── End ─► Finishing ─► answered
//!
//!            └─ Failed: an error page. After the head: the connection is cut, so that no part looks complete
//!
//!   (*) A body that is digested is held until all of it is there, or too much.
//!   Of a file's home: Failed ─► this node answers. After the head: Resuming ─► the rest, from here
//!   What has another head than it may: Unwanted ── End, or no more for now: taken back ─► another answer, or this node
//! ```

mod coding;
mod unwanted;

use std::sync::Arc;

use baton_buf::{Aggregate, Piece, Slice};
use baton_cache::Ask;
use baton_compress::{Verdict, judge};
use baton_content::Found;
use baton_fcgi::cgi::Instruction;
use baton_fcgi::{AnswerOutcome, Answered, Rest};
use baton_http::origin::{ResponseHead, Trailers};
use baton_http::{BodyFraming, KeptHead, RequestHead, Status, Version};
use baton_pool::Chunk;
use baton_response::{Author, Body, Coder, Ready, Reply as _, Response, TURN_BYTES, is_digested, range};
use baton_site::documents::Instead;
use baton_site::mark::Mark;
use baton_site::plan::{Delegate, Digest, Plan, Terms};
use baton_telemetry::log::Outcome;
use baton_telemetry::metrics::Metric;
use baton_upstream::{Admission, Chosen, Failure, FailureReason, Request, ResponseEvent};

use super::application::{AnswerNotes, DelegatedRequest, Program};
use super::assembly::{Assembly, append_own};
use super::cached;
use super::env::{Delegation, Env, Shown, Wants};
use super::fetched::Fetch;
use super::guarded::Identity;
use super::record::Record;
use super::routed::{RouteIndex, body_refused};
use crate::context::Context;
use crate::job::CodedFile;
use crate::upload::{Begins, Upload};
use unwanted::UnwantedRest;

/// A request that an application or an origin answers.
#[derive(Debug)]
pub(super) struct Delegated {
    origin: DelegatedRequest,
    asked: RequestDetails,
    progress: Progress,
    /// The gateway had no event when it was asked last.
    quiet: bool,
    /// The fields behind the body.
    trailers: Option<Trailers>,
    /// What codes the body, if it is coded.
    coder: Option<Box<Coder>>,
    /// If a file's home is asked, and this node can answer besides.
    fetch: Option<Box<Fetch>>,
}

/// The state of the request and its answer.
#[derive(Debug)]
enum Progress {
    /// The body arrives.
    Receiving { upload: Box<Upload> },
    /// The request can be delegated. The rest of its body may still be to come.
    Ready { body: Aggregate, admission: Option<Admission>, is_complete: bool },
    /// The request is to be relayed after all, to the node that was chosen.
    Again(Box<Request>),
    /// The request is delegated, and its answer has not begun.
    Waiting,
    /// The head has arrived, and perhaps some of the body. They wait to be sent together, and for the end, which tells
    /// the length.
    Held { head: ResponseHead, body: Aggregate },
    /// The head instructs the server to do something once the body is complete.
    Collecting {
        head: Box<ResponseHead>,
        instruction: Instruction,
        /// The body, if it is wanted; `None`: it is too long to be text.
        text: Option<Aggregate>,
    },
    /// The head has been sent, by the server or by the application itself.
    Sending,
    /// What has responded is not passed on, and its body is dropped. `instead` answers; `None`: this node, from its own disk.
    Unwanted { instead: Option<Instead>, rest: UnwantedRest },
    /// The home of a file has sent a part of it. The rest is sent from here, once a job has found it.
    Resuming(Option<Found>),
    /// The application has ended, and its body is still being coded.
    Finishing { trailers: Option<Trailers> },
    /// The application has ended; the server assembles the answer from files that it named.
    Assembly(Box<Assembly>),
}

/// What is asked, besides the head.
#[derive(Debug, Default)]
pub(super) struct RequestDetails {
    /// The file's home, if that is asked.
    pub(super) fetch: Option<Box<Fetch>>,
    /// The program; `None`: an origin is asked.
    pub(super) program: Option<Program>,
    /// What an extended CONNECT wants to speak.
    pub(super) protocol: Option<Box<[u8]>>,
    /// What the shared cache is asked.
    pub(super) ask: Option<Arc<Ask>>,
    /// Who asks, if that is not just the other end of the connection.
    pub(super) identity: Option<Arc<Identity>>,
    /// Its id, and the trace that it belongs to.
    pub(super) mark: Option<Arc<Mark>>,
    /// What is known of the answer already.
    pub(super) notes: AnswerNotes,
}

/// What an event of the gateway leads to.
#[derive(Debug)]
pub(super) enum Reaction {
    /// More is to come.
    More,
    /// The response is in the send queue or with the client, as far as it will come.
    Answered,
    /// The server has answered in its own words.
    Ready(Ready),
    /// The client is gone; the request ends with this outcome.
    NoClient(Outcome),
    /// Answer the request as if it had asked for this target.
    Redirect(Box<[u8]>),
    /// The client and the origin exchange bytes of another protocol from now on.
    Tunnel(Shown),
    /// The home of a file has not answered: this node does.
    Here,
}

impl Delegated {
    /// A request, whose body is read first if it has one.
    pub(super) fn new(
        env: &mut Env<'_>,
        plan: &Arc<Plan>,
        index: RouteIndex,
        head: &RequestHead<'_>,
        delegate: &Arc<Delegate>,
        mut asked: RequestDetails,
    ) -> Self {
        let is_whole = Progress::Ready { body: Aggregate::default(), admission: None, is_complete: true };
        let is_proxied = delegate.proxy().is_some();
        let origin = DelegatedRequest {
            plan: Arc::clone(plan),
            delegate: Arc::clone(delegate),
            index,
            head: head.keep(),
            identity: asked.identity.take(),
            mark: asked.mark.take(),
            notes: std::mem::take(&mut asked.notes),
        };
        let progress = if asked.protocol.is_some() || !env.reply.has_body_ahead() {
            is_whole
        } else {
            // An origin says itself whether it wants the body, unless it is chosen by that.
            let is_asked_first = is_proxied && !delegate.chooses_by_body();
            env.reply.expect_body(delegate.upload.bytes_max, !is_asked_first);
            let begins = match head.framing {
                // The origin says whether it wants any.
                _ if is_asked_first && head.expects_continue => Begins::With(0),
                // The client may wait for the answer to what it has sent.
                _ if is_proxied => Begins::With(delegate.upload.first_bytes),
                BodyFraming::Length(_) => {
                    Begins::Admitted(delegate.application.settings().streamed_bodies.clone())
                }
                _ => Begins::Complete,
            };
            let client = origin.asker(env.client);
            let application = Arc::clone(&delegate.application);
            let upload = Upload::new(delegate.upload.clone(), application, client, begins);
            Progress::Receiving { upload: Box::new(upload) }
        };
        let fetch = asked.fetch.take();
        Self { origin, asked, progress, quiet: false, trailers: None, coder: None, fetch }
    }

    /// The request, of which nothing has been answered.
    pub(super) fn into_request(self) -> (Arc<Plan>, RouteIndex, KeptHead) {
        let DelegatedRequest { plan, index, head, .. } = self.origin;
        (plan, index, head)
    }

    pub(super) fn body_timeout_ms(&self) -> Option<u64> {
        self.origin.delegate.upload.timeout_ms
    }

    /// Where the body is kept.
    pub(super) fn upload(&mut self) -> Option<&mut Upload> {
        match &mut self.progress {
            Progress::Receiving { upload } => Some(upload),
            _ => None,
        }
    }

    /// Room for bytes of the body where the application can read them.
    pub(super) fn chunk(&self) -> Option<Chunk> {
        self.origin.delegate.application.chunk()
    }

    pub(super) fn is_with_application(&self) -> bool {
        use Progress::{Collecting, Held, Sending, Unwanted, Waiting};
        matches!(self.progress, Waiting | Held { .. } | Collecting { .. } | Sending | Unwanted { .. })
    }

    pub(super) fn is_under_way(&self) -> bool {
        !matches!(self.progress, Progress::Receiving { .. } | Progress::Ready { .. } | Progress::Again(_))
    }

    /// The body is complete as far as it is needed.
    pub(super) fn handle_body(&mut self, is_complete: bool) {
        self.progress = match std::mem::replace(&mut self.progress, Progress::Waiting) {
            Progress::Receiving { upload } => {
                let (body, admission) = upload.into_parts();
                Progress::Ready { body, admission, is_complete }
            }
            other => other,
        };
    }

    /// Refuses the rest of the body.
    pub(super) fn body_refused(&mut self, env: &mut Env<'_>) -> Ready {
        let upload = match &self.progress {
            Progress::Receiving { upload } => Some(&**upload),
            _ => None,
        };
        let response = body_refused(&self.origin.rules(), env.ctx, upload);
        self.origin.finish(env, response)
    }

    /// A job has found a file that the application named, or of which a home has sent a part.
    pub(super) fn handle_found(&mut self, found: Found) {
        match &mut self.progress {
            Progress::Assembly(assembly) => assembly.handle_found(found),
            Progress::Resuming(known) => *known = Some(found),
            _ => {}
        }
    }

    /// A job has coded that file.
    pub(super) fn handle_coded(&mut self, coded: CodedFile) {
        if let Progress::Assembly(assembly) = &mut self.progress {
            assembly.handle_coded(coded);
        }
    }

    /// A job has read what is coded next, or text that names files; `None`: it could not.
    pub(super) fn handle_read(&mut self, bytes: Option<Slice>) {
        match (&mut self.progress, &mut self.coder) {
            (Progress::Assembly(assembly), _) => assembly.handle_read(bytes),
            (_, Some(coder)) => coder.handle_read(bytes),
            _ => {}
        }
    }

    /// Whether it can go on without another event of the gateway.
    pub(super) fn is_coding(&self) -> bool {
        use UnwantedRest::{Lasts, TakenBack};
        let is_left = matches!(self.progress, Progress::Unwanted { rest: Lasts | TakenBack, .. });
        is_left || self.coder.as_ref().is_some_and(|coder| coder.has_pending())
    }

    /// Whether this node has to answer what was taken back from the home of a file.
    pub(super) fn is_for_here(&self) -> bool {
        matches!(self.progress, Progress::Unwanted { instead: None, rest: UnwantedRest::TakenBack })
    }

    /// Asks the gateway for its next event again, even if it had none last.
    pub(super) fn handle_room(&mut self) {
        self.quiet = false;
    }

    /// What is needed next, or the complete response, which is in the send queue.
    pub(super) fn poll(&mut self, env: &mut Env<'_>, record: &mut Record) -> Result<Wants, Ready> {
        if let Some(wants) = self.advance_coder(env, record) {
            return Ok(wants);
        }
        match &mut self.progress {
            Progress::Receiving { .. } => return Ok(Wants::Body),
            Progress::Assembly(assembly) => return assembly.go_on(env, &self.origin).map(Wants::Job),
            Progress::Resuming(found) => {
                let found = found.take();
                return Ok(self.send_rest(env, found, record));
            }
            Progress::Unwanted { rest, .. } if *rest == UnwantedRest::Lasts => {
                *rest = UnwantedRest::TakenBack;
                record.note_answered(&env.ctx.clock);
                return Ok(Wants::Abandon);
            }
            Progress::Unwanted { instead: Some(instead), rest: UnwantedRest::TakenBack } => {
                let response = self.origin.answer_instead(env.ctx, *instead);
                return Err(self.origin.finish(env, response));
            }
            Progress::Ready { .. } | Progress::Again(_) => {}
            _ if std::mem::take(&mut self.quiet) => return Ok(Wants::ResponseAwaited),
            _ => return Ok(Wants::ResponseEvents),
        }
        let progress = std::mem::replace(&mut self.progress, Progress::Waiting);
        // The gateway announces its first event.
        self.quiet = true;
        let (body, admission, is_complete) = match progress {
            Progress::Ready { body, admission, is_complete } => (body, admission, is_complete),
            Progress::Again(request) => {
                record.note_asked(&request, env.ctx);
                return Ok(Wants::Delegation(Delegation { request, ask: None, terms: None }));
            }
            _ => return Ok(Wants::ResponseEvents),
        };
        let delegate = Arc::clone(&self.origin.delegate);
        let ask = self.asked.ask.as_ref();
        let mut delegation = match (&delegate.terms, &self.asked) {
            (Terms::Cgi(terms), RequestDetails { program: Some(program), .. }) => {
                self.origin.delegation(env, terms, program, ask, (body, admission))
            }
            (Terms::Proxy(terms), RequestDetails { protocol, .. }) => {
                let body = (body, is_complete);
                let proxied = self.origin.proxied(env, terms, protocol.as_deref(), ask, body);
                proxied.map_err(|response| self.origin.finish(env, *response))?
            }
            (Terms::Cgi(_), _) => {
                let response = self.origin.page(Status::NOT_FOUND);
                return Err(self.origin.finish(env, response));
            }
        };
        if let Some(turn) = self.fetch.as_mut().and_then(|fetch| fetch.take_turn()) {
            delegation.request.set_turn(turn);
        }
        match delegation.ask {
            None => record.note_asked(&delegation.request, env.ctx),
            Some(_) => record.note_cache_asked(&env.ctx.clock),
        }
        Ok(Wants::Delegation(delegation))
    }

    /// The gateway's next event; `None`: nothing more for now.
    pub(super) fn handle_response_event(
        &mut self,
        env: &mut Env<'_>,
        event: Option<ResponseEvent>,
        record: &mut Record,
    ) -> Reaction {
        self.quiet = event.is_none();
        // By now it is known whether the socket was passed to the application.
        if env.client.was_passed() && self.origin.delegate.cgi().is_some_and(|terms| !terms.keep_passed) {
            env.reply.close_behind();
        }
        if let Some(ResponseEvent::End { .. } | ResponseEvent::Answered(_) | ResponseEvent::Failed(_)) =
            &event
        {
            record.note_answered(&env.ctx.clock);
        }
        match event {
            None => {
                if let Progress::Unwanted { rest, .. } = &mut self.progress {
                    *rest = rest.ending();
                }
                if !self.awaits_digest() {
                    self.begin_held(env, false, record);
                }
                return self.flush_coder(env, record);
            }
            Some(ResponseEvent::Head(head, instruction)) => self.take_head(env, head, instruction),
            Some(ResponseEvent::CacheNote(word)) => {
                self.origin.notes.cache = Some(word);
                record.note_cache(word);
            }
            Some(ResponseEvent::Interim(head)) => {
                // Some clients that have not asked for `100 Continue` take it for the response.
                let is_unasked =
                    head.status() == Status::CONTINUE && !self.origin.head.get().expects_continue;
                if !is_unasked && self.origin.delegate.copies().is_none() && self.fetch.is_none() {
                    env.reply.send_interim(&mut env.ctx.heads, &head);
                }
            }
            Some(ResponseEvent::Switch(head)) => return self.take_switch(env, head, record),
            Some(ResponseEvent::Trailers(trailers)) => self.trailers = Some(trailers),
            // A tunnel's.
            Some(ResponseEvent::HalfEnd) => {}
            Some(ResponseEvent::Trail(origin, trail)) => {
                env.ctx.tally.add(Metric::OriginRetries, u64::from(trail.tries.saturating_sub(1)));
                record.note_trail(origin, trail);
            }
            Some(ResponseEvent::Travelled(transport)) => record.note_transport(transport),
            Some(ResponseEvent::Answering(origin)) => self.origin.notes.upstream = Some(origin),
            Some(ResponseEvent::Chosen(chosen)) => return self.leave_to_node(env, chosen, record),
            Some(ResponseEvent::Body(body)) => return self.take_body(env, body, record),
            Some(ResponseEvent::Rest(rest)) => self.take_rest(env, rest, record),
            Some(ResponseEvent::Stderr(lines)) => self.tell(&lines, env.ctx),
            Some(ResponseEvent::End { .. }) => return self.end(env, record),
            Some(ResponseEvent::Answered(answered)) => return self.answered_elsewhere(env, answered, record),
            Some(ResponseEvent::Failed(failure)) => return self.fail(env, &failure, record),
        }
        Reaction::More
    }

    /// The origin speaks another protocol from now on, and so does the client.
    fn take_switch(&mut self, env: &mut Env<'_>, mut head: ResponseHead, record: &mut Record) -> Reaction {
        self.origin.notes.status = Some(head.status());
        if let Some(terms) = self.origin.delegate.proxy() {
            terms.responses.apply(&mut head, &self.origin.head.get());
        }
        let status = self.origin.switch(env, &head);
        record.begin(&status.into());
        record.note_head(&mut env.ctx.log);
        Reaction::Tunnel(Shown {
            origin: self.origin.delegate.application.name().into(),
            request: self.origin.shown_request().into(),
        })
    }

    fn take_head(&mut self, env: &Env<'_>, mut head: ResponseHead, instruction: Instruction) {
        self.origin.notes.status = Some(head.status());
        let (delegate, request) = (&self.origin.delegate, self.origin.head.get());
        if let Some(fetch) = &mut self.fetch
            && !fetch.take_head(&mut head, &request, self.origin.rules().headers, &env.ctx.clock)
        {
            self.progress = Progress::Unwanted { instead: None, rest: UnwantedRest::Comes(0) };
            return;
        }
        if let Some(terms) = delegate.proxy() {
            terms.responses.apply(&mut head, &request);
        }
        if self.asked.ask.is_none() && delegate.cache.is_some() {
            let is_by_rule = self.origin.bypasses_cache(env.client);
            cached::note_bypass(env, delegate, &request, is_by_rule, &mut head);
        }
        if let Some(instead) = self.origin.instead_of(&head) {
            let rest =
                if delegate.proxy().is_some() { UnwantedRest::Comes(0) } else { UnwantedRest::Awaited };
            self.progress = Progress::Unwanted { instead: Some(instead), rest };
            return;
        }
        let body = Aggregate::default();
        self.progress = match instruction {
            Instruction::None => Progress::Held { head, body },
            // The head already has the right status: 302.
            Instruction::LocalRedirect(_)
                if self.origin.delegate.cgi().is_none_or(|terms| !terms.local_redirects) =>
            {
                Progress::Held { head, body }
            }
            _ => Progress::Collecting { head: Box::new(head), instruction, text: Some(Aggregate::new()) },
        };
    }

    fn take_body(&mut self, env: &mut Env<'_>, body: Aggregate, record: &mut Record) -> Reaction {
        if let Some(fetch) = &mut self.fetch {
            fetch.note_passed(body.len());
        }
        match &mut self.progress {
            Progress::Held { head, body: held } => {
                held.append(body);
                // What is coded need not wait for its length, but it does for its digest.
                let is_coded = || {
                    let (request, rules) = (self.origin.head.get(), self.origin.rules());
                    let verdict = rules.compress.map(|rules| judge(rules, &request, head, None));
                    matches!(verdict, Some(Verdict::Coded(_))) && !is_digested(rules.digest, head)
                };
                if held.len() > HELD_BYTES_MAX || (held.len() > TURN_BYTES && is_coded()) {
                    self.begin_held(env, false, record);
                }
            }
            Progress::Sending => match &mut self.coder {
                Some(coder) => {
                    coder.take(body);
                    return self.send_coded(env, record, Coder::code);
                }
                None => env.reply.send_part(body),
            },
            Progress::Collecting { instruction, text, .. } => {
                if matches!(instruction, Instruction::ZeroCopy(_)) {
                    *text = text.take().filter(|text| text.len() + body.len() <= TEXT_BYTES_MAX);
                    if let Some(text) = text {
                        append_own(text, &body);
                    }
                }
            }
            Progress::Unwanted { rest, .. } => *rest = rest.with(body.len()),
            _ => debug_assert!(false, "a body before its head"),
        }
        Reaction::More
    }

    /// Whether the head waits for the end of the body, whose digest it will have.
    fn awaits_digest(&self) -> bool {
        match &self.progress {
            Progress::Held { head, .. } => is_digested(self.origin.rules().digest, head),
            _ => false,
        }
    }

    /// Sends the held head and body. `is_whole`: the body is complete, and nothing follows it.
    fn begin_held(&mut self, env: &mut Env<'_>, is_whole: bool, record: &mut Record) {
        let progress = std::mem::replace(&mut self.progress, Progress::Sending);
        let Progress::Held { head, body, .. } = progress else {
            self.progress = progress;
            return;
        };
        let body = Body::Begun(body, is_whole);
        let mut ready =
            self.origin.finish(env, Response::of_lines(head, Author::of(&self.origin.delegate), body));
        self.coder = ready.coder.take();
        record.begin(&ready);
        record.note_head(&mut env.ctx.log);
    }

    fn take_rest(&mut self, env: &mut Env<'_>, rest: Rest, record: &mut Record) {
        env.reply.resume(rest.may_go_on);
        record.begin(&Status::new(rest.status).into());
        record.handle_sent_elsewhere(rest.body_sent);
        self.progress = Progress::Sending;
    }

    /// A node was chosen that the client gets to by itself, or else through the gateway.
    fn leave_to_node(&mut self, env: &mut Env<'_>, chosen: Box<Chosen>, record: &mut Record) -> Reaction {
        let Some(public) = chosen.public() else {
            self.progress = Progress::Again(Box::new(chosen.relay()));
            return Reaction::More;
        };
        record.note_trail(Arc::clone(chosen.application()), chosen.trail());
        let response = self.origin.redirected_to_node(&chosen, public);
        self.answer(env, response)
    }

    /// The request as it came, with its body. `None`: that is not in memory as it came.
    pub(super) fn text(&self, body: &Aggregate) -> Option<Vec<u8>> {
        let is_whole = match self.origin.head.get().framing {
            BodyFraming::None => true,
            BodyFraming::Length(length) => length == body.len(),
            // As it came, it is not in memory.
            _ => false,
        };
        is_whole.then_some(())?;
        let mut text = Vec::new();
        self.origin.head.push_text(&mut text);
        for piece in body.pieces() {
            let Piece::Memory(slice) = piece else { return None };
            text.extend_from_slice(slice);
        }
        Some(text)
    }

    /// The application has completed its response.
    fn end(&mut self, env: &mut Env<'_>, record: &mut Record) -> Reaction {
        let trailers = self.trailers.take().filter(|_| accepts_trailers(&self.origin.head.get()));
        // Only chunks have a place for trailers.
        self.begin_held(env, trailers.is_none(), record);
        let progress = std::mem::replace(&mut self.progress, Progress::Sending);
        match progress {
            Progress::Collecting { head, instruction, text } => {
                return self.follow_instruction(env, head, instruction, text);
            }
            Progress::Sending => {
                if let Some(coder) = &self.coder {
                    let can_finish = coder.can_finish();
                    self.progress = Progress::Finishing { trailers };
                    return if can_finish { self.finish_coded(env, record) } else { Reaction::More };
                }
            }
            Progress::Unwanted { instead: Some(instead), .. } => {
                let response = self.origin.answer_instead(env.ctx, instead);
                return self.answer(env, response);
            }
            Progress::Unwanted { instead: None, .. } => return Reaction::Here,
            // It ended without an answer.
            other => {
                self.progress = other;
                let failure = Failure { why: FailureReason::Ended, client_lost: false, must_end: false };
                return self.fail(env, &failure, record);
            }
        }
        self.end_reply(env, trailers.as_ref(), record)
    }

    /// All of the body is in the send queue.
    fn end_reply(&self, env: &mut Env<'_>, trailers: Option<&Trailers>, record: &mut Record) -> Reaction {
        if env.reply.end(trailers).is_err() {
            self.origin.warn(env.ctx, format_args!("{TOO_SHORT}"));
            return end_short(env, self.origin.failed(), record);
        }
        record.close();
        Reaction::Answered
    }

    /// Follows the instruction in the answer's head. `text`: the body, if it is wanted and not too long.
    fn follow_instruction(
        &mut self,
        env: &mut Env<'_>,
        head: Box<ResponseHead>,
        instruction: Instruction,
        text: Option<Aggregate>,
    ) -> Reaction {
        if let Instruction::LocalRedirect(target) = instruction {
            return Reaction::Redirect(target);
        }
        match Assembly::new(&self.origin, head, instruction, text) {
            Ok(assembly) => {
                self.progress = Progress::Assembly(Box::new(assembly));
                Reaction::More
            }
            Err(why) => {
                let response = self.origin.refuse(env.ctx, Status::BAD_GATEWAY, why);
                self.answer(env, response)
            }
        }
    }

    /// The head of a request for another target within the site (RFC 3875, section 6.2.2), or an error page. `times`:
    /// the number of redirects, with this one.
    pub(super) fn redirected(&self, env: &mut Env<'_>, target: &[u8], times: u32) -> Result<KeptHead, Ready> {
        let redirected = self.redirected_head(env.ctx, target, times);
        redirected.map_err(|response| self.origin.finish(env, *response))
    }

    fn redirected_head(&self, ctx: &Context, target: &[u8], times: u32) -> Result<KeptHead, Box<Response>> {
        if times > REDIRECTS_MAX {
            let what = format!(
                "it redirects within the server in a loop: this is redirect {times} of one request, to {}",
                String::from_utf8_lossy(&target[..target.len().min(SHOWN_BYTES_MAX)])
            );
            return Err(Box::new(self.origin.refuse(ctx, Status::BAD_GATEWAY, &what)));
        }
        self.origin.head.redirected(target, &ctx.plan.limits.head).map_err(|refusal| {
            let what =
                format!("it redirects within the server to a path that no request can have: {refusal}");
            Box::new(self.origin.refuse(ctx, Status::BAD_GATEWAY, &what))
        })
    }

    /// The application has written its answer to the client's socket.
    fn answered_elsewhere(&mut self, env: &mut Env<'_>, answered: Answered, record: &mut Record) -> Reaction {
        let outcome = match answered.outcome {
            AnswerOutcome::Complete if answered.complete => Outcome::Complete,
            AnswerOutcome::ClientGone => Outcome::ClientGone,
            AnswerOutcome::Complete | AnswerOutcome::ApplicationFailed => Outcome::ApplicationFailed,
        };
        record.begin(&Ready { outcome, ..Status::new(answered.status).into() });
        record.handle_sent_elsewhere(answered.body_bytes);
        record.close();
        match outcome {
            Outcome::Complete if answered.may_go_on && !env.ctx.is_last_request_of(env.client) => {}
            Outcome::Complete => env.reply.close_behind(),
            Outcome::ClientGone => return Reaction::NoClient(outcome),
            _ => {
                self.origin.warn(env.ctx, format_args!("{TOO_SHORT}"));
                env.reply.close_behind();
            }
        }
        Reaction::Answered
    }

    /// The answer, or the rest of it, will not come.
    fn fail(&mut self, env: &mut Env<'_>, failure: &Failure, record: &mut Record) -> Reaction {
        let outcome = match failure.why {
            FailureReason::ClientGone => Outcome::ClientGone,
            FailureReason::BodyTimedOut => Outcome::TimedOut,
            FailureReason::BodyTooLong | FailureReason::BodyBroken => Outcome::Refused,
            _ => self.origin.failed(),
        };
        if self.fetch.is_some() && outcome == self.origin.failed() && !failure.client_lost {
            return self.fail_fetch(env, failure, record);
        }
        if outcome == self.origin.failed() {
            let name = record.origin_name().unwrap_or_else(|| self.origin.delegate.application.name());
            self.origin.warn_of(name, env.ctx, format_args!("{}", failure.why));
            record.note_failure(failure.why.label());
        }
        let status = Status::new(failure.why.status());
        let nothing_sent = !matches!(self.progress, Progress::Sending);
        if failure.client_lost || outcome == Outcome::ClientGone {
            record.give_up(status);
            return Reaction::NoClient(outcome);
        }
        if !nothing_sent {
            return self.cut(env, outcome, record);
        }
        if matches!(outcome, Outcome::TimedOut | Outcome::Refused) || failure.must_end {
            env.reply.close_behind();
        }
        let response = self.origin.page(status).ending(outcome);
        self.answer(env, response)
    }

    /// The home of a file has failed. What is missing comes from here, if it can.
    fn fail_fetch(&mut self, env: &mut Env<'_>, failure: &Failure, record: &mut Record) -> Reaction {
        record.note_failure(failure.why.label());
        let Some(fetch) = &self.fetch else { return Reaction::Here };
        fetch.note_failed();
        if !matches!(self.progress, Progress::Sending) {
            return Reaction::Here;
        }
        if self.coder.is_some() || !fetch.can_go_on() {
            return self.cut(env, self.origin.failed(), record);
        }
        self.progress = Progress::Resuming(None);
        Reaction::More
    }

    /// Sends the rest of a file from here, once that is found.
    fn send_rest(&mut self, env: &mut Env<'_>, found: Option<Found>, record: &mut Record) -> Wants {
        let found = match found.map_or_else(|| self.origin.look_here(env), Ok) {
            Ok(found) => found,
            Err(job) => return Wants::Job(job),
        };
        let rest = self.fetch.as_ref().and_then(|fetch| fetch.rest_of(&found));
        let Some((stored, first, len)) = rest else {
            self.cut(env, self.origin.failed(), record);
            return Wants::Nothing;
        };
        let by_reference = env.reply.may_send_by_reference();
        let (piece, _) = range(&mut env.ctx.supplies(), &stored, first, len, by_reference);
        let mut body = Aggregate::new();
        body.push(piece);
        env.reply.send_part(body);
        self.end_reply(env, None, record);
        Wants::Nothing
    }

    /// The rest of a response will not come. The client gets what there is of it, and then the connection ends.
    fn cut(&mut self, env: &mut Env<'_>, outcome: Outcome, record: &mut Record) -> Reaction {
        if let Some(coder) = &mut self.coder
            && let Ok(coded) = coder.flush(&mut env.ctx.tally)
        {
            env.reply.send_part(coded);
        }
        end_short(env, outcome, record)
    }

    /// Answers in the place of what was asked.
    fn answer(&self, env: &mut Env<'_>, response: Response) -> Reaction {
        Reaction::Ready(self.origin.finish(env, response))
    }

    /// Writes the application's stderr to the error log.
    fn tell(&self, lines: &[u8], ctx: &Context) {
        for line in String::from_utf8_lossy(lines).lines().filter(|line| !line.is_empty()) {
            self.origin.warn(ctx, format_args!("{line}"));
        }
    }
}

/// Ends a response without what tells the client that this is all.
fn end_short(env: &mut Env<'_>, outcome: Outcome, record: &mut Record) -> Reaction {
    env.reply.cut();
    record.fail(outcome);
    record.close();
    Reaction::Answered
}

/// Whether the client takes fields behind the body: HTTP/2 has a place for them, in HTTP/1.1 it says so.
fn accepts_trailers(head: &RequestHead<'_>) -> bool {
    let says_so = |(name, value): (&str, &[u8])| {
        name.eq_ignore_ascii_case("TE") && value.split(|byte| *byte == b',').any(is_trailers)
    };
    let is_offered = head.version == Version::Http11 && head.fields().any(says_so);
    head.version == Version::Http2 || is_offered
}

fn is_trailers(coding: &[u8]) -> bool {
    coding.trim_ascii().eq_ignore_ascii_case(b"trailers")
}

/// For the error log, with every transport.
const TOO_SHORT: &str = "its response is shorter than its Content-Length";

/// Bytes of a body in which files are named.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// Bytes of a body that are held back until its end may tell its length, and its digest.
const HELD_BYTES_MAX: u64 = Digest::BYTES_MAX;

/// Local redirects of one request; more are a loop.
const REDIRECTS_MAX: u32 = 10;

/// Bytes of a location in a warning.
const SHOWN_BYTES_MAX: usize = 200;
