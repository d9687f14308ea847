//! A request that an application answers: what a session does from the moment it has given the request away.
//!
//! ```text
//!            ┌─ Answered: the application wrote to the client itself ─────────────────────────► answered
//!            │
//!   Waiting ─┼─ Rest ─► Wire ── Body … ── End ───────────────────────────────────────────────► answered
//!            │
//!            ├─ Head ─► Held ── all of it is there, or nothing more for now ─► Sending ── End ─► answered
//!            │
//!            └─ Failed: an error page. Later on: what there is, and a cut, so that nothing looks complete
//! ```
//!
//! Until it hears of it, the session neither reads from nor writes to its socket, since the application may have it; but for
//! the rest of a request's body (see `feeding`).

use baton_buf::{Aggregate, Piece};
use baton_fcgi::cgi::{CgiHead, Instruction};
use baton_fcgi::{AnswerOutcome, Answered, Rest};
use baton_gateway::{Failure, News, Why};
use baton_http::Status;

use super::under_way::Elsewhere;
use super::{Session, State};
use crate::context::Context;
use crate::exchange::{Origin, Ready, failure_page, response_fields};
use crate::log::{Outcome, RequestText};
use crate::metrics::Metric;
use crate::protocol::LastClose;

/// A request in an application's hands.
#[derive(Debug)]
pub(super) struct Delegated {
    pub(super) origin: Origin,
    text: Option<RequestText>,
    started_ms: u64,
    /// The application may have the client's socket.
    pub(super) handed_over: bool,
    progress: Progress,
    /// There was nothing new when the session asked last.
    pub(super) quiet: bool,
    /// How often the request was sent elsewhere within the site.
    pub(super) redirected: u32,
}

/// How far the answer is.
#[derive(Debug)]
enum Progress {
    Waiting,
    /// The head is known, and perhaps some of the body. They wait for each other, to leave together, and for the end,
    /// which tells the length.
    Held {
        head: Box<CgiHead>,
        body: Aggregate,
    },
    /// The head is something for the server to do, when all of the body is there.
    Collecting {
        head: Box<CgiHead>,
        /// `None`: it is too long to be text.
        text: Option<Vec<u8>>,
    },
    /// The head has been sent, by the server or by the application itself.
    Sending,
}

impl Delegated {
    pub(super) fn new(origin: Origin, text: Option<RequestText>, redirected: u32, now_ms: u64) -> Self {
        Self {
            origin,
            text,
            started_ms: now_ms,
            handed_over: false,
            progress: Progress::Waiting,
            quiet: false,
            redirected,
        }
    }

    pub(super) fn take_text(&mut self) -> Option<RequestText> {
        self.text.take()
    }

    /// What the log will say of the request, if nothing of its answer is on its way yet.
    pub(super) fn take_unanswered(&mut self) -> Option<Elsewhere> {
        self.nothing_sent().then(|| self.elsewhere())
    }

    fn take_head(&mut self, head: Box<CgiHead>) {
        self.handed_over = false;
        self.progress = match head.instruction() {
            Instruction::None => Progress::Held { head, body: Aggregate::default() },
            // The head has the status for it already: 302.
            Instruction::LocalRedirect(_) if !self.origin.delegate.local_redirects => {
                Progress::Held { head, body: Aggregate::default() }
            }
            _ => Progress::Collecting { head, text: Some(Vec::new()) },
        };
    }

    /// Passes on what the application has to say to whoever runs it.
    fn tell(&self, lines: &[u8], ctx: &Context) {
        for line in String::from_utf8_lossy(lines).lines().filter(|line| !line.is_empty()) {
            self.origin.remark(ctx, format_args!("{line}"));
        }
    }

    fn nothing_sent(&self) -> bool {
        !matches!(self.progress, Progress::Sending)
    }

    fn elsewhere(&mut self) -> Elsewhere {
        Elsewhere { text: self.text.take(), site: self.origin.site_index, started_ms: self.started_ms }
    }
}

impl Session {
    /// News of the answer; `None`: nothing more for now.
    pub(crate) fn handle_news(&mut self, news: Option<News>, ctx: &mut Context) {
        let State::Delegated(mut delegated) = std::mem::replace(&mut self.state, State::Open) else { return };
        delegated.quiet = news.is_none();
        // Whether the application was passed the socket is known now.
        if self.transport.was_passed() && !delegated.origin.delegate.keep_passed {
            self.protocol.close_behind();
        }
        match news {
            None => self.begin_held(&mut delegated, None, ctx),
            Some(News::Head(head)) => delegated.take_head(Box::new(head)),
            Some(News::Body(body)) => self.take_body(&mut delegated, body, ctx),
            Some(News::Rest(rest)) => self.take_rest(&mut delegated, rest, ctx),
            Some(News::Stderr(lines)) => delegated.tell(&lines, ctx),
            Some(News::End { .. }) => return self.end_delegated(delegated, ctx),
            Some(News::Answered(answered)) => return self.answered_elsewhere(&mut delegated, answered, ctx),
            Some(News::Failed(failure)) => return self.fail_delegated(&mut delegated, &failure, ctx),
        }
        self.state = State::Delegated(delegated);
    }

