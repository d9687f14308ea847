//! Answers in which an application names files, or sends the request elsewhere within the site: the application has
//! ended, the rest is the server's.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, Slice};
use baton_content::{Found, Stored};
use baton_fcgi::cgi::{CgiHead, Instruction};
use baton_fcgi::zero_copy::NameMap;
use baton_http::{RequestHead, Status};

use super::delegated::Delegated;
use super::{Need, Session, State};
use crate::context::Context;
use crate::exchange::{NamedFile, Ready, answer_with_body, answer_with_file, failure_page, range};
use crate::job::Job;
use crate::log::{Outcome, RequestText};
use crate::metrics::Metric;
use crate::plan::Delegate;
use crate::ways::Trial;

/// An answer that is put together from files.
#[derive(Debug)]
pub(super) struct Naming {
    pub(super) delegated: Box<Delegated>,
    head: Box<CgiHead>,
    work: Work,
    /// What a job found.
    pub(super) found: Option<Found>,
}

/// What is put together.
#[derive(Debug)]
enum Work {
    /// One file, whole or in part.
    File(NamedFile),
    Body(Gathering),
}

/// A body that is put together.
#[derive(Debug)]
struct Gathering {
    /// What is left of it.
    parts: VecDeque<Part>,
    /// What there is of it.
    body: Aggregate,
    /// Whether it is one file and nothing else.
    is_one_file: bool,
    /// What is to be measured when it is sent.
    trial: Option<Trial>,
}

#[derive(Debug)]
enum Part {
    Text(Slice),
    File(NamedFile),
}

/// A request that was sent elsewhere within the site.
#[derive(Debug)]
pub(super) struct Redirected {
    /// What the log will say: what the client asked for.
    pub(super) text: Option<RequestText>,
    pub(super) times: u32,
}

impl Session {
    /// Does what the head of an answer says, now that the application has ended. `text`: the body, if
    /// it is not too long.
    pub(super) fn follow_instruction(
        &mut self,
        mut delegated: Box<Delegated>,
        head: Box<CgiHead>,
        text: Option<Vec<u8>>,
        ctx: &mut Context,
    ) {
        let delegate = &delegated.origin.delegate;
        let work = match head.instruction() {
            Instruction::LocalRedirect(target) => return self.redirect_locally(delegated, target, ctx),
            Instruction::SendFile(path) => NamedFile::by_path(delegate, path).map(Work::File),
            Instruction::AccelRedirect(path) => NamedFile::by_location(delegate, path).map(Work::File),
            Instruction::ZeroCopy(map) => text
                .and_then(|text| parts(delegate, text, map))
                .map(|parts| Work::Body(Gathering::new(parts))),
            Instruction::None => None,
        };
        match work {
            Some(work) => self.state = State::Naming(Box::new(Naming { delegated, head, work, found: None })),
            None => self.refuse_answer(&mut delegated, Status::BAD_GATEWAY, NO_SUCH_FILE, ctx),
        }
    }

    /// Goes on with an answer that is put together from files; `None`: done, the outlet and the state tell how.
    pub(super) fn name_files(&mut self, mut naming: Box<Naming>, ctx: &mut Context) -> Option<Need> {
        let found = naming.found.take();
        let needs = match &mut naming.work {
            Work::File(file) => match look(file, found, ctx) {
                Ok(Some(stored)) => {
                    self.answer_with_named_file(&mut naming, &stored, ctx);
                    return None;
                }
                Ok(None) => {
                    self.refuse_answer(&mut naming.delegated, Status::NOT_FOUND, NO_SUCH_FILE, ctx);
                    return None;
                }
                Err(job) => job,
            },
            Work::Body(gathering) => match gathering.go_on(found, ctx) {
                Ok(true) => {
                    let (start, body) = (self.outlet.end(), std::mem::take(&mut gathering.body));
                    let (origin, trial) = (&naming.delegated.origin, gathering.trial);
                    let mut reply = self.respond(ctx);
                    let ready = answer_with_body(ctx, origin, &naming.head, body, trial, &mut reply);
                    self.finish_named(&mut naming.delegated, &ready, start, ctx);
                    return None;
                }
                Ok(false) => {
                    self.refuse_answer(&mut naming.delegated, Status::BAD_GATEWAY, NO_SUCH_FILE, ctx);
                    return None;
                }
                Err(job) => job,
            },
        };
        self.state = State::Naming(naming);
        ctx.tally.add(Metric::Jobs, 1);
        Some(Need::Job(needs))
    }

    fn answer_with_named_file(&mut self, naming: &mut Naming, stored: &Stored, ctx: &mut Context) {
        let start = self.outlet.end();
        let origin = &naming.delegated.origin;
        let mut reply = self.respond(ctx);
        let ready = match RequestHead::parse(&origin.head, &origin.plan.limits.head) {
            Ok(request) => answer_with_file(ctx, origin, &naming.head, &request, stored, &mut reply),
            // It was parsed before.
            Err(_) => failure_page(ctx, origin, Status::INTERNAL_SERVER_ERROR, &mut reply),
        };
        self.finish_named(&mut naming.delegated, &ready, start, ctx);
    }

