//! One request and its answer: a value with states, which owns its log record and ends in exactly one outcome.
//!
//! ```text
//!   head ─► site ─► route ─► what there is ─► conditions ─► ranges ─► response ──────────► Answered
//!                     │            │                                                          ▲
//!                     │            └─► Finding: a job looks it up, on a disk perhaps ─────────┤
//!                     └─► Delegated: an application answers ─► Tunnel, perhaps ───────────────┘
//! ```
//!
//! A request that needs only the cache is answered in place, from the head in the input buffer. A request that has to
//! wait keeps a copy of its head. An exchange knows no socket, no framing and no version: it answers through the
//! protocol's [`Responder`].

mod application;
mod assembly;
mod cached;
mod coded_file;
mod delegated;
mod env;
mod fetched;
mod find;
mod guarded;
mod https_address;
mod lent;
mod location;
mod moving;
mod proxied;
mod record;
mod refused;
mod routed;
mod source;
mod tls_parameters;
mod tunnel;
mod x_sendfile;

use std::net::SocketAddr;
use std::sync::Arc;

use baton_buf::Aggregate;
use baton_content::Found;
use baton_http::{KeptHead, Refusal, RequestHead, Status};
use baton_pool::Chunk;
use baton_response::{Coder, Page, Ready, Response, Rules};
use baton_shares::ClientKey;
use baton_site::condition::RequestView;
use baton_site::facts::{AnswerFacts, RequestFacts};
use baton_site::mark::Mark;
use baton_site::matcher::Matcher;
use baton_site::plan::{Action, Otherwise, Plan, UNANSWERED};
use baton_site::rewrites::Rewrites;
use baton_site::template;
use baton_site::template::{REWRITES_MAX, Template};
use baton_telemetry::clock::Clock;
use baton_telemetry::log::Outcome;
use baton_upstream::{ResponseEvent, ResponseEvents};

use crate::context::Context;
use crate::job::{CodedFile, Job, Learned};
use crate::protocol::{BodyRead, StreamId};
use crate::transport::Transport;
use crate::upload::Upload;
use application::AnswerNotes;
use cached::Looked;
use delegated::{Delegated, Reaction, RequestDetails};
use fetched::{Fetch, FileSupply};
use find::tell_hidden_link;
use guarded::{AccessRequest, Authentication, Identity, Rejection};
use routed::{RouteIndex, Routed, body_refused};
use source::Source;
use tunnel::Tunnel;

pub(crate) use env::{Delegation, Env, Wants};
pub(crate) use record::Record;
pub(crate) use refused::Refused;

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) stream: StreamId,
    pub(crate) record: Record,
    state: State,
    /// Local redirects so far.
    redirects: u32,
    /// Which routes have rewritten the target.
    rewrites: Rewrites,
    /// What an extended CONNECT wants to speak.
    protocol: Option<Box<[u8]>>,
    /// Its file may be fetched from another node.
    may_fetch: bool,
    /// When its file was looked for on this node's disk, if that is to be known.
    reading_since_us: Option<u64>,
    /// Its file is in memory, and the node that fetches it is told so.
    is_hit: bool,
}

#[derive(Debug)]
enum State {
    /// The response is in the send queue, as far as it will come.
    Answered,
    /// The response is coded part by part.
    Coding(Box<Coder>),
    /// A job looks the path up, or verifies a password.
    Finding(Box<Finding>),
    /// An application answers.
    Delegated(Box<Delegated>),
    /// An origin has switched to another protocol.
    Tunnel(Box<Tunnel>),
}

/// A request whose answer depends on a job.
#[derive(Debug)]
struct Finding {
    plan: Arc<Plan>,
    index: RouteIndex,
    head: KeptHead,
    progress: Progress,
}

#[derive(Debug)]
enum Progress {
    ToDo(Job),
    UnderWay,
    Done(Learned),
}

impl Exchange {
    /// An exchange before [`begin`](Self::begin).
    pub(crate) fn new(stream: StreamId, clock: &Clock) -> Self {
        Self {
            stream,
            record: Record::new(clock.now_us()),
            state: State::Answered,
            redirects: 0,
            rewrites: Rewrites::default(),
            protocol: None,
            may_fetch: false,
            reading_since_us: None,
            is_hit: false,
        }
    }

