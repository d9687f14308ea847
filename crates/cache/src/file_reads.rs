//! Fetches of which the gateway keeps some in a file, and the bytes of these files.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use baton_buf::{Aggregate, FileSlice, Slice};
use baton_sys::blocking::{Blocking, ReadError, read_at};
use baton_upstream::RequestId;
use foldhash::fast::RandomState;

/// Fetches whose next bytes are in a file.
#[derive(Debug, Default)]
pub(crate) struct FileReads(HashMap<RequestId, FileRead, RandomState>);

/// Bytes that the gateway has given, and that were not taken yet.
#[derive(Debug)]
pub(crate) struct FileRead {
    /// What a thread reads; `None`: nothing.
    pub(crate) read: Option<ReadByThread>,
    /// What follows.
    pub(crate) behind: Aggregate,
}

/// What a thread has read, once it has. Within: `None`: it could not.
pub(crate) type ReadByThread = Arc<OnceLock<Option<Slice>>>;

impl FileReads {
    /// Keeps what follows of a fetch, if anything does.
    pub(crate) fn keep(&mut self, id: RequestId, read: Option<ReadByThread>, behind: Aggregate) {
        if read.is_some() || !behind.is_empty() {
            self.0.insert(id, FileRead { read, behind });
        }
    }

    /// Takes what was kept of a fetch, also when that is over.
    pub(crate) fn remove(&mut self, id: RequestId) -> Option<FileRead> {
        self.0.remove(&id)
    }

    /// The fetches.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &RequestId> {
        self.0.keys()
    }

    /// Whether nothing is read or kept.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The bytes of a part of a file; `None`: the file is shorter.
pub(crate) fn read(slice: &FileSlice, blocking: Blocking) -> Result<Option<Slice>, ReadError> {
    let mut bytes = vec![0; slice.len() as usize];
    let count = read_at(slice.file(), &mut bytes, slice.offset(), blocking)?;
    Ok((count == bytes.len()).then(|| Slice::from(bytes)))
}
