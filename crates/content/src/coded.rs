//! Files in a content coding, made on the fly and kept in memory beside the files themselves.
//!
//! A coded form hangs on the state of the file from which it was made, so that it is never older than that. The table
//! of files in memory owns it: its bytes count there, and eviction there removes it here.

use std::sync::{Arc, Mutex};

use baton_buf::{Buffer, Piece};
use baton_compress::{Effort, whole};
use baton_http::{Coding, Stamp};

use crate::cache::Cache;
use crate::coded_forms::{CodedForms, Form};
use crate::disk::{self, Blocking};
use crate::reply::{HeadForm, HeadParts, Ready, push_validators};
use crate::stored::{Body, Stored, memory_weight};
use crate::table::Seat;

/// What there is of a file in a coding.
#[derive(Debug)]
pub enum Coded {
    /// The coded form was made before.
    Made(Arc<Stored>),
    /// The coded form can be made, which takes the processor long: on another thread than one that serves clients.
    ToDo(ToCode),
    /// Nothing: the client gets the file as it is. It would not be shorter, there is no room for it, enough others are
    /// being made, or this one is for another client.
    AsItIs,
}

/// A file that is to be coded. Dropped without being run, it can be asked for again.
#[derive(Debug)]
pub struct ToCode {
    cache: Arc<Cache>,
    stored: Arc<Stored>,
    coding: Coding,
    now: Stamp,
}

impl Cache {
    /// The file in this coding. The caller has asked the file's [rules](Stored::compress).
    pub fn coded(self: &Arc<Self>, stored: &Arc<Stored>, coding: Coding, now: &Stamp) -> Coded {
        stored.coded_forms.with(coding, |form| {
            match form {
                Form::Made(made) => {
                    if let Some(made) = made.upgrade().filter(|made| made.seat.is_taken()) {
                        self.memory.touch(&made);
                        return Coded::Made(made);
                    }
                }
                Form::Useless | Form::UnderWay => return Coded::AsItIs,
                Form::Unknown => {}
            }
            let has_room = memory_weight(stored.len()) <= self.memory.weight_max();
            if !self.settings().files || !has_room || !self.under_way.begin() {
                return Coded::AsItIs;
            }
            *form = Form::UnderWay;
            Coded::ToDo(ToCode { cache: Arc::clone(self), stored: Arc::clone(stored), coding, now: *now })
        })
    }
}

impl ToCode {
    /// The coding.
    pub fn coding(&self) -> Coding {
        self.coding
    }

    /// The length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.stored.len()
    }

    /// Codes the file and keeps the result for later requests. Returns the file as it is if it would not be shorter, or
    /// has changed.
    pub fn run(self) -> Arc<Stored> {
        // What has changed since it was opened is another state, which the next lookup finds.
        let Some(bytes) = self.stored.bytes() else { return Arc::clone(&self.stored) };
        let coded = whole(self.coding, &bytes, Effort::Once);
        let coded =
            coded.map(|coded| Arc::new(self.stored.coded(self.coding, &coded, &self.cache, &self.now)));
        let form = match &coded {
            Some(coded) => {
                self.cache.memory.insert(Arc::clone(coded), |present| present.rivals(coded), |_| false);
                Form::Made(Arc::downgrade(coded))
            }
            None => Form::Useless,
        };
        self.stored.coded_forms.with(self.coding, |noted| *noted = form);
        coded.unwrap_or_else(|| Arc::clone(&self.stored))
    }
}

impl Drop for ToCode {
    fn drop(&mut self) {
        self.stored.coded_forms.with(self.coding, |form| {
            if matches!(form, Form::UnderWay) {
                *form = Form::Unknown;
            }
        });
        self.cache.under_way.end();
    }
}

impl Stored {
    /// All of its bytes. Waits for the disk if they are not in memory. `None`: the file has changed, or cannot be read.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self.body(0, self.len()) {
            Piece::Memory(slice) => Some(slice.to_vec()),
            Piece::File(slice) => {
                let mut bytes = vec![0; usize::try_from(slice.len()).ok()?];
                let count = disk::read(slice.file(), &mut bytes, Blocking::Allowed).ok()?;
                let is_current = disk::identity(slice.file()).is_ok_and(|now| now == self.identity);
                (count == bytes.len() && is_current).then_some(bytes)
            }
            _ => None,
        }
    }

    /// This file in a coding, of which these are the bytes.
    fn coded(&self, coding: Coding, bytes: &[u8], cache: &Cache, now: &Stamp) -> Self {
        // Another version of the encoder writes other bytes of the same meaning: the tag promises no more than that.
        let etag = self.etag.in_coding(coding).weakened();
        let mut fields = self.fields[..self.presentation_len].to_vec();
        for part in ["Content-Encoding: ", coding.token(), "\r\n"] {
            fields.extend_from_slice(part.as_bytes());
        }
        let presentation_len = fields.len();
        push_validators(&mut fields, self.modified_unix_seconds, etag);
        let mut identity = self.identity;
        identity.size = bytes.len() as u64;
        let hash = cache.hash_of_lines(&identity, &fields[..presentation_len]);
        let parts =
            HeadParts { server_header: self.server_header, content_length: identity.size, fields: &fields };
        let body = match self.heads {
            Some(_) => Body::Joined(Mutex::new(Ready::before(parts, HeadForm::KeepAlive, now, bytes))),
            None => Body::Memory(Buffer::new(bytes.to_vec())),
        };
        Self {
            hash,
            identity,
            loaded_unix_seconds: self.loaded_unix_seconds,
            etag,
            modified_unix_seconds: self.modified_unix_seconds,
            media_type: self.media_type.clone(),
            server_header: self.server_header,
            is_variant: true,
            is_coded: true,
            compress: None,
            coded_forms: CodedForms::default(),
            fields,
            presentation_len,
            body,
            file: None,
            heads: self.heads.as_ref().map(|_| Mutex::default()),
            counters: Arc::clone(&self.counters),
            seat: Seat::default(),
        }
    }
}