    /// The request, which has not begun, comes behind others on a connection that a front-end has handed over for the first one.
    pub(crate) fn allow_fetch(&mut self) {
        self.may_fetch = true;
    }

    /// The request, which has not begun, is an extended CONNECT for this protocol (RFC 8441).
    pub(crate) fn set_protocol(&mut self, protocol: &[u8]) {
        self.protocol = Some(protocol.into());
    }

    /// Refuses input that is no request. The connection ends with the response.
    pub(crate) fn refuse_input(&mut self, env: &mut Env<'_>, input: &[u8], refused: &Refused<'_>) {
        self.note_unreadable(input, env.ctx);
        self.refuse(env, refused);
    }

    /// Notes input that is no request, for the log.
    pub(crate) fn note_unreadable(&mut self, input: &[u8], ctx: &mut Context) {
        let log = &mut ctx.log;
        self.record.identify(usize::MAX, || log.note_unreadable(input));
    }

    /// Refuses the rest of the request. The connection ends with the response.
    pub(crate) fn refuse(&mut self, env: &mut Env<'_>, refused: &Refused<'_>) {
        let plan = Arc::clone(&env.ctx.plan);
        env.reply.refuse();
        let rules = Rules::without_site(&plan);
        let response = rules.page(Page::refusal(refused.status, refused.why)).ending(refused.outcome);
        self.send(env, &rules, None, response);
    }

    /// Advances a new request until it has to wait.
    pub(crate) fn begin(&mut self, env: &mut Env<'_>, plan: &Arc<Plan>, head: &RequestHead<'_>) {
        let site_index = plan.site(env.listener, head.host);
        let site = site_index.map(|index| &plan.sites()[index]);
        if self.record.mark.is_none()
            && let Some(marking) = site.and_then(|site| site.marking.as_ref())
        {
            let marked = marking.mark(&mut env.ctx.ids, env.client.ip(), head, &plan.limits.head);
            return match marked {
                Ok((mark, kept)) => {
                    self.record.mark = Some(mark);
                    self.begin(env, plan, &kept.get());
                }
                // Without them, the client's own words would go on in their place.
                Err(refusal) => self.refuse(env, &Refused::by(refusal, &refusal.to_string())),
            };
        }
        self.record.identity = site
            .and_then(|site| site.real_address.as_ref())
            .and_then(|rule| Identity::behind(rule, env.client.peer(), head));
        let view = self.view(env.client, head);
        let is_logged = site.and_then(|site| site.log_when.as_ref()).is_none_or(|when| when.holds(&view));
        let log = &mut env.ctx.log;
        let note = || if is_logged { log.note(head, site.map(|site| &site.log)) } else { None };
        self.record.identify(site_index.unwrap_or(usize::MAX), note);
        self.record.count(site.and_then(|site| site.figures), &mut env.ctx.tally);
        if env.client.has_missed_tls() {
            let why = format!("This port speaks TLS: {}", https_address::of(head, env.client.local()));
            let (status, outcome) = (Status::BAD_REQUEST, Outcome::Refused);
            return self.refuse(env, &Refused { status, why: &why, outcome });
        }
        if let Some(proof) = plan.proof(head) {
            // It asks once.
            env.reply.close_behind();
            let rules = Rules::without_site(plan);
            return self.send(env, &rules, Some(head), rules.page(Page::proof(&proof)));
        }
        let (Some(site), Some(site_index)) = (site, site_index) else {
            let status = Status::NOT_FOUND;
            let why = "No site answers here.";
            return self.refuse(env, &Refused { status, why, outcome: Outcome::Refused });
        };
        // The handshake was made for another site: a client that has shown no certificate there must not come in here.
        if env.client.tls().is_some_and(|facts| facts.policy != site.clients) {
            let status = Status::MISDIRECTED_REQUEST;
            let why = "This connection was made for another site.";
            return self.refuse(env, &Refused { status, why, outcome: Outcome::Refused });
        }
        let authentication =
            if self.redirects == 0 { Authentication::New } else { Authentication::Redirected };
        self.route(env, plan, site_index, head, authentication);
    }

