//! A file in another form than it lies on the disk: with other bytes, or more fields.

use std::sync::{Arc, Mutex};

use baton_buf::{Buffer, Piece};

use crate::coded_forms::CodedForms;
use crate::reply::{ACCEPT_RANGES, push_validators};
use crate::stored::{Body, Stored};
use crate::table::Seat;

/// How a reply about a file differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct Variant<'a> {
    /// The bytes in place of the file's.
    pub body: Option<Vec<u8>>,
    /// What tells them from other bytes in place of this file's; none: they are the file's.
    pub mark: Option<u64>,
    /// Since when these are the bytes, if that is later than the file's last change.
    pub changed_unix_seconds: u64,
    /// Further fields: complete lines, each with its CRLF.
    pub lines: &'a [u8],
}

impl Stored {
    /// This file in another form. It belongs to no cache of files.
    #[must_use]
    pub fn variant(&self, variant: Variant<'_>) -> Self {
        let etag = variant.mark.map_or(self.etag, |mark| self.etag.in_state(mark));
        let modified_unix_seconds =
            self.modified_unix_seconds.map(|own| own.max(variant.changed_unix_seconds));
        let mut identity = self.identity;
        let (body, file) = match (variant.body, &self.body) {
            (Some(bytes), _) => {
                identity.size = bytes.len() as u64;
                (Body::Memory(Buffer::new(bytes)), None)
            }
            (None, Body::File) => (Body::File, self.file.clone()),
            (None, Body::Memory(_) | Body::Joined(_)) => match self.body(0, self.len()) {
                Piece::Memory(slice) => (Body::Memory(Buffer::new(slice.to_vec())), None),
                _ => (Body::File, self.file.clone()),
            },
        };
        let mut fields = self.fields[..self.presentation_len].to_vec();
        fields.extend_from_slice(variant.lines);
        let presentation_len = fields.len();
        push_validators(&mut fields, modified_unix_seconds, etag);
        fields.extend_from_slice(ACCEPT_RANGES);
        Self {
            hash: self.hash,
            identity,
            loaded_unix_seconds: self.loaded_unix_seconds,
            etag,
            modified_unix_seconds,
            media_type: self.media_type.clone(),
            server_header: self.server_header,
            is_variant: true,
            is_coded: self.is_coded,
            compress: self.compress.clone(),
            coded_forms: CodedForms::default(),
            fields,
            presentation_len,
            body,
            file,
            heads: Some(Mutex::default()),
            counters: Arc::clone(&self.counters),
            seat: Seat::default(),
        }
    }
}