    fn take_body(&mut self, delegated: &mut Delegated, body: Aggregate, ctx: &mut Context) {
        match &mut delegated.progress {
            Progress::Held { body: held, .. } => {
                held.append(body);
                if held.len() > HELD_BYTES_MAX {
                    self.begin_held(delegated, None, ctx);
                }
            }
            Progress::Sending => self.respond(ctx).send_part(body),
            Progress::Collecting { head, text } => {
                if matches!(head.instruction(), Instruction::ZeroCopy(_)) {
                    let room = |text: &Vec<u8>| text.len() as u64 + body.len() <= TEXT_BYTES_MAX;
                    *text = text.take().filter(room).and_then(|text| with_text(text, &body));
                }
            }
            Progress::Waiting => debug_assert!(false, "a body before its head"),
        }
    }

    /// Puts the head that is held into the outlet, and what there is of the body. `whole`: that is all of it.
    fn begin_held(&mut self, delegated: &mut Delegated, whole: Option<u64>, ctx: &mut Context) {
        let progress = std::mem::replace(&mut delegated.progress, Progress::Waiting);
        let Progress::Held { head, body } = progress else {
            delegated.progress = progress;
            return;
        };
        let origin = &delegated.origin;
        let fields = response_fields(ctx, origin.plan.server_header, &origin.delegate);
        let status = Status::new(head.status());
        let start = self.outlet.end();
        let mut reply = self.protocol.respond(&mut self.outlet, ctx.draining);
        let head_bytes = reply.send_application_head(&mut ctx.heads, &head, whole, &fields);
        let ready = origin.ready(status, head_bytes);
        self.begin_delegated_response(delegated, &ready, start, ctx);
        self.open_response();
        self.respond(ctx).send_part(body);
        delegated.progress = Progress::Sending;
    }

    fn take_rest(&mut self, delegated: &mut Delegated, rest: Rest, ctx: &mut Context) {
        delegated.handed_over = false;
        self.note_sent_by_others(rest.head_sent, rest.body_sent, ctx);
        let ready = delegated.origin.ready(Status::new(rest.status), 0);
        self.begin_delegated_response(delegated, &ready, self.outlet.end(), ctx);
        self.open_response();
        self.note_sent_elsewhere(rest.body_sent);
        self.respond(ctx).resume(rest.may_go_on);
        delegated.progress = Progress::Sending;
    }

    fn end_delegated(&mut self, mut delegated: Box<Delegated>, ctx: &mut Context) {
        self.pass_unread_body(&delegated);
        if let Progress::Held { body, .. } = &delegated.progress {
            let whole = body.len();
            self.begin_held(&mut delegated, Some(whole), ctx);
        }
        let progress = std::mem::replace(&mut delegated.progress, Progress::Waiting);
        match progress {
            Progress::Collecting { head, text } => {
                return self.follow_instruction(delegated, head, text, ctx);
            }
            // All was said, and nothing of it was an answer.
            Progress::Waiting | Progress::Held { .. } => {
                let failure = Failure { why: Why::Ended, client_lost: false, must_end: false };
                return self.fail_delegated(&mut delegated, &failure, ctx);
            }
            Progress::Sending => {}
        }
        if self.respond(ctx).end().is_err() {
            delegated.origin.remark(ctx, format_args!("{TOO_SHORT}"));
            return self.cut_off(LastClose::Orderly, Outcome::ApplicationFailed, ctx);
        }
        self.close_response();
        self.log_sent(ctx);
        self.go_on_after_application();
    }

    /// The application has written its answer to the client's socket.
    fn answered_elsewhere(&mut self, delegated: &mut Delegated, answered: Answered, ctx: &mut Context) {
        self.note_sent_by_others(answered.head_bytes, answered.body_bytes, ctx);
        let outcome = match answered.outcome {
            AnswerOutcome::Complete if answered.complete => Outcome::Complete,
            AnswerOutcome::ClientGone => Outcome::ClientGone,
            AnswerOutcome::Complete | AnswerOutcome::ApplicationFailed => Outcome::ApplicationFailed,
        };
        let elsewhere = delegated.elsewhere();
        self.log_elsewhere(elsewhere, answered.status, answered.body_bytes, outcome, ctx);
        match outcome {
            Outcome::Complete => {
                if !answered.may_go_on || ctx.draining {
                    self.protocol.close_behind();
                }
                self.go_on_after_application();
            }
            Outcome::ClientGone => {
                self.end(outcome, ctx);
            }
            _ => {
                delegated.origin.remark(ctx, format_args!("{TOO_SHORT}"));
                // Unread requests would turn the end into a reset, which destroys what the client has not read.
                self.transport.handle_read_by_others();
                self.protocol.close_behind();
                self.go_on_after_application();
            }
        }
    }

