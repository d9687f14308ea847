//! A content on its way to a client: from the store, from the response that brings it, or part by part.

use std::ops::Range;
use std::sync::Arc;

use baton_buf::Aggregate;
use baton_http::origin::Trailers;
use baton_segment::fill::ReaderId;
use baton_segment::rules::Forward;
use baton_upstream::{Failure, ResponseEvent};

use crate::SharedCache;
use crate::blocks::Available;
use crate::fill::{Fill, ReaderName};
use crate::held::Held;
use crate::object::Object;
use crate::parts::{Parts, Verdict};
use crate::visit::Visit;

/// A content on its way to a client.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) object: Arc<Object>,
    pub(crate) source: Source,
    /// The next of its bytes, if they can be got from the store alone, and are not kept there for long.
    pub(crate) held: Held,
    pub(crate) at: u64,
    /// `u64::MAX`: the end is not known.
    pub(crate) end: u64,
    /// Whether it ends with the content, so that its trailers follow.
    pub(crate) is_whole: bool,
    pub(crate) visit: Visit,
    /// The client has got nothing of it.
    pub(crate) is_at_start: bool,
    /// What is in front of the first bytes. It waits for them: before that, the request may still be answered otherwise.
    pub(crate) head: Vec<ResponseEvent>,
    /// What the cache says if the origin has to answer after all.
    pub(crate) forward: Forward,
}

/// Where the bytes of a content are taken from.
#[derive(Debug)]
pub(crate) enum Source {
    /// The store. If a block is not there, a combinable object is read as parts from then on.
    Store,
    /// A response that comes, as far as the store does not have it.
    Stream(Arc<Fill>),
    Parts(Arc<Parts>, ReaderId),
}

/// What a client gets next.
#[derive(Debug)]
pub(crate) enum Next {
    Bytes(Aggregate),
    Wait,
    End(Option<Trailers>),
    Failed(Failure),
    /// Not here: the request goes on otherwise.
    Over(Verdict),
    /// A block is not in the store.
    Missing,
}

impl Reading {
    /// The bytes that it still wants.
    pub(crate) fn wanted(&self) -> Range<u64> {
        self.at..self.end.min(self.object.content.length().unwrap_or(u64::MAX))
    }

    /// Bytes up to here from the store.
    pub(crate) fn stored(&mut self, cache: &SharedCache, name: &ReaderName, until: u64) -> Next {
        if self.at >= until {
            return Next::End(None);
        }
        let turn = BLOCKS_PER_TURN as u64 * cache.blocks.layout().block_bytes();
        if self.held.is_empty() && !self.object.is_combinable() {
            self.held = cache.blocks.hold_for_reader(self.object.content.key, &(self.at..until));
        }
        if let Some(bytes) = self.held.take(turn) {
            return Next::Bytes(bytes);
        }
        match cache.blocks.get(self.object.content.key, self.at, until, BLOCKS_PER_TURN) {
            Available::Bytes(bytes) => Next::Bytes(bytes),
            Available::NeedsDisk(block) => {
                name.page_in(&self.object.content, block);
                Next::Wait
            }
            Available::Gone => Next::Missing,
        }
    }

    /// All bytes have been taken. Returns also the fill that waits for this, if one does.
    pub(crate) fn ending(&self, name: &ReaderName) -> (Next, Option<Arc<Fill>>) {
        let Source::Stream(fill) = &self.source else { return (Next::End(None), None) };
        if !self.is_whole {
            return (Next::End(None), None);
        }
        let (end, was_stalled) = fill.poll_end(name, self.at);
        let next = match end {
            None => Next::Wait,
            Some((Ok(()), trailers)) => Next::End(trailers),
            Some((Err(failure), _)) => Next::Failed(failure),
        };
        (next, was_stalled.then(|| Arc::clone(fill)))
    }
}

/// Blocks that a client is given at a time.
const BLOCKS_PER_TURN: usize = 8;