    /// Finds the route of a request, which its guards let in or not, and goes on there.
    fn route(
        &mut self,
        env: &mut Env<'_>,
        plan: &Arc<Plan>,
        site_index: usize,
        head: &RequestHead<'_>,
        authentication: Authentication<'_>,
    ) {
        let view = self.view(env.client, head);
        let site = &plan.sites()[site_index];
        let (route, refused) = match site.route(&view, &mut env.ctx.path) {
            Ok(route) => (route, None),
            Err(refusal) => (None, Some(refusal)),
        };
        let is_open = |index: &usize| !site.routes[*index].matcher.is_internal() || self.rewrites.count() > 0;
        let index = RouteIndex { site: site_index, route: route.filter(is_open) };
        let mut routed = Routed::of(plan, index, head);
        routed.refused = refused;
        let preflight = routed.cors.filter(|_| refused.is_none()).and_then(|cors| cors.preflight(head));
        if let Some(guards) = routed.guards {
            let now_ms = env.ctx.clock.now_ms();
            let access_request = AccessRequest { view, is_preflight: preflight.is_some(), now_ms };
            match guarded::judge(guards, access_request, authentication) {
                Ok(None) => {}
                Ok(user) => Arc::make_mut(self.record.identity.get_or_insert_default()).user = user,
                Err(Rejection::Refusal(page)) => {
                    return self.answer(env, plan, &routed, head, routed.rules.page(page));
                }
                Err(Rejection::Verification(verification)) => {
                    self.state = State::Finding(Box::new(Finding {
                        plan: Arc::clone(plan),
                        index: RouteIndex { site: site_index, route: None },
                        head: head.keep(),
                        progress: Progress::ToDo(Job::Verify(env.stream, Box::new(verification))),
                    }));
                    return;
                }
            }
        }
        // Here, and nowhere else: its guards have not asked it for a password.
        if let Some(preflight) = preflight {
            let lines = preflight.lines();
            return self.answer(env, plan, &routed, head, routed.rules.page(Page::preflight(&lines)));
        }
        match routed.route.map(|route| &route.action) {
            Some(Action::Rewrite(to)) => self.rewrite(env, plan, &routed, to, head),
            _ => self.go_on(env, plan, &routed, head, None),
        }
    }

    /// Goes on as if the client had asked for another target, of which only logs and applications (`REQUEST_URI`) see that
    /// it has not.
    fn rewrite(
        &mut self,
        env: &mut Env<'_>,
        plan: &Arc<Plan>,
        routed: &Routed<'_>,
        to: &Template,
        head: &RequestHead<'_>,
    ) {
        let (Some(route), Some(route_index)) = (routed.route, routed.index.route) else { return };
        let (path, query) = to.expand_target(&template::RequestParts::of(head, &route.matcher));
        self.rewrites.note(route_index);
        if self.rewrites.count() > REWRITES_MAX {
            env.ctx.warn(format_args!(
                "site {}: a request is rewritten in a loop, at last to {path} by the route {}",
                routed.site.name, route.matcher
            ));
            return self.answer_with_status(env, plan, routed, head, Status::INTERNAL_SERVER_ERROR);
        }
        if path.len() + query.as_deref().map_or(0, str::len) >= plan.limits.head.target_bytes_max {
            return self.answer_with_status(env, plan, routed, head, Status::URI_TOO_LONG);
        }
        let rewritten = head.with_target(path.as_bytes(), query.as_deref().map(str::as_bytes));
        let limit = routed.guards.and_then(|guards| guards.rate_limit.as_ref());
        let authentication = match self.redirects {
            0 => Authentication::Rewritten { counted: limit.map(|limit| limit.scope.as_str()) },
            _ => Authentication::Redirected,
        };
        self.route(env, plan, routed.index.site, &rewritten, authentication);
    }

    /// Whose turn its jobs take.
    pub(crate) fn client(&self, client: &Transport) -> Option<ClientKey> {
        self.address(client).map(|address| ClientKey::of(address.ip()))
    }

    /// The request, as conditions see it.
    fn view<'h>(&self, client: &Transport, head: &'h RequestHead<'h>) -> RequestView<'h> {
        let address = self.address(client).map(|address| address.ip());
        RequestView { head, address, has_certificate: client.has_certificate() }
    }

    /// The client's address: that of the connection, or what a trusted proxy says; `None`: a Unix socket.
    fn address(&self, client: &Transport) -> Option<SocketAddr> {
        self.record.identity.as_ref().and_then(|identity| identity.address).or_else(|| client.peer())
    }

