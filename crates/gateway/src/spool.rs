//! What a client has not taken yet of its response: in memory, then in a file.
//!
//! A client that keeps up costs nothing: what arrives is passed on. One that does not must not hold the application,
//! so what it leaves is kept, in memory up to a bound. When that is reached, the client is given a moment, for which
//! the application waits; if it does not use it, it is *slow*, and all the rest goes to a file without a name, up to
//! another bound. Beyond that, the application waits for it.

use std::path::Path;
use std::sync::Arc;

use baton_buf::{Aggregate, FileSlice, OpenFile, Piece, gather};
use baton_sys::descriptors;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// The bounds of a spool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most bytes in memory, of those to be taken and of those taken and not sent.
    pub(crate) memory: u64,
    /// Most bytes that are written to one file.
    pub(crate) file: u64,
}

/// Where the next bytes of a response would go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Memory,
    File,
    /// The client has a moment to take something.
    AfterPatience,
    /// Nowhere, until the client has taken all there is.
    None,
}

/// The bytes between an application and a client.
#[derive(Debug)]
pub(crate) struct Spool {
    bounds: Bounds,
    waiting: Aggregate,
    /// Bytes of `waiting` that lie in memory or in a region.
    waiting_in_memory: u64,
    /// Bytes of the same kind that were taken, and perhaps not sent.
    taken_in_memory: u64,
    is_slow: bool,
    file: Option<SpoolFile>,
}

#[derive(Debug)]
struct SpoolFile {
    file: Arc<OpenFile>,
    len: u64,
}

impl Spool {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            waiting: Aggregate::new(),
            waiting_in_memory: 0,
            taken_in_memory: 0,
            is_slow: false,
            file: None,
        }
    }

    /// Whether there is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Where what comes next would go.
    pub(crate) fn room(&self) -> Room {
        let written = self.file.as_ref().map_or(0, |file| file.len);
        if self.waiting_in_memory + self.taken_in_memory < self.bounds.memory {
            Room::Memory
        } else if !self.is_slow {
            Room::AfterPatience
        } else if written < self.bounds.file {
            Room::File
        } else {
            Room::None
        }
    }

    /// Takes in what has arrived. It is never refused: whoever reads asks for [`room`](Self::room) before.
    ///
    /// # Errors
    /// The file cannot be made or written to.
    pub(crate) fn push(&mut self, piece: impl Into<Piece>, folder: &Path) -> Result<(), Errno> {
        let piece = piece.into();
        match self.room() {
            Room::Memory | Room::AfterPatience => {
                self.waiting_in_memory += piece.len();
                self.waiting.push(piece);
                Ok(())
            }
            Room::File | Room::None => self.push_to_file(piece, folder),
        }
    }

    /// The client had its moment. What it left in a region is brought to a file, for which `folder` is.
    ///
    /// # Errors
    /// The file cannot be made or written to.
    pub(crate) fn handle_impatience(&mut self, folder: &Path) -> Result<(), Errno> {
        self.is_slow = true;
        if !self.waiting.pieces().any(|piece| matches!(piece, Piece::Shared(_))) {
            return Ok(());
        }
        let mut all = std::mem::take(&mut self.waiting);
        self.waiting_in_memory = 0;
        while let Some(len) = all.front().map(Piece::len) {
            let behind = all.split_off(len);
            for piece in std::mem::replace(&mut all, behind).pieces() {
                if let Piece::File(_) = piece {
                    self.waiting.push(piece.clone());
                } else {
                    self.push(piece.clone(), folder)?;
                }
            }
        }
        Ok(())
    }

    /// Whether the client was found to be slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Takes what there is, in memory at most as much as the bound allows.
    pub(crate) fn take(&mut self) -> Option<Aggregate> {
        let mut in_memory = 0;
        let mut len = 0;
        for piece in self.waiting.pieces() {
            if !matches!(piece, Piece::File(_)) {
                let held = self.taken_in_memory + in_memory;
                if held > 0 && held + piece.len() > self.bounds.memory {
                    break;
                }
                in_memory += piece.len();
            }
            len += piece.len();
        }
        if len == 0 {
            return None;
        }
        self.waiting_in_memory -= in_memory;
        self.taken_in_memory += in_memory;
        let behind = self.waiting.split_off(len);
        Some(std::mem::replace(&mut self.waiting, behind))
    }

    /// All that was taken has been sent.
    pub(crate) fn note_sent(&mut self) {
        self.taken_in_memory = 0;
        if self.waiting.is_empty() {
            // Never written to again from its beginning: its pages may be on their way to the client still.
            self.file = None;
        }
    }

    fn push_to_file(&mut self, piece: Piece, folder: &Path) -> Result<(), Errno> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(SpoolFile::create(folder)?),
        };
        let start = file.len;
        let mut rest = Aggregate::new();
        rest.push(piece);
        while !rest.is_empty() {
            let written = gather::write_at(&*file.file, rest.pieces(), file.len)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            file.len += written as u64;
            rest.advance(written as u64);
        }
        self.waiting.push(FileSlice::new(Arc::clone(&file.file), start, file.len - start));
        Ok(())
    }
}