    /// What an application says that it has sent, be it true or not.
    fn note_sent_by_others(&mut self, head_bytes: u64, body_bytes: u64, ctx: &mut Context) {
        let bytes = head_bytes.saturating_add(body_bytes);
        ctx.tally.add(Metric::BytesSent, bytes);
        self.transport.handle_sent_by_others(bytes);
    }

    /// There is no answer, or no more of it.
    fn fail_delegated(&mut self, delegated: &mut Delegated, failure: &Failure, ctx: &mut Context) {
        let nothing_sent = delegated.nothing_sent();
        let outcome = match failure.why {
            Why::ClientGone => Outcome::ClientGone,
            Why::BodyTimedOut => Outcome::TimedOut,
            _ => Outcome::ApplicationFailed,
        };
        if outcome == Outcome::ApplicationFailed {
            delegated.origin.remark(ctx, format_args!("{}", failure.why));
        }
        let status = Status::new(failure.why.status());
        if !nothing_sent || failure.client_lost || outcome == Outcome::ClientGone {
            if let Some(elsewhere) = delegated.take_unanswered() {
                self.log_elsewhere(elsewhere, status.code(), 0, outcome, ctx);
            }
            if nothing_sent || failure.client_lost || outcome == Outcome::ClientGone {
                self.end(outcome, ctx);
                return;
            }
            self.stop_feeding();
            return self.cut_off(self.protocol.close_that_shows_a_cut(), outcome, ctx);
        }
        self.pass_unread_body(delegated);
        if outcome == Outcome::TimedOut || failure.must_end {
            self.protocol.close_behind();
        }
        let start = self.outlet.end();
        let mut reply = self.respond(ctx);
        let mut ready = failure_page(ctx, &delegated.origin, status, &mut reply);
        ready.outcome = outcome;
        self.begin_delegated_response(delegated, &ready, start, ctx);
        self.go_on_after_application();
    }

    /// Takes note of a response to a request that was given away, and is as old as that.
    pub(super) fn begin_delegated_response(
        &mut self,
        delegated: &mut Delegated,
        ready: &Ready,
        start: u64,
        ctx: &Context,
    ) {
        self.trial = ready.trial.filter(|_| start == self.outlet.sent());
        self.begin_response(ready, start, delegated.take_text(), ctx);
        self.date_back_response(delegated.started_ms);
    }

    /// The rest of a response will not come. The client gets what there is of it, and then the end of the connection.
    fn cut_off(&mut self, close: LastClose, outcome: Outcome, ctx: &mut Context) {
        self.fail_response(outcome);
        self.log_sent(ctx);
        self.state = State::Ending(close.lingering(self.has_unread_input()));
    }

    /// What the application has left of the request's body is not wanted.
    fn pass_unread_body(&mut self, delegated: &Delegated) {
        // A request that is sent elsewhere within the site would be looked for behind it.
        let is_answered = !matches!(delegated.progress, Progress::Collecting { .. });
        let left = self.stop_feeding();
        self.protocol.pass_unread(left, is_answered);
    }

    pub(super) fn go_on_after_application(&mut self) {
        if self.protocol.goes_on() {
            self.state = State::Open;
            self.inbox_untried = !self.inbox.is_empty();
        } else {
            self.state = State::Ending(LastClose::Orderly.lingering(self.has_unread_input()));
        }
    }
}

/// Text and what follows it; `None`: it cannot be read.
fn with_text(mut text: Vec<u8>, body: &Aggregate) -> Option<Vec<u8>> {
    for piece in body.pieces() {
        match piece {
            Piece::Memory(slice) => text.extend_from_slice(slice),
            Piece::Shared(slice) => slice.copy_prefix_to(slice.len(), &mut text),
            Piece::File(slice) => {
                let start = text.len();
                text.resize(start + slice.len() as usize, 0);
                let read = rustix::io::pread(slice.file(), &mut text[start..], slice.offset());
                read.ok().filter(|&count| count as u64 == slice.len())?;
            }
        }
    }
    Some(text)
}

/// In the error log, by whichever transport the response came.
const TOO_SHORT: &str = "its response is shorter than its Content-Length";

/// Bytes of a body in which files are named.
const TEXT_BYTES_MAX: u64 = 4 << 20;

/// What of a body may be held back in the hope for its end.
const HELD_BYTES_MAX: u64 = 256 * 1024;