    /// Answers, with the result of a job if one ran.
    fn go_on(
        &mut self,
        env: &mut Env<'_>,
        plan: &Arc<Plan>,
        routed: &Routed<'_>,
        head: &RequestHead<'_>,
        found: Option<Found>,
    ) {
        if self.may_fetch && found.is_none() && self.redirects == 0 && self.rewrites.count() == 0 {
            match fetched::supply(env.ctx, plan, routed, head, self.client(env.client)) {
                FileSupply::Own => {}
                FileSupply::Disk => self.reading_since_us = Some(env.ctx.clock.exact_us()),
                FileSupply::Home(fetch) => return self.fetch(env, plan, routed, head, fetch),
            }
        }
        self.is_hit = found.is_none() && fetched::is_hit(env.ctx, plan, routed, head);
        let source = routed.source(env.ctx, env.stream, head, self.protocol.is_some(), found);
        if let Ok(Source::Found(Found::File(stored))) = &source
            && let Some(since_us) = self.reading_since_us.take().filter(|_| stored.in_memory())
        {
            fetched::note_read(env.ctx, plan, since_us);
        }
        if let Some(counted) = env.ctx.counted.take() {
            self.record.counted = Some(counted);
        }
        let source = source.and_then(|source| match source {
            Source::Found(Found::File(stored)) => coded_file::coded(env.ctx, env.stream, head, stored)
                .map(|stored| Source::Found(Found::File(stored))),
            other => Ok(other),
        });
        let source = match source {
            Ok(Source::Elsewhere(delegate, program)) => {
                let from = (routed, &self.rewrites);
                let view = self.view(env.client, head);
                let ask = match cached::look(env, plan, from, &view, delegate, &mut self.record) {
                    Looked::Ask(ask) => ask,
                    Looked::Answer(response, rules) => return self.send(env, &rules, Some(head), response),
                };
                let asked = RequestDetails { program, protocol: self.protocol.take(), ask, ..self.details() };
                let delegated = Delegated::new(env, plan, routed.index, head, delegate, asked);
                self.state = State::Delegated(Box::new(delegated));
                return;
            }
            Ok(Source::Found(Found::Missing)) if let Some(otherwise) = routed.otherwise() => {
                return self.go_elsewhere(env, plan, routed, otherwise, head);
            }
            Ok(source) => source,
            Err(job) => {
                self.state = State::Finding(Box::new(Finding {
                    plan: Arc::clone(plan),
                    index: routed.index,
                    head: head.keep(),
                    progress: Progress::ToDo(job),
                }));
                return;
            }
        };
        if routed.is_unanswered() && matches!(source, Source::Page(None)) {
            return self.leave_unanswered(env);
        }
        let response = routed.respond(head, source, &self.facts(env.client, head, routed.rules.matcher));
        self.answer(env, plan, routed, head, response);
    }

    /// What is known of the request for what answers it elsewhere.
    fn details(&self) -> RequestDetails {
        RequestDetails {
            identity: self.record.identity.clone(),
            mark: self.record.mark.clone(),
            notes: AnswerNotes { cache: self.record.cache, ..AnswerNotes::default() },
            ..RequestDetails::default()
        }
    }

    /// Has the home of the file answer.
    fn fetch(
        &mut self,
        env: &mut Env<'_>,
        plan: &Arc<Plan>,
        routed: &Routed<'_>,
        head: &RequestHead<'_>,
        fetch: Box<Fetch>,
    ) {
        let delegate = Arc::clone(&fetch.fetching().delegate);
        let asked = RequestDetails { fetch: Some(fetch), ..self.details() };
        let delegated = Delegated::new(env, plan, routed.index, head, &delegate, asked);
        self.state = State::Delegated(Box::new(delegated));
    }

    /// Answers from here what its home has not answered.
    fn answer_here(&mut self, env: &mut Env<'_>) {
        let State::Delegated(delegated) = std::mem::replace(&mut self.state, State::Answered) else { return };
        let (plan, index, head) = delegated.into_request();
        let head = head.get();
        self.may_fetch = false;
        self.go_on(env, &plan, &Routed::of(&plan, index, &head), &head, None);
    }

    /// Ends the connection, or the stream, in place of an answer.
    fn leave_unanswered(&mut self, env: &mut Env<'_>) {
        env.reply.refuse();
        env.reply.cut();
        self.record.begin(&Ready { outcome: Outcome::Refused, ..Status::new(UNANSWERED).into() });
        self.record.close();
        self.state = State::Answered;
    }

