//! The requests of a client that applications have.

use baton_upstream::RequestId;

use crate::protocol::StreamId;

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
