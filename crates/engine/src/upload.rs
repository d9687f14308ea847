//! The body of a request, kept until it is complete: in memory while it is small, then in a file without a name.
//!
//! An application is given a request when all of it is there. So a client that sends slowly holds no application, and
//! a body whose length is not announced has one by then.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use baton_buf::{Aggregate, Buffer, FileSlice, OpenFile};
use rustix::fs::{Mode, OFlags};

use crate::connection::BodySink;

/// Where and how a body is kept.
#[derive(Clone, Debug)]
pub struct UploadSettings {
    /// Bytes of a body; beyond it 413.
    pub bytes_max: u64,
    /// Bytes of it that are kept in memory; a longer one goes to a file.
    pub memory_bytes_max: usize,
    /// Folder of such files. They never have a name there, and vanish with the last descriptor.
    pub folder: Arc<Path>,
}

/// A body on its way.
#[derive(Debug)]
pub(crate) struct Upload {
    settings: UploadSettings,
    memory: Vec<u8>,
    file: Option<File>,
    len: u64,
    /// What keeps the rest from being kept.
    trouble: Option<io::Error>,
}

impl Upload {
    pub(crate) fn new(settings: UploadSettings) -> Self {
        Self { settings, memory: Vec::new(), file: None, len: 0, trouble: None }
    }

    /// What kept the body from being kept, if something did.
    pub(crate) fn trouble(&self) -> Option<&io::Error> {
        self.trouble.as_ref()
    }

    /// The bytes, ready to be sent.
    pub(crate) fn into_aggregate(self) -> Aggregate {
        let mut body = Aggregate::default();
        if let Some(file) = self.file {
            body.push(FileSlice::new(Arc::new(OpenFile::new(OwnedFd::from(file))), 0, self.len));
        } else if !self.memory.is_empty() {
            body.push(Buffer::new(self.memory));
        }
        body
    }

    fn keep(&mut self, data: &[u8]) -> io::Result<()> {
        self.len += data.len() as u64;
        if let Some(file) = &mut self.file {
            return file.write_all(data);
        }
        if self.memory.len() + data.len() <= self.settings.memory_bytes_max {
            self.memory.extend_from_slice(data);
            return Ok(());
        }
        let mut file = nameless_file(&self.settings.folder)?;
        file.write_all(&std::mem::take(&mut self.memory))?;
        file.write_all(data)?;
        self.file = Some(file);
        Ok(())
    }
}

/// Of a body that nobody wants, nothing is kept.
impl BodySink for Option<Box<Upload>> {
    fn take(&mut self, data: &[u8]) -> bool {
        let Some(upload) = self else { return true };
        if let Err(error) = upload.keep(data) {
            upload.trouble = Some(error);
        }
        upload.trouble.is_none()
    }
}

fn nameless_file(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upload(folder: &Path) -> Upload {
        let folder = folder.into();
        Upload::new(UploadSettings { bytes_max: 100, memory_bytes_max: 8, folder })
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
                baton_buf::Piece::Shared(_) => panic!("of whom?"),
            }
        }
        bytes
    }

    #[test]
    fn a_small_body_stays_in_memory_and_a_longer_one_leaves_no_name() {
        let folder = tempfile::tempdir().unwrap();
        for pieces in [&[&b"12345678"[..]][..], &[b"1234", b"5678", b"9"], &[b"123456789abc"]] {
            let mut kept = Some(Box::new(upload(folder.path())));
            assert!(pieces.iter().all(|piece| BodySink::take(&mut kept, piece)));
            let body = kept.unwrap().into_aggregate();
            assert_eq!(bytes_of(&body), pieces.concat());
            let in_file = matches!(body.front(), Some(baton_buf::Piece::File(_)));
            assert_eq!(in_file, pieces.concat().len() > 8);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_told() {
        let mut kept = Some(Box::new(upload(Path::new("/nonexistent"))));
        assert!(BodySink::take(&mut kept, b"12345678"));
        assert!(!BodySink::take(&mut kept, b"9"));
        assert_eq!(kept.unwrap().trouble().unwrap().kind(), io::ErrorKind::NotFound);
    }
}