    /// Goes on where a folder has nothing for the request.
    fn go_elsewhere(
        &mut self,
        env: &mut Env<'_>,
        plan: &Arc<Plan>,
        routed: &Routed<'_>,
        otherwise: &Otherwise,
        head: &RequestHead<'_>,
    ) {
        let Some(route) = routed.route else { return };
        let status = match otherwise {
            Otherwise::Status(status) => Status::new(*status),
            // This very target is what is missing.
            Otherwise::Rewrite(to)
                if to.expand_target(&template::RequestParts::of(head, &route.matcher)).0.as_bytes()
                    == head.path =>
            {
                Status::NOT_FOUND
            }
            Otherwise::Rewrite(to) => return self.rewrite(env, plan, routed, to, head),
        };
        self.answer_with_status(env, plan, routed, head, status);
    }

    fn answer_with_status(
        &mut self,
        env: &mut Env<'_>,
        plan: &Plan,
        routed: &Routed<'_>,
        head: &RequestHead<'_>,
        status: Status,
    ) {
        self.answer(env, plan, routed, head, routed.respond(head, Source::Status(status), &()));
    }

    /// Gives an answer that does not depend on the body: reads what has arrived of it, and waits for nothing.
    fn answer(
        &mut self,
        env: &mut Env<'_>,
        plan: &Plan,
        routed: &Routed<'_>,
        head: &RequestHead<'_>,
        response: Response,
    ) {
        let of_route = routed.guards.and_then(|guards| guards.body_bytes_max);
        let response = match env.reply.ignore_body(of_route.unwrap_or(plan.limits.body_bytes_max)) {
            Ok(false) => response,
            Ok(true) => body_refused(&routed.rules, env.ctx, None),
            Err(refusal) => return self.refuse(env, &Refused::by(refusal, &refusal.to_string())),
        };
        self.send(env, &routed.rules, Some(head), response);
    }

    /// Finishes a response.
    fn send(
        &mut self,
        env: &mut Env<'_>,
        rules: &Rules<'_>,
        head: Option<&RequestHead<'_>>,
        response: Response,
    ) {
        let head_with_variables = head.filter(|_| rules.has_variables());
        let facts = head_with_variables.map(|head| self.facts(env.client, head, rules.matcher));
        let mark = self.record.mark.as_deref();
        let rules = Rules { mark, variables: &facts, was_in_memory: self.is_hit, ..*rules };
        let ready = baton_response::finish(response, &rules, head, &mut env.ctx.supplies(), &mut env.reply);
        self.finish(env, ready);
    }