impl SpoolFile {
    fn create(folder: &Path) -> Result<Self, Errno> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let descriptor = descriptors::retry(|| rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR))?;
        Ok(Self { file: Arc::new(descriptor.into()), len: 0 })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUNDS: Bounds = Bounds { memory: 100, file: 300 };

    fn push(spool: &mut Spool, folder: &Path, byte: u8, len: usize) {
        spool.push(baton_buf::Slice::from(vec![byte; len]), folder).unwrap();
    }

    #[test]
    fn a_client_has_a_moment_before_it_is_called_slow() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(BOUNDS);
        push(&mut spool, folder.path(), 1, 100);
        assert_eq!(spool.room(), Room::AfterPatience);
        let taken = spool.take().unwrap();
        assert_eq!((taken.len(), spool.room()), (100, Room::AfterPatience), "taken is not sent");
        spool.note_sent();
        assert_eq!(spool.room(), Room::Memory);
        push(&mut spool, folder.path(), 2, 100);
        spool.handle_impatience(folder.path()).unwrap();
        assert_eq!(spool.room(), Room::File);
        push(&mut spool, folder.path(), 3, 300);
        assert_eq!(spool.room(), Room::None);
        while spool.take().is_some() {
            spool.note_sent();
        }
        assert_eq!(spool.room(), Room::Memory);
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "its files have no names");
    }

    #[test]
    fn what_lies_in_a_region_is_brought_away_when_the_client_is_slow() {
        let folder = tempfile::tempdir().unwrap();
        let (region, _file) = baton_buf::Region::create(4096).unwrap();
        let mut loan = baton_buf::Loan::new(Arc::new(region), 0, 1000);
        let mut spool = Spool::new(BOUNDS);
        push(&mut spool, folder.path(), 1, 100);
        spool.push(loan.slice(), folder.path()).unwrap();
        spool.handle_impatience(folder.path()).unwrap();
        assert!(loan.is_over());
        assert_eq!(spool.take().unwrap().len(), 1100);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Take,
        Sent,
        Impatience,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => (1_usize..80).prop_map(Step::Push),
            2 => Just(Step::Take),
            2 => Just(Step::Sent),
            1 => Just(Step::Impatience),
        ];
        proptest::collection::vec(step, 1..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// Whatever happens in whatever order: every byte comes out once and in its place, and what is held in memory
        /// is bounded by the bound and one more piece.
        #[test]
        fn bytes_keep_their_order_and_memory_its_bound(steps in steps()) {
            let folder = tempfile::tempdir().unwrap();
            let mut spool = Spool::new(BOUNDS);
            let (mut pushed, mut taken) = (Vec::new(), Vec::new());
            let mut unsent = 0;
            let mut take = |spool: &mut Spool, unsent: &mut u64| {
                let Some(pieces) = spool.take() else { return };
                for piece in pieces.pieces() {
                    match piece {
                        Piece::Memory(slice) => {
                            *unsent += slice.len() as u64;
                            taken.extend_from_slice(slice);
                        }
                        Piece::File(slice) => {
                            let mut bytes = vec![0; slice.len() as usize];
                            rustix::io::pread(slice.file(), &mut bytes, slice.offset()).unwrap();
                            taken.extend(bytes);
                        }
                        Piece::Shared(_) => unreachable!(),
                    }
                }
            };
            for step in steps {
                match step {
                    Step::Push(len) if matches!(spool.room(), Room::Memory | Room::File) => {
                        let byte = pushed.len() as u8;
                        push(&mut spool, folder.path(), byte, len);
                        pushed.extend(vec![byte; len]);
                    }
                    Step::Push(_) => {}
                    Step::Take => take(&mut spool, &mut unsent),
                    Step::Sent => {
                        spool.note_sent();
                        unsent = 0;
                    }
                    Step::Impatience => spool.handle_impatience(folder.path()).unwrap(),
                }
                prop_assert!(spool.waiting_in_memory + unsent < BOUNDS.memory + 80);
                prop_assert!(unsent <= BOUNDS.memory.max(80));
            }
            while !spool.is_empty() {
                spool.note_sent();
                take(&mut spool, &mut unsent);
            }
            prop_assert_eq!(taken, pushed);
        }
    }
}
