//! How the body of a request comes to an application that takes bodies by reference.
//!
//! ```text
//!   in chunks ──► the pool, once for each connection ──► SLICES ──► the application looks ──► FREED
//!   in a file ──► a descriptor that can only read    ──► FILE
//!   elsewhere ──────────────────────────────────────────► FCGI_STDIN
//! ```

use std::os::fd::OwnedFd;

use baton_buf::{Aggregate, Piece};
use baton_fcgi::offer::Bodies;
use baton_pool::ChunkPool;
use baton_sys::descriptors;

use crate::Request;

/// What goes with a request, besides the way of its answer.
#[derive(Debug, Default)]
pub(crate) struct BodyReferences {
    pub(crate) pool: Option<ChunkPool>,
    pub(crate) file: Option<OwnedFd>,
    asks: bool,
}

impl BodyReferences {
    /// What goes with this request. `known`: the pool that the process has. `takes`: it has said that it takes references;
    /// else it is asked. If another process of the application has said so, this one gets what it needs in any case: it may
    /// say so in the middle of a body.
    pub(crate) fn of(request: &Request, known: Option<&ChunkPool>, takes: bool) -> Self {
        let asks = !takes;
        let Some(pool) = request.application.chunk_pool() else { return Self { asks, ..Self::default() } };
        let in_chunks = |pool: &ChunkPool| {
            let is_in =
                |piece: &Piece| matches!(piece, Piece::Memory(slice) if slice.offset_in(pool).is_some());
            request.rest.is_some() || request.body.pieces().any(is_in)
        };
        let pool = Some(pool).filter(|pool| known != Some(pool)).filter(in_chunks);
        let file = if request.rest.is_none() { read_only_file(&request.body) } else { None };
        Self { pool, file, asks }
    }

    /// What the offer says of them.
    pub(crate) fn words(&self) -> Bodies {
        let pool = self.pool.as_ref().map_or(0, |pool| pool.len() as u32);
        Bodies { asks: self.asks, pool, file: self.file.is_some() }
    }
}

/// A descriptor for the file that holds all of a body, by which it cannot be changed. `None`: it is in no file, or the
/// process has no more descriptors.
fn read_only_file(body: &Aggregate) -> Option<OwnedFd> {
    match body.front() {
        Some(Piece::File(slice)) if body.pieces().len() == 1 => descriptors::read_only(slice.file()).ok(),
        _ => None,
    }
}
