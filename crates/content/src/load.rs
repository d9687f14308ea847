//! From a file on disk to a [`Stored`].

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use baton_buf::Buffer;
use baton_http::{Coding, ETag, Stamp};
use rustix::io::Errno;

use crate::coded_forms::CodedForms;
use crate::disk::{self, Blocking, DiskError, Identity};
use crate::presentation::Presentation;
use crate::reply::{ACCEPT_RANGES, HeadForm, HeadParts, Ready, push_validators};
use crate::stats::Counters;
use crate::stored::{Body, Stored};
use crate::table::Seat;
use crate::tree::Tree;

/// How a cache loads files.
pub(crate) struct Loading<'a> {
    pub(crate) tree: &'a Tree,
    /// Relative to the root of the tree.
    pub(crate) path: &'a [u8],
    pub(crate) presentation: &'a Presentation,
    pub(crate) keep_heads: bool,
    /// How many files in memory may be kept open besides.
    pub(crate) both_ways_max: u64,
    /// Whether a file of this size belongs in memory.
    pub(crate) in_memory: &'a dyn Fn(u64) -> bool,
    pub(crate) hash: &'a dyn Fn(&Identity) -> u64,
    pub(crate) counters: &'a Arc<Counters>,
    pub(crate) now: &'a Stamp,
    pub(crate) blocking: Blocking,
}

impl Loading<'_> {
    /// Opens the file and, if it is small, reads it.
    ///
    /// Reads a consistent state of the file: if it changed meanwhile, it is read once more. A file that keeps
    /// changing is taken as it is, and read again at its next revalidation (see [`Stored::is_current`]); one that
    /// keeps shrinking is `ESTALE`.
    pub(crate) fn load(&self) -> Result<Stored, DiskError> {
        let (file, mut identity) = disk::open_regular(self.tree, self.path, self.blocking)?;
        for attempt in 1..=ATTEMPTS {
            let fields = self.fields(&identity);
            if !(self.in_memory)(identity.size) {
                return Ok(self.stored(identity, fields, Body::File, Some(file)));
            }
            let body = self.read(&file, &identity, &fields)?;
            let afterwards = disk::identity(&file)?;
            match body {
                Some(body) if afterwards == identity || attempt == ATTEMPTS => {
                    let file = self.keeps_open(identity.size).then_some(file);
                    return Ok(self.stored(identity, fields, body, file));
                }
                _ => identity = afterwards,
            }
        }
        Err(DiskError::Errno(Errno::STALE))
    }

    /// Whether a file of this size, which is in memory, is kept open besides; if so, it has been counted.
    fn keeps_open(&self, size: u64) -> bool {
        let both_ways = &self.counters.both_ways;
        let keeps = size >= BOTH_WAYS_BYTES_MIN && both_ways.load(Ordering::Relaxed) < self.both_ways_max;
        if keeps {
            both_ways.fetch_add(1, Ordering::Relaxed);
        }
        keeps
    }

    /// The body, or `None` if the file is shorter than it was.
    fn read(&self, file: &OwnedFd, identity: &Identity, fields: &[u8]) -> Result<Option<Body>, DiskError> {
        // Files that belong in memory are far smaller than the address space.
        let len = identity.size as usize;
        let mut shrunk = false;
        let mut fill = |buffer: &mut [u8]| {
            shrunk = disk::read(file, buffer, self.blocking)? < len;
            Ok(())
        };
        let body = if self.keep_heads {
            let parts = HeadParts {
                server_header: self.presentation.server_header,
                content_length: identity.size,
                fields,
            };
            Body::Joined(Mutex::new(Ready::with_body(parts, HeadForm::KeepAlive, self.now, len, fill)?))
        } else {
            let mut bytes = vec![0; len];
            fill(&mut bytes)?;
            Body::Memory(Buffer::new(bytes))
        };
        Ok((!shrunk).then_some(body))
    }

    fn fields(&self, identity: &Identity) -> Vec<u8> {
        let mut fields = self.presentation.lines.clone();
        push_validators(&mut fields, self.modified_unix_seconds(identity), self.etag(identity));
        fields.extend_from_slice(ACCEPT_RANGES);
        fields
    }

    fn etag(&self, identity: &Identity) -> ETag {
        identity.state().etag().in_coding(self.presentation.coding)
    }

    /// Never later than the `Date` of a reply: RFC 9110, 8.8.2.1, for files from the future.
    fn modified_unix_seconds(&self, identity: &Identity) -> Option<u64> {
        identity.state().modified_unix_seconds().map(|modified| modified.min(self.now.unix_seconds))
    }

    fn stored(&self, identity: Identity, fields: Vec<u8>, body: Body, file: Option<OwnedFd>) -> Stored {
        Stored {
            hash: (self.hash)(&identity),
            server_header: self.presentation.server_header,
            is_variant: false,
            is_coded: self.presentation.coding != Coding::Identity,
            compress: self.presentation.compress.clone(),
            coded_forms: CodedForms::default(),
            presentation_len: self.presentation.lines.len(),
            loaded_unix_seconds: self.now.unix_seconds,
            etag: self.etag(&identity),
            modified_unix_seconds: self.modified_unix_seconds(&identity),
            identity,
            media_type: self.presentation.media_type.clone(),
            fields,
            body,
            file: file.map(|file| Arc::new(file.into())),
            heads: self.keep_heads.then(Mutex::default),
            counters: Arc::clone(self.counters),
            seat: Seat::default(),
        }
    }
}

/// Smaller files are always sent from memory: a second call costs more than copying them.
const BOTH_WAYS_BYTES_MIN: u64 = 4096;

/// How often a file is read before its restlessness is accepted.
const ATTEMPTS: u32 = 2;
