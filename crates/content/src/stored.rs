//! A file ready to send: its length, validators and fields, and its bytes or descriptor.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_buf::{Buffer, FileSlice, OpenFile, Piece};
use baton_compress::Rules;
use baton_http::{ETag, Stamp};

use crate::coded_forms::CodedForms;
use crate::disk::Identity;
use crate::presentation::Presentation;
use crate::reply::{BodySource, HeadForm, HeadParts, Ready, Whole};
use crate::stats::Counters;
use crate::table::{Entry, Seat};

/// One state of one file in one presentation.
///
/// Immutable: when the file changes, another `Stored` replaces it, and responses in flight finish with this one.
#[derive(Debug)]
pub struct Stored {
    /// Of device, inode and presentation.
    pub(crate) hash: u64,
    pub(crate) identity: Identity,
    /// When the file was read.
    pub(crate) loaded_unix_seconds: u64,
    pub(crate) etag: ETag,
    pub(crate) modified_unix_seconds: Option<u64>,
    pub(crate) media_type: String,
    pub(crate) server_header: bool,
    /// Whether it is another form of a file than that on the disk.
    pub(crate) is_variant: bool,
    /// Whether its bytes are in a content coding.
    pub(crate) is_coded: bool,
    /// How the file is coded on the fly, if it is.
    pub(crate) compress: Option<Arc<Rules>>,
    /// What came of it so far.
    pub(crate) coded_forms: CodedForms<Self>,
    /// The lines of the presentation, then those of the validators.
    pub(crate) fields: Vec<u8>,
    /// How many bytes of `fields` are the presentation.
    pub(crate) presentation_len: usize,
    pub(crate) body: Body,
    /// The file, unless it is so small that it is always sent from memory.
    pub(crate) file: Option<Arc<OpenFile>>,
    /// Heads kept for the next request, one per form; `None` if heads are not kept.
    pub(crate) heads: Option<Mutex<Heads>>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) seat: Seat,
}

pub(crate) type Heads = [Option<Ready>; HeadForm::COUNT];

#[derive(Debug)]
pub(crate) enum Body {
    /// In private memory. Never a mapping: a file that is truncated under one would kill the process that reads it.
    Memory(Buffer),
    /// In private memory, after the head of a reply that keeps the connection.
    Joined(Mutex<Ready>),
    /// In the file.
    File,
}

