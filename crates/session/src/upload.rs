//! The body of a request, kept until the request can be delegated: in memory while it is small.
//!
//! ```text
//!   complete within memory_bytes_max ───────────────────────────► delegated
//!   longer, of a known length, and the application admits it ───► delegated; the rest follows as it arrives
//!   any, for an origin, when the first of it has arrived ───────► delegated; the rest follows as it arrives
//!   longer ───► a file without a name ───► complete ────────────► delegated
//! ```
//!
//! A slow client occupies a process of the application from the moment of delegation. So the number of requests that
//! are delegated before their bodies are complete is limited ([`StreamedBodies`]).

use std::sync::Arc;

use baton_buf::Aggregate;
use baton_shares::ClientKey;
use baton_site::plan::UploadSettings;
use baton_upstream::{Admission, Application, NoRoom, StreamedBodies, TemporaryFile};

use crate::body_memory::BodyMemory;
use crate::protocol::BodySink;

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Upload {
    settings: UploadSettings,
    /// Whose share of the temporary files it takes.
    client: Option<ClientKey>,
    memory: BodyMemory,
    file: Option<TemporaryFile>,
    len: u64,
    begins: Begins,
    /// This body has been admitted: the request is delegated now.
    admission: Option<Admission>,
    /// Why the rest cannot be kept.
    error: Option<NoRoom>,
}

/// When a request is delegated whose body is not complete.
#[derive(Clone, Debug)]
pub(crate) enum Begins {
    /// When it is.
    Complete,
    /// When it is longer than what is kept in memory, if it is admitted.
    Admitted(StreamedBodies),
    /// When so many bytes have arrived: who sends none holds no connection to the origin.
    With(u64),
}

impl Upload {
    pub(crate) fn new(
        settings: UploadSettings,
        application: Arc<Application>,
        client: Option<ClientKey>,
        begins: Begins,
    ) -> Self {
        let memory = BodyMemory::new(application);
        let (file, len, admission, error) = (None, 0, None, None);
        Self { settings, client, memory, file, len, begins, admission, error }
    }

    /// Why the body could not be kept, if it could not.
    pub(crate) fn error(&self) -> Option<NoRoom> {
        self.error
    }

    /// The bytes, ready to be sent, and the permission to send them before the rest has arrived.
    pub(crate) fn into_parts(mut self) -> (Aggregate, Option<Admission>) {
        let mut body = self.memory.take();
        if let Some(file) = self.file {
            body.push(file.slice());
        }
        (body, self.admission)
    }

    fn keep(&mut self, data: &[u8]) -> Result<(), NoRoom> {
        self.len += data.len() as u64;
        if let Some(file) = &mut self.file {
            return file.append_bytes(data);
        }
        let fits = match self.begins {
            // No more than one read beyond them.
            Begins::With(_) => true,
            _ => self.memory.len() + data.len() <= self.settings.memory_bytes_max,
        };
        if !fits && self.admission.is_none() {
            // Asked once: a body that has begun in a file stays there.
            if let Begins::Admitted(streamed) = std::mem::replace(&mut self.begins, Begins::Complete) {
                self.admission = streamed.admit();
            }
        }
        if fits || self.admission.is_some() {
            self.memory.extend(data);
            return Ok(());
        }
        let mut file = TemporaryFile::create(&self.settings.temporary, self.client)?;
        file.append(self.memory.take())?;
        file.append_bytes(data)?;
        self.file = Some(file);
        Ok(())
    }
}

impl BodySink for Upload {
    fn take(&mut self, data: &[u8]) -> bool {
        if let Err(why) = self.keep(data) {
            self.error = Some(why);
        }
        self.error.is_none()
    }

    fn has_enough(&self) -> bool {
        self.admission.is_some() || matches!(self.begins, Begins::With(bytes) if self.len >= bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_upstream::{Address, Endpoint, Settings, TemporaryFiles, TemporarySpace};
    use rustix::io::Errno;

    use super::*;

    fn upload(folder: &Path) -> Upload {
        let temporary = TemporaryFiles { folder: folder.into(), space: TemporarySpace::default() };
        let nowhere = Endpoint::Shared(Address::Abstract(Vec::new()));
        Upload::new(
            UploadSettings {
                bytes_max: 100,
                timeout_ms: None,
                memory_bytes_max: 8,
                first_bytes: 0,
                temporary,
            },
            Application::new(Settings::new("test", nowhere)).unwrap(),
            None,
            Begins::Complete,
        )
    }

    fn bytes_of(body: &Aggregate) -> Vec<u8> {
        let mut bytes = Vec::new();
        for piece in body.pieces() {
            match piece {
                baton_buf::Piece::Memory(slice) => bytes.extend_from_slice(slice),
                baton_buf::Piece::File(slice) => {
                    let mut part = vec![0; slice.len() as usize];
                    rustix::io::pread(slice.file(), &mut part, slice.offset()).unwrap();
                    bytes.extend_from_slice(&part);
                }
                other => panic!("a body is never in {other:?}"),
            }
        }
        bytes
    }

    #[test]
    fn a_small_body_stays_in_memory_and_a_longer_one_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        for pieces in [&[&b"12345678"[..]][..], &[b"1234", b"5678", b"9"], &[b"123456789abc"]] {
            let mut kept = upload(folder.path());
            assert!(pieces.iter().all(|piece| BodySink::take(&mut kept, piece)));
            let (body, _) = kept.into_parts();
            assert_eq!(bytes_of(&body), pieces.concat());
            let in_file = matches!(body.front(), Some(baton_buf::Piece::File(_)));
            assert_eq!(in_file, pieces.concat().len() > 8);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let mut kept = upload(Path::new("/nonexistent"));
        assert!(BodySink::take(&mut kept, b"12345678"));
        assert!(!BodySink::take(&mut kept, b"9"));
        assert_eq!(kept.error(), Some(NoRoom::Failed(Errno::NOENT)));
    }
}
