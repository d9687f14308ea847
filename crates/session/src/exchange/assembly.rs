//! Responses that the server assembles from files that an application has named, after the application has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, FileSlice, Piece, Slice};
use baton_content::{Found, Stored};
use baton_fcgi::cgi::Instruction;
use baton_fcgi::zero_copy::NameMap;
use baton_http::origin::ResponseHead;
use baton_http::{Method, Status};
use baton_response::send_way::Trial;
use baton_response::{Author, Body, Ready, Reply, Response, range};
use baton_site::plan::Delegate;

use super::application::DelegatedRequest;
use super::coded_file;
use super::env::Env;
use super::x_sendfile::{NamedFile, file_response, may_be_coded};
use crate::context::Context;
use crate::job::{CodedFile, Job};
use crate::protocol::StreamId;

/// A response that is assembled from files.
#[derive(Debug)]
pub(super) struct Assembly {
    head: Box<ResponseHead>,
    work: Work,
    /// What a job found.
    found: Option<Found>,
    /// The form of the file that a job has made.
    coded: Option<CodedFile>,
}

/// What is assembled.
#[derive(Debug)]
enum Work {
    /// One file, whole or in part.
    File(NamedFile),
    /// A body of text and names of files, which is brought together first.
    Text(Text),
    Body(Composite),
}

/// A body in which files are named.
#[derive(Debug)]
struct Text {
    map: NameMap,
    /// What is there of it.
    bytes: Vec<u8>,
    rest: Aggregate,
    /// A part of it cannot be read.
    is_broken: bool,
}

/// A body of text and files.
#[derive(Debug)]
struct Composite {
    /// What is left of it.
    parts: VecDeque<Part>,
    /// What there is of it.
    body: Aggregate,
    /// Whether it is one file and nothing else.
    is_one_file: bool,
    /// The measurement to make when it is sent.
    trial: Option<Trial>,
}

#[derive(Debug)]
enum Part {
    Text(Slice),
    File(NamedFile),
}

impl Assembly {
    /// What the head of an application's answer asks for. `text`: the body, if it is wanted and not too long.
    ///
    /// # Errors
    /// What the application did wrong.
    pub(super) fn new(
        origin: &DelegatedRequest,
        head: Box<ResponseHead>,
        instruction: Instruction,
        text: Option<Aggregate>,
    ) -> Result<Self, &'static str> {
        let delegate = &origin.delegate;
        let work = match instruction {
            Instruction::SendFile(path) => NamedFile::by_path(delegate, &path).map(Work::File),
            Instruction::AccelRedirect(path) => NamedFile::by_location(delegate, &path).map(Work::File),
            Instruction::ZeroCopy(map) => {
                text.map(|rest| Work::Text(Text { map, bytes: Vec::new(), rest, is_broken: false }))
            }
            Instruction::LocalRedirect(_) | Instruction::None => None,
        };
        work.map(|work| Self { head, work, found: None, coded: None }).ok_or(NO_SUCH_FILE)
    }

    /// A job has found the file that was looked for.
    pub(super) fn handle_found(&mut self, found: Found) {
        self.found = Some(found);
    }

    /// A job has coded the file.
    pub(super) fn handle_coded(&mut self, coded: CodedFile) {
        self.coded = Some(coded);
    }

    /// A job has read the next part of the text; `None`: it could not.
    pub(super) fn handle_read(&mut self, bytes: Option<Slice>) {
        if let Work::Text(text) = &mut self.work {
            text.handle_read(bytes);
        }
    }

    /// Continues until a file needs a job, or answers.
    ///
    /// # Errors
    /// The answer has begun.
    pub(super) fn go_on(&mut self, env: &mut Env<'_>, origin: &DelegatedRequest) -> Result<Job, Ready> {
        match self.assemble(env, origin) {
            Err(job) => Ok(job),
            Ok(Ok((response, trial))) => {
                let is_sent = origin.head.get().method != Method::Head;
                let ready = origin.finish(env, response);
                let trial = ready.trial.or(trial).filter(|_| is_sent);
                Err(Ready { trial, ..ready })
            }
            Ok(Err(status)) => {
                let page = origin.refuse(env.ctx, status, NO_SUCH_FILE);
                Err(origin.finish(env, page))
            }
        }
    }

    /// The response, and the measurement to make of it; or the status for what cannot be assembled.
    fn assemble(
        &mut self,
        env: &mut Env<'_>,
        origin: &DelegatedRequest,
    ) -> Result<Result<(Response, Option<Trial>), Status>, Job> {
        let author = Author::of(&origin.delegate);
        let (found, coded) = (self.found.take(), self.coded.take());
        if let Work::Text(text) = &mut self.work {
            if let Some(slice) = text.gather() {
                return Err(Job::Read(env.stream, slice));
            }
            let Some(parts) = text.parts(&origin.delegate) else { return Ok(Err(Status::BAD_GATEWAY)) };
            self.work = Work::Body(Composite::new(parts));
        }
        match &mut self.work {
            Work::Text(_) => Ok(Err(Status::BAD_GATEWAY)),
            Work::File(file) => {
                let stored = match coded {
                    Some(coded) => Some(coded_file::take(env.ctx, coded)),
                    None => match look(file, found, env.ctx, env.stream)? {
                        Some(stored) if may_be_coded(&self.head, &stored) => {
                            Some(coded_file::coded(env.ctx, env.stream, &origin.head.get(), stored)?)
                        }
                        as_it_is => as_it_is,
                    },
                };
                let head = std::mem::replace(&mut *self.head, ResponseHead::of_status(Status::OK));
                let response = stored.map(|stored| (file_response(head, author, stored), None));
                Ok(response.ok_or(Status::NOT_FOUND))
            }
            Work::Body(composite) => {
                if !composite.go_on(found, env)? {
                    return Ok(Err(Status::BAD_GATEWAY));
                }
                let body = std::mem::take(&mut composite.body);
                let mut head = std::mem::replace(&mut *self.head, ResponseHead::of_status(Status::OK));
                head.set_content_length(Some(body.len()));
                Ok(Ok((Response::of_lines(head, author, Body::Begun(body, true)), composite.trial)))
            }
        }
    }
}

