//! What a cache is asked for: sessions that read parts of objects, from a log or made.

use super::media::Media;
use super::session::{Object, Session};
use crate::trace::Trace;

/// Sessions in order of time, and the objects that they read.
#[derive(Debug)]
pub struct Workload {
    /// What to call it in figures.
    pub name: String,
    objects: Vec<Object>,
    sessions: Vec<Session>,
    bytes_per_minute: u64,
}

impl Workload {
    /// Sessions with films.
    #[must_use]
    pub fn of_media(media: &Media, seed: u64) -> Self {
        let (objects, sessions) = media.make(seed);
        Self { name: "media".into(), objects, sessions, bytes_per_minute: media.bytes_per_minute() }
    }

    /// The requests of a trace for whole files, a millisecond apart. Answers of applications are left out, and those
    /// without a body.
    #[must_use]
    pub fn of_trace(trace: &Trace) -> Self {
        let objects = trace.targets().iter();
        let objects = objects.map(|target| Object { bytes: target.bytes, tail_first: false }).collect();
        let requests = trace.requests().iter().zip(0..);
        let sessions = requests
            .filter(|(request, _)| request.has_body() && !trace.target(request.target()).dynamic)
            .map(|(request, at_ms)| {
                let object = request.target();
                Session { at_ms, object, reads: [0..trace.target(object).bytes, 0..0] }
            })
            .collect();
        Self { name: trace.name.clone(), objects, sessions, bytes_per_minute: u64::MAX }
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

    /// What a reader takes within a minute, in bytes.
    pub(super) fn bytes_per_minute(&self) -> u64 {
        self.bytes_per_minute
    }
}
