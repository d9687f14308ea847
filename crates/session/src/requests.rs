//! The requests of a client that applications have.

use baton_cache::Upstreams;
use baton_upstream::{RequestId, ResponseEvent};

use crate::protocol::StreamId;
use crate::session::{UpstreamNeed, Wake};

/// The names by which the gateway knows a client's requests.
///
/// One with HTTP/1; with HTTP/2 at most as many as the client has streams.
#[derive(Debug, Default)]
pub struct Requests(Vec<(StreamId, RequestId)>);

impl Requests {
    /// The gateway knows the request of this stream by this name.
    pub fn insert(&mut self, stream: StreamId, request: RequestId) {
        self.0.push((stream, request));
    }

    /// Does what the client's session needs of what answers elsewhere. Returns the wake with which the session goes on. `name`
    /// makes a name for a request that is given now.
    pub fn handle_need(
        &mut self,
        need: UpstreamNeed,
        upstreams: &mut Upstreams,
        name: impl FnOnce() -> RequestId,
        now_ms: u64,
    ) -> Wake {
        match need {
            UpstreamNeed::Delegate(stream, request) => {
                self.insert(stream, upstreams.begin(name(), request, now_ms));
                // What there is to take is announced, even if it is there at once.
                Wake::Resumed
            }
            UpstreamNeed::Resume(stream, end) => {
                let request = name();
                self.insert(stream, request);
                upstreams.gateway.resume_tunnel(request, *end, now_ms);
                self.next_events(stream, request, upstreams, now_ms)
            }
            UpstreamNeed::ResponseEvents(stream) => {
                let request = self.of_stream(stream).expect(DELEGATED);
                self.next_events(stream, request, upstreams, now_ms)
            }
            UpstreamNeed::Body(stream, part) => {
                let request = self.of_stream(stream).expect(DELEGATED);
                match part {
                    Ok(part) => upstreams.gateway.push_body(request, part.bytes, part.is_last, now_ms),
                    Err(why) => upstreams.gateway.fail_body(request, why, now_ms),
                }
                ready(stream, request, upstreams)
            }
            UpstreamNeed::Abandon(stream) => {
                let Some(request) = self.remove(stream) else { return Wake::Resumed };
                let trail = upstreams.trail(request);
                upstreams.abandon(request, now_ms);
                Wake::ResponseEvents(stream, trail.into_iter().collect())
            }
        }
    }

    fn next_events(
        &mut self,
        stream: StreamId,
        request: RequestId,
        upstreams: &mut Upstreams,
        now_ms: u64,
    ) -> Wake {
        upstreams.note_sent(request, now_ms);
        if upstreams.gateway.wants_body(request) {
            return Wake::BodyWanted(stream);
        }
        let events = upstreams.take(request);
        if events.last().is_some_and(ResponseEvent::is_last) {
            self.remove(stream);
        }
        Wake::ResponseEvents(stream, events)
    }

    /// The name of the request of this stream.
    pub fn of_stream(&self, stream: StreamId) -> Option<RequestId> {
        self.0.iter().find(|(own, _)| *own == stream).map(|(_, request)| *request)
    }

    /// The stream of the request with this name.
    pub fn stream_of(&self, request: RequestId) -> Option<StreamId> {
        self.0.iter().find(|(_, own)| *own == request).map(|(stream, _)| *stream)
    }

    /// Forgets the request of this stream, and returns its name.
    pub fn remove(&mut self, stream: StreamId) -> Option<RequestId> {
        let at = self.0.iter().position(|(own, _)| *own == stream)?;
        Some(self.0.swap_remove(at).1)
    }

    /// All streams, with the names of their requests.
    pub fn all(&self) -> impl Iterator<Item = (StreamId, RequestId)> {
        self.0.iter().copied()
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = RequestId> {
        self.0.iter().map(|(_, request)| *request)
    }
}

/// The wake for a request about which the gateway has something to say.
pub fn ready(stream: StreamId, request: RequestId, upstreams: &mut Upstreams) -> Wake {
    match upstreams.gateway.wants_body(request) {
        true => Wake::BodyWanted(stream),
        false => Wake::ResponseReady(stream),
    }
}

const DELEGATED: &str = "a session asks only about a request that it has delegated";