    /// What variables stand for in an answer of the server itself.
    fn facts<'f>(
        &'f self,
        client: &'f Transport,
        head: &'f RequestHead<'f>,
        matcher: Option<&'f Matcher>,
    ) -> RequestFacts<'f> {
        RequestFacts {
            head,
            matcher,
            client: self.address(client).map(|address| address.ip()),
            is_https: client.is_https(),
            tls: client.tls(),
            request_id: self.record.mark.as_deref().and_then(Mark::request_id),
            answer: AnswerFacts { cache: self.record.cache, ..AnswerFacts::default() },
        }
    }

    /// The response is in the send queue, or as much of it as was coded so far.
    fn finish(&mut self, env: &mut Env<'_>, ready: Ready) {
        self.record.begin(&ready);
        self.record.note_head(&mut env.ctx.log);
        env.trial = ready.trial;
        self.state = match ready.coder {
            Some(coder) => State::Coding(coder),
            None => {
                self.record.close();
                State::Answered
            }
        };
    }

    /// Codes the next part of a response that is there as a whole.
    fn code_on(&mut self, env: &mut Env<'_>) -> Wants {
        let State::Coding(coder) = &mut self.state else { return Wants::Nothing };
        if coder.is_reading() {
            return Wants::JobUnderWay;
        }
        if coder.takes_turn() {
            return Wants::Turn;
        }
        if let Some(slice) = coder.to_read() {
            return Wants::Job(Job::Read(self.stream, slice));
        }
        let is_last = coder.can_finish();
        let tally = &mut env.ctx.tally;
        let coded = if is_last { coder.finish(tally) } else { coder.code(tally) };
        let is_sent = coded.map(|coded| env.reply.send_part(coded)).is_ok();
        if is_sent && !is_last {
            return Wants::Turn;
        }
        if !(is_sent && env.reply.end(None).is_ok()) {
            env.reply.cut();
            self.record.fail(Outcome::Failed);
        }
        self.record.close();
        self.state = State::Answered;
        Wants::Nothing
    }

    /// Whether the response is in the send queue, as far as it will come.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.state, State::Answered)
    }

    /// Whether a job or an application works on it.
    pub(crate) fn is_under_way(&self) -> bool {
        match &self.state {
            State::Answered => false,
            State::Coding(_) => true,
            State::Finding(finding) => matches!(finding.progress, Progress::UnderWay),
            State::Delegated(delegated) => delegated.is_under_way(),
            State::Tunnel(tunnel) => tunnel.is_with_gateway(),
        }
    }

    /// Whether the request is with an application.
    pub(crate) fn is_delegated(&self) -> bool {
        match &self.state {
            State::Delegated(delegated) => delegated.is_with_application(),
            State::Tunnel(tunnel) => tunnel.is_with_gateway(),
            State::Answered | State::Coding(_) | State::Finding(_) => false,
        }
    }

    /// Whether a response is being coded, and its next part is there.
    pub(crate) fn is_coding(&self) -> bool {
        match &self.state {
            State::Coding(_) => true,
            State::Delegated(delegated) => delegated.is_coding(),
            State::Answered | State::Finding(_) | State::Tunnel(_) => false,
        }
    }

    /// The request as it came, with its body. `None`: that is not known any more.
    pub(crate) fn text(&self, body: &Aggregate) -> Option<Vec<u8>> {
        match &self.state {
            State::Delegated(delegated) => delegated.text(body),
            State::Answered | State::Coding(_) | State::Finding(_) | State::Tunnel(_) => None,
        }
    }

    /// How long its client may pause within the body, in milliseconds, if that is said of the request.
    pub(crate) fn body_timeout_ms(&self) -> Option<u64> {
        match &self.state {
            State::Delegated(delegated) => delegated.body_timeout_ms(),
            State::Answered | State::Coding(_) | State::Finding(_) | State::Tunnel(_) => None,
        }
    }

    /// Where the body is kept.
    pub(crate) fn upload(&mut self) -> Option<&mut Upload> {
        match &mut self.state {
            State::Delegated(delegated) => delegated.upload(),
            _ => None,
        }
    }

    /// Room for bytes of the body where the application can read them, if it does.
    pub(crate) fn chunk(&self) -> Option<Chunk> {
        match &self.state {
            State::Delegated(delegated) => delegated.chunk(),
            _ => None,
        }
    }

    /// The body is complete as far as it is needed, or refused.
    pub(crate) fn handle_body(&mut self, env: &mut Env<'_>, read: Result<BodyRead, Refusal>) {
        let State::Delegated(delegated) = &mut self.state else { return };
        match read {
            Ok(BodyRead::TooLarge) => {
                let ready = delegated.body_refused(env);
                self.finish(env, ready);
            }
            Ok(read) => delegated.handle_body(read == BodyRead::Complete),
            Err(refusal) => self.refuse(env, &Refused::by(refusal, &refusal.to_string())),
        }
    }

    /// The job that was [wanted](Wants::Job) is done.
    pub(crate) fn handle_job(&mut self, learned: Learned) {
        match (&mut self.state, learned) {
            (State::Finding(finding), learned) => finding.progress = Progress::Done(learned),
            (State::Delegated(delegated), Learned::Found(found)) => delegated.handle_found(found),
            (State::Delegated(delegated), Learned::Coded(coded)) => delegated.handle_coded(coded),
            (State::Delegated(delegated), Learned::Read(bytes)) => delegated.handle_read(bytes),
            (State::Coding(coder), Learned::Read(bytes)) => coder.handle_read(bytes),
            _ => {}
        }
    }

    /// All that was in the send queue has been sent.
    pub(crate) fn handle_room(&mut self) {
        match &mut self.state {
            State::Delegated(delegated) => delegated.handle_room(),
            State::Tunnel(tunnel) => tunnel.handle_room(),
            State::Answered | State::Coding(_) | State::Finding(_) => {}
        }
    }

    /// The gateway's next events; none: nothing more for now. Returns the outcome if the client is gone.
    pub(crate) fn handle_response_events(
        &mut self,
        env: &mut Env<'_>,
        events: ResponseEvents,
    ) -> Option<Outcome> {
        if events.is_empty() {
            return self.handle_response_event(env, None);
        }
        // What comes behind the end of an answer that was cut is dropped.
        events.into_iter().find_map(|event| self.handle_response_event(env, Some(event)))
    }

    fn handle_response_event(&mut self, env: &mut Env<'_>, event: Option<ResponseEvent>) -> Option<Outcome> {
        let reaction = match &mut self.state {
            State::Delegated(delegated) => delegated.handle_response_event(env, event, &mut self.record),
            State::Tunnel(tunnel) => tunnel.handle_response_event(env, event, &mut self.record),
            State::Answered | State::Coding(_) | State::Finding(_) => return None,
        };
        match (reaction, &self.state) {
            (Reaction::Answered, _) => self.state = State::Answered,
            (Reaction::Ready(ready), _) => self.finish(env, ready),
            (Reaction::NoClient(outcome), _) => return Some(outcome),
            (Reaction::Tunnel(shown), _) => self.state = State::Tunnel(Box::new(Tunnel::new(shown))),
            (Reaction::Redirect(target), State::Delegated(delegated)) => {
                match delegated.redirected(env, &target, self.redirects + 1) {
                    Ok(head) => {
                        self.redirects += 1;
                        self.rewrites = Rewrites::default();
                        let plan = Arc::clone(&env.ctx.plan);
                        self.begin(env, &plan, &head.get());
                    }
                    Err(ready) => self.finish(env, ready),
                }
            }
            (Reaction::Here, _) => self.answer_here(env),
            (Reaction::More | Reaction::Redirect(_), _) => {}
        }
        None
    }

    /// Advances the request, once every response in front of its own has been sent.
    pub(crate) fn poll(&mut self, env: &mut Env<'_>) -> Wants {
        loop {
            match &mut self.state {
                State::Answered => return Wants::Nothing,
                State::Coding(_) => return self.code_on(env),
                State::Tunnel(tunnel) => return tunnel.poll(),
                State::Finding(finding) => match std::mem::replace(&mut finding.progress, Progress::UnderWay)
                {
                    Progress::ToDo(job) => return Wants::Job(job),
                    // Nothing is read before it is found.
                    Progress::UnderWay | Progress::Done(Learned::Read(_)) => return Wants::JobUnderWay,
                    Progress::Done(Learned::Found(found)) => self.handle_done(env, found),
                    Progress::Done(Learned::Coded(coded)) => self.answer_coded(env, coded),
                    Progress::Done(Learned::Verified(user)) => self.handle_verified(env, user),
                },
                State::Delegated(delegated) if delegated.is_for_here() => self.answer_here(env),
                State::Delegated(delegated) => match delegated.poll(env, &mut self.record) {
                    Ok(Wants::Nothing) => self.state = State::Answered,
                    Ok(wants) => return wants,
                    Err(ready) => self.finish(env, ready),
                },
            }
        }
    }

    fn handle_verified(&mut self, env: &mut Env<'_>, user: Option<Box<str>>) {
        let State::Finding(finding) = std::mem::replace(&mut self.state, State::Answered) else { return };
        let Finding { plan, index, head, .. } = *finding;
        self.route(env, &plan, index.site, &head.get(), Authentication::Verified(user));
    }

    fn answer_coded(&mut self, env: &mut Env<'_>, coded: CodedFile) {
        let State::Finding(finding) = std::mem::replace(&mut self.state, State::Answered) else { return };
        let Finding { plan, index, head, .. } = *finding;
        let stored = coded_file::take(env.ctx, coded);
        let head = head.get();
        let routed = Routed::of(&plan, index, &head);
        let response = routed.respond(&head, Source::Found(Found::File(stored)), &());
        self.answer(env, &plan, &routed, &head, response);
    }

    fn handle_done(&mut self, env: &mut Env<'_>, found: Found) {
        let State::Finding(finding) = std::mem::replace(&mut self.state, State::Answered) else { return };
        let Finding { plan, index, head, .. } = *finding;
        let head = head.get();
        let routed = Routed::of(&plan, index, &head);
        if let Some(Action::Files(tree) | Action::Lent(tree, _) | Action::Scripts(tree, _)) =
            routed.route.map(|route| &route.action)
        {
            tell_hidden_link(env.ctx, tree);
        }
        self.go_on(env, &plan, &routed, &head, Some(found));
    }
}
