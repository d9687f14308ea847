//! Bytes of a request's body in memory: where the application can read them, if it does.

use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, Slice};
use baton_pool::Chunk;
use baton_upstream::Application;

/// The beginning of a body. A short one costs less as bytes than by reference, and is in memory of its own; chunks have
/// what is longer.
#[derive(Debug)]
pub(crate) struct BodyMemory {
    /// `None`: there was no chunk.
    application: Option<Arc<Application>>,
    /// Chunks that are full.
    full: Aggregate,
    /// The chunk that is being filled, and how many of its bytes are. Then there is nothing in `own`.
    filling: Option<(Chunk, usize)>,
    own: Vec<u8>,
    len: usize,
}

impl BodyMemory {
    pub(crate) fn new(application: Arc<Application>) -> Self {
        let (full, filling, own, len) = (Aggregate::new(), None, Vec::new(), 0);
        Self { application: Some(application), full, filling, own, len }
    }

    /// Bytes in it.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn extend(&mut self, data: &[u8]) {
        self.len += data.len();
        if self.len <= OWN_BYTES_MAX || self.application.is_none() {
            return self.own.extend_from_slice(data);
        }
        let own = std::mem::take(&mut self.own);
        self.fill(&own);
        self.fill(data);
    }

    fn fill(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.filling.is_none() {
                self.filling = self.application.as_ref().and_then(|its| its.chunk()).map(|chunk| (chunk, 0));
            }
            let Some((chunk, filled)) = &mut self.filling else {
                // For good: a chunk that is free later would come in front of these bytes.
                self.application = None;
                return self.own.extend_from_slice(data);
            };
            let (now, rest) = data.split_at(data.len().min(chunk.len() - *filled));
            chunk[*filled..][..now.len()].copy_from_slice(now);
            (*filled, data) = (*filled + now.len(), rest);
            if *filled == chunk.len() {
                self.seal();
            }
        }
    }

    fn seal(&mut self) {
        if let Some((chunk, filled)) = self.filling.take() {
            self.full.push(Buffer::from(chunk).slice(0, filled));
        }
    }

    /// Takes all bytes out.
    pub(crate) fn take(&mut self) -> Aggregate {
        self.seal();
        self.full.push(Slice::from(std::mem::take(&mut self.own)));
        self.len = 0;
        std::mem::take(&mut self.full)
    }
}

/// Bytes of a piece that has arrived, put where the application can read them, if that pays.
pub(crate) fn place(bytes: Vec<u8>, chunk: impl FnOnce() -> Option<Chunk>) -> Slice {
    if bytes.len() <= OWN_BYTES_MAX {
        return Slice::from(bytes);
    }
    match chunk() {
        Some(mut chunk) if bytes.len() <= chunk.len() => {
            chunk[..bytes.len()].copy_from_slice(&bytes);
            Buffer::from(chunk).slice(0, bytes.len())
        }
        _ => Slice::from(bytes),
    }
}

/// Up to here bytes go with the records, which costs less than a reference and its return.
const OWN_BYTES_MAX: usize = 16 << 10;