/// The file of a name, if it is one, or the job that finds out.
fn look(
    file: &NamedFile,
    found: Option<Found>,
    ctx: &Context,
    stream: StreamId,
) -> Result<Option<Arc<Stored>>, Job> {
    match found.map_or_else(|| file.find(ctx, stream), Ok)? {
        Found::File(stored) => Ok(Some(stored)),
        _ => Ok(None),
    }
}

impl Composite {
    fn new(parts: VecDeque<Part>) -> Self {
        let is_one_file = parts.len() == 1 && matches!(parts.front(), Some(Part::File(_)));
        Self { parts, body: Aggregate::default(), is_one_file, trial: None }
    }

    /// Continues until a part needs a job; false: a file is missing.
    fn go_on(&mut self, mut found: Option<Found>, env: &mut Env<'_>) -> Result<bool, Job> {
        let by_reference = env.reply.may_send_by_reference();
        while let Some(part) = self.parts.front() {
            match part {
                Part::Text(text) => self.body.push(text.clone()),
                Part::File(file) => match look(file, found.take(), env.ctx, env.stream)? {
                    Some(stored) if stored.is_empty() => {}
                    Some(stored) => {
                        let (piece, trial) =
                            range(&mut env.ctx.supplies(), &stored, 0, stored.len(), by_reference);
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

impl Text {
    /// Brings it together; `Some`: this is to be read first.
    fn gather(&mut self) -> Option<FileSlice> {
        while let Some(piece) = self.rest.front() {
            match piece {
                Piece::Memory(slice) => self.bytes.extend_from_slice(slice),
                Piece::File(slice) => return Some(slice.clone()),
                // Memory of the application was copied, and only origins' bodies come through pipes.
                Piece::Shared(_) | Piece::Piped(_) => self.is_broken = true,
            }
            self.rest.take_front(u64::MAX);
        }
        None
    }

    fn handle_read(&mut self, bytes: Option<Slice>) {
        self.rest.take_front(u64::MAX);
        match bytes {
            Some(bytes) => self.rest.prepend(bytes),
            None => self.is_broken = true,
        }
    }

    /// Its parts. `None`: it names a file that is not allowed, or is not all here.
    fn parts(&mut self, delegate: &Delegate) -> Option<VecDeque<Part>> {
        if self.is_broken { None } else { parts(delegate, std::mem::take(&mut self.bytes), &self.map) }
    }
}

/// Splits a body into text and the files named in it. `None`: it names a file that is not allowed.
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

/// Appends a body that has to wait. What the application lends it gets back at once: it may need that to go on.
pub(super) fn append_own(text: &mut Aggregate, body: &Aggregate) {
    for piece in body.pieces() {
        match piece {
            Piece::Shared(slice) => {
                let mut bytes = Vec::with_capacity(slice.len());
                slice.copy_prefix_to(slice.len(), &mut bytes);
                text.push(Slice::from(bytes));
            }
            other => text.push(other.clone()),
        }
    }
}

const NO_SUCH_FILE: &str =
    "it names a file that is not there, or in no folder of `named_files` or `internal_files`";