impl Stored {
    /// Number of bytes that are promised.
    pub fn len(&self) -> u64 {
        self.identity.size
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The validator: weak for what was coded on the fly, else strong.
    pub fn etag(&self) -> ETag {
        self.etag
    }

    /// Last modification, in seconds since 1970; never later than when the file was loaded. `None`: its date says nothing.
    pub fn modified_unix_seconds(&self) -> Option<u64> {
        self.modified_unix_seconds
    }

    /// Complete lines of a head, each with its CRLF, for every reply about this file, of any status: media type,
    /// coding, `Vary`, `Cache-Control`, validators, `Accept-Ranges` and configured fields.
    pub fn fields(&self) -> &[u8] {
        &self.fields
    }

    /// The media type, with its parameters.
    pub fn media_type(&self) -> &str {
        &self.media_type
    }

    /// Whether it is another form of a file than that on the disk.
    pub fn is_variant(&self) -> bool {
        self.is_variant
    }

    /// Whether the bytes are in a content coding: a precompressed copy of the file, or coded on the fly.
    pub fn is_coded(&self) -> bool {
        self.is_coded
    }

    /// How it is coded on the fly for clients that take a coding; `None`: it never is.
    pub fn compress(&self) -> Option<&Rules> {
        self.compress.as_deref()
    }

    /// Whether the bytes are in memory, or must be fetched from the file.
    pub fn in_memory(&self) -> bool {
        !matches!(self.body, Body::File)
    }

    /// Whether the bytes are in memory, or were all seen in the page cache in this second.
    pub(crate) fn is_at_hand(&self, now: &Stamp) -> bool {
        let was_seen = |file: &Arc<OpenFile>| file.was_resident(0..self.len(), now.unix_seconds);
        self.in_memory() || self.file.as_ref().is_some_and(was_seen)
    }

    /// How often it was used, about.
    pub(crate) fn uses(&self) -> u64 {
        self.seat.uses()
    }

    /// Whether it can be sent from memory and from the file.
    pub fn has_both_ways(&self) -> bool {
        self.in_memory() && self.file.is_some()
    }

    /// The reply to a plain GET; `way` decides if both are possible.
    pub fn whole(&self, form: HeadForm, now: &Stamp, way: BodySource) -> Whole {
        let Some(heads) = &self.heads else {
            Counters::count(&self.counters.head_misses);
            return self.behind(&mut self.make_head(form, now), now, way);
        };
        if let (Body::Joined(ready), HeadForm::KeepAlive) = (&self.body, form) {
            Counters::count(&self.counters.head_hits);
            let mut ready = lock(ready);
            let (mut first, head_len) = (ready.at(now), ready.head_len());
            let rest = self.file_slice(way, 0, self.len());
            if rest.is_some() {
                first.split_off(head_len);
            }
            return Whole { first, head_len, rest };
        }
        let head = &mut lock(heads)[form as usize];
        let counter = if head.is_some() { &self.counters.head_hits } else { &self.counters.head_misses };
        Counters::count(counter);
        self.behind(head.get_or_insert_with(|| self.make_head(form, now)), now, way)
    }

    /// The bytes `first..first + len` of the file, without copying them.
    ///
    /// # Panics
    /// If the range exceeds [`Stored::len`].
    pub fn body(&self, first: u64, len: u64) -> Piece {
        assert!(
            first.checked_add(len).is_some_and(|end| end <= self.len()),
            "{len} bytes from {first} on of a file of {}",
            self.len()
        );
        match &self.body {
            Body::Memory(bytes) => bytes.slice(first as usize, (first + len) as usize).into(),
            Body::Joined(ready) => lock(ready).body(first as usize, len as usize).into(),
            Body::File => self
                .file_slice(BodySource::File, first, len)
                .expect("a body that is not in memory is in its file"),
        }
    }

    /// Like [`body`](Self::body); `way` decides if both are possible.
    ///
    /// # Panics
    /// As [`body`](Self::body).
    pub fn body_by(&self, way: BodySource, first: u64, len: u64) -> Piece {
        match self.has_both_ways() && first.checked_add(len).is_some_and(|end| end <= self.len()) {
            true => self.file_slice(way, first, len).unwrap_or_else(|| self.body(first, len)),
            false => self.body(first, len),
        }
    }

    /// Whether a descriptor closes when this is dropped.
    pub(crate) fn closes(&self) -> bool {
        self.file.as_ref().is_some_and(|file| Arc::strong_count(file) == 1)
    }

    /// A range of the file, if `way` asks for it and the file is open.
    fn file_slice(&self, way: BodySource, first: u64, len: u64) -> Option<Piece> {
        let file = self.file.as_ref().filter(|_| way == BodySource::File)?;
        Some(FileSlice::new(Arc::clone(file), first, len).into())
    }

    /// Whether this is the file of that device and inode, in whichever state, as that presentation shows it.
    pub(crate) fn shows(&self, identity: &Identity, presentation: &Presentation) -> bool {
        self.is_same_inode(identity)
            && self.server_header == presentation.server_header
            && self.compress == presentation.compress
            && self.fields[..self.presentation_len] == presentation.lines
    }

    /// Whether both are states of one file in one presentation, of which only one is kept.
    pub(crate) fn rivals(&self, other: &Self) -> bool {
        self.is_same_inode(&other.identity)
            && self.server_header == other.server_header
            && self.compress == other.compress
            && self.fields[..self.presentation_len] == other.fields[..other.presentation_len]
    }

    fn is_same_inode(&self, identity: &Identity) -> bool {
        (self.identity.device, self.identity.inode) == (identity.device, identity.inode)
    }

    /// Whether this is all that can be known about a file in the state `identity`.
    ///
    /// File times tick in steps (4 ms before Linux 6.13): a write within the step of our read does not change them.
    /// So a file that had changed shortly before it was read into memory is read again in another second, even if it
    /// looks unchanged (Git's "racily clean").
    pub(crate) fn is_current(&self, identity: &Identity, now: &Stamp) -> bool {
        let changed = u64::try_from(identity.changed.seconds).unwrap_or(0);
        let settled = changed + SETTLED_AFTER_SECONDS <= self.loaded_unix_seconds;
        self.identity == *identity
            && (settled || !self.in_memory() || self.loaded_unix_seconds == now.unix_seconds)
    }

    fn make_head(&self, form: HeadForm, now: &Stamp) -> Ready {
        let parts =
            HeadParts { server_header: self.server_header, content_length: self.len(), fields: &self.fields };
        Ready::head(parts, form, now)
    }

    /// This head, followed by the body.
    fn behind(&self, head: &mut Ready, now: &Stamp, way: BodySource) -> Whole {
        let whole = || self.file_slice(way, 0, self.len()).unwrap_or_else(|| self.body(0, self.len()));
        let rest = (!self.is_empty()).then(whole);
        Whole { first: head.at(now), head_len: head.head_len(), rest }
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if self.has_both_ways() {
            self.counters.both_ways.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Entry for Stored {
    fn hash(&self) -> u64 {
        self.hash
    }

    /// Bytes of memory, or one descriptor: the two tables count in different units.
    fn weight(&self) -> u64 {
        if self.in_memory() { memory_weight(self.len()) } else { 1 }
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }
}

/// The memory that a file of this size takes, in bytes.
pub(crate) fn memory_weight(size: u64) -> u64 {
    size.saturating_add(MEMORY_OVERHEAD_BYTES)
}

/// More than any step of a file system's clock, and one more for the stamp, which is a second coarse itself.
const SETTLED_AFTER_SECONDS: u64 = 2;

/// Heads, fields and administration of a file in memory, about.
const MEMORY_OVERHEAD_BYTES: u64 = 1024;

/// No update is ever left incomplete, so a panic of another thread does no harm.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
