//! What a cache is asked for: sessions that read parts of objects, from a log or made.

use super::logged;
use super::media::Media;
use super::session::{Object, Session};
use crate::trace::{LogRead, Trace};

/// Sessions in order of time, and the objects that they read.
#[derive(Debug)]
pub struct Workload {
    /// What to call it in figures.
    pub name: String,
    objects: Vec<Object>,
    sessions: Vec<Session>,
}

impl Workload {
    /// Sessions with films.
    #[must_use]
    pub fn of_media(media: &Media, seed: u64) -> Self {
        let (objects, sessions) = media.make(seed);
        Self { name: "media".into(), objects, sessions }
    }

    /// The requests of a trace for whole files, a millisecond apart. Answers of applications are left out, and those
    /// without a body.
    #[must_use]
    pub fn of_trace(trace: &Trace) -> Self {
        let requests = trace.requests().iter().zip(0..);
        let sessions = requests
            .filter(|(request, _)| request.has_body() && !trace.target(request.target()).dynamic)
            .map(|(request, at_ms)| {
                let object = request.target();
                let whole = 0..trace.target(object).bytes;
                Session { at_ms, object, reads: vec![whole], bytes_per_minute: u64::MAX }
            })
            .collect();
        Self { name: trace.name.clone(), objects: objects_of(trace), sessions }
    }

    /// The sessions of players, and of other readers, that a log tells of: the bytes that each client got of a file.
    /// Answers of applications are left out.
    #[must_use]
    pub fn of_log(trace: &Trace, mut reads: Vec<LogRead>) -> Self {
        reads.retain(|read| !trace.target(read.target).dynamic);
        let mut objects = objects_of(trace);
        for read in &reads {
            objects[read.target as usize].is_media |= read.is_media;
        }
        let sessions = logged::sessions(reads);
        for session in &sessions {
            // Parts whose place is not known may lead beyond what the log says of a file.
            let object = &mut objects[session.object as usize];
            object.bytes = session.reads.iter().map(|range| range.end).fold(object.bytes, u64::max);
        }
        Self { name: trace.name.clone(), objects, sessions }
    }

    /// This workload and another one at the same time, whose sessions begin evenly from its first to its last one.
    #[must_use]
    pub fn beside(mut self, other: Self) -> Self {
        let offset = self.objects.len() as u32;
        let end_ms = self.sessions.last().map_or(0, |session| session.at_ms);
        let count = other.sessions.len().max(1) as u64;
        self.objects.extend(other.objects);
        self.sessions.extend(other.sessions.into_iter().zip(0..).map(|(session, number)| Session {
            at_ms: end_ms * number / count,
            object: session.object + offset,
            ..session
        }));
        self.sessions.sort_by_key(|session| session.at_ms);
        Self { name: format!("{} and {}", self.name, other.name), ..self }
    }

    /// Bytes of all objects.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    /// How many requests or sessions there are.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.sessions.len() as u64
    }

    pub(super) fn objects(&self) -> &[Object] {
        &self.objects
    }

    pub(super) fn sessions(&self) -> &[Session] {
        &self.sessions
    }
}

fn objects_of(trace: &Trace) -> Vec<Object> {
    trace
        .targets()
        .iter()
        .map(|target| Object { bytes: target.bytes, tail_first: false, is_media: false })
        .collect()
}