    fn finish_named(&mut self, delegated: &mut Delegated, ready: &Ready, start: u64, ctx: &mut Context) {
        self.begin_delegated_response(delegated, ready, start, ctx);
        self.go_on_after_application();
    }

    /// Answers with an error page, and says in the error log what the application did.
    fn refuse_answer(&mut self, delegated: &mut Delegated, status: Status, what: &str, ctx: &mut Context) {
        delegated.origin.remark(ctx, format_args!("{what}"));
        let start = self.outlet.end();
        let mut reply = self.respond(ctx);
        let page = failure_page(ctx, &delegated.origin, status, &mut reply);
        let ready = Ready { outcome: Outcome::ApplicationFailed, ..page };
        self.finish_named(delegated, &ready, start, ctx);
    }

    /// Answers as if the client had asked for something else (RFC 3875, section 6.2.2): that request takes the place
    /// of the one that was given away, and the usual way.
    fn redirect_locally(&mut self, mut delegated: Box<Delegated>, target: &[u8], ctx: &mut Context) {
        let times = delegated.redirected + 1;
        if times > REDIRECTS_MAX {
            let what = format!(
                "it redirects within the server in a loop: this is redirect {times} of one request, to {}",
                String::from_utf8_lossy(&target[..target.len().min(SHOWN_BYTES_MAX)])
            );
            return self.refuse_answer(&mut delegated, Status::BAD_GATEWAY, &what, ctx);
        }
        let keep_alive = self.protocol.goes_on();
        let Some(request) = delegated.origin.redirected_to(target, keep_alive) else {
            let what = "it redirects within the server to a path with blanks or bytes beyond ASCII";
            return self.refuse_answer(&mut delegated, Status::BAD_GATEWAY, what, ctx);
        };
        self.redirected = Some(Box::new(Redirected { text: delegated.take_text(), times }));
        self.inbox.splice(0..0, request);
        self.inbox_untried = true;
        self.protocol.handle_given_back();
        self.state = State::Open;
    }
}

/// The file of a name, if it is one; or what has to be done to find out.
fn look(file: &NamedFile, found: Option<Found>, ctx: &Context) -> Result<Option<Arc<Stored>>, Job> {
    match found.map_or_else(|| file.find(ctx), Ok)? {
        Found::File(stored) => Ok(Some(stored)),
        _ => Ok(None),
    }
}

impl Gathering {
    fn new(parts: VecDeque<Part>) -> Self {
        let is_one_file = parts.len() == 1 && matches!(parts.front(), Some(Part::File(_)));
        Self { parts, body: Aggregate::default(), is_one_file, trial: None }
    }

    /// Goes on until a part has to be waited for; false: one is not there.
    fn go_on(&mut self, mut found: Option<Found>, ctx: &mut Context) -> Result<bool, Job> {
        while let Some(part) = self.parts.front() {
            match part {
                Part::Text(text) => self.body.push(text.clone()),
                Part::File(file) => match look(file, found.take(), ctx)? {
                    Some(stored) if stored.is_empty() => {}
                    Some(stored) => {
                        let (piece, trial) = range(ctx, &stored, 0, stored.len());
                        self.body.push(piece);
                        self.trial = trial.filter(|_| self.is_one_file);
                    }
                    None => return Ok(false),
                },
            }
            self.parts.pop_front();
        }
        Ok(true)
    }
}

/// Takes a body apart: text, and files that are named between. `None`: something is named that may not be.
fn parts(delegate: &Delegate, text: Vec<u8>, map: &NameMap) -> Option<VecDeque<Part>> {
    if !map.fits(text.len() as u64) {
        return None;
    }
    let text = Buffer::new(text);
    let (mut parts, mut at) = (VecDeque::new(), 0);
    for name in map.names() {
        let (start, end) = (usize::try_from(name.offset).ok()?, usize::try_from(name.end()).ok()?);
        if at < start {
            parts.push_back(Part::Text(text.slice(at, start)));
        }
        parts.push_back(Part::File(NamedFile::by_path(delegate, &text[start..end])?));
        at = end;
    }
    if at < text.len() {
        parts.push_back(Part::Text(text.slice(at, text.len())));
    }
    Some(parts)
}

const NO_SUCH_FILE: &str =
    "it names a file that is not there, or in no folder of `named_files` or `internal_files`";

/// Bytes of a location in a remark.
const SHOWN_BYTES_MAX: usize = 200;

/// Requests that one request may turn into: more are a loop.
const REDIRECTS_MAX: u32 = 10;
