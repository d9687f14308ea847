//! The part of a response that its client has not taken yet: in memory, then in a file.
//!
//! A client that keeps up costs nothing: the spool passes on what arrives. A client that does not must not hold the
//! application, so the spool keeps the rest, in memory up to a bound. At the bound, the client has a grace period in which
//! the application waits. If it takes nothing then, it is *slow*, and the rest goes to a file without a name, up to
//! another bound. Beyond that, the application waits for the client. It also waits if the file cannot grow, because the
//! files of all workers have reached their bound or the disk is full. The spool tries the file again when the client has
//! taken what is in memory.

use baton_buf::{Aggregate, Piece};
use baton_shares::ClientKey;

use crate::temporary::{TemporaryFile, TemporaryFiles};

/// The bounds of a spool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Most bytes in memory, both waiting and taken but not sent.
    pub(crate) memory: u64,
    /// Most bytes in the file.
    pub(crate) file: u64,
}

/// Where the next bytes of a response would go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Memory,
    File,
    /// Nowhere until the client takes something or its grace period ends.
    AfterGrace,
    /// Nowhere until the client has taken everything.
    None,
}

/// The bytes between an application and a client.
#[derive(Debug)]
pub(crate) struct Spool {
    bounds: Bounds,
    /// Whose share of the temporary files it takes.
    client: Option<ClientKey>,
    waiting: Aggregate,
    /// Bytes of `waiting` in memory or in a region.
    waiting_in_memory: u64,
    /// Such bytes that were taken and may not have been sent.
    taken_in_memory: u64,
    is_slow: bool,
    file: Option<TemporaryFile>,
    /// The last attempt to write to the file failed.
    has_no_room: bool,
}

impl Spool {
    pub(crate) fn new(bounds: Bounds, client: Option<ClientKey>) -> Self {
        Self {
            bounds,
            client,
            waiting: Aggregate::new(),
            waiting_in_memory: 0,
            taken_in_memory: 0,
            is_slow: false,
            file: None,
            has_no_room: false,
        }
    }

    /// Has it keep nothing more in a file: beyond what is in memory, the application waits.
    pub(crate) fn hold_in_memory(&mut self) {
        self.bounds.file = 0;
    }

    /// Whether what a slow client leaves goes to a file.
    pub(crate) fn uses_file(&self) -> bool {
        self.bounds.file > 0
    }

    /// Whether there is nothing to take.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Where the next bytes would go.
    pub(crate) fn room(&self) -> Room {
        let written = self.file.as_ref().map_or(0, TemporaryFile::len);
        if self.waiting_in_memory + self.taken_in_memory < self.bounds.memory {
            Room::Memory
        } else if !self.is_slow {
            Room::AfterGrace
        } else if written < self.bounds.file && !self.has_no_room {
            Room::File
        } else {
            Room::None
        }
    }

    /// Adds what has arrived. It is never refused: the reader checks [`room`](Self::room) before.
    pub(crate) fn push(&mut self, piece: impl Into<Piece>, files: &TemporaryFiles) {
        let piece = piece.into();
        if !matches!(self.room(), Room::Memory | Room::AfterGrace) && self.push_to_file(&piece, files) {
            return;
        }
        self.waiting_in_memory += piece.len();
        self.waiting.push(piece);
    }

    /// The client's grace period is over. Moves what it left in a region to a file.
    pub(crate) fn mark_slow(&mut self, files: &TemporaryFiles) {
        self.is_slow = true;
        if !self.waiting.pieces().any(|piece| matches!(piece, Piece::Shared(_))) {
            return;
        }
        let mut all = std::mem::take(&mut self.waiting);
        self.waiting_in_memory = 0;
        while let Some(len) = all.front().map(Piece::len) {
            let behind = all.split_off(len);
            for piece in std::mem::replace(&mut all, behind).pieces() {
                if let Piece::File(_) = piece {
                    self.waiting.push(piece.clone());
                } else {
                    self.push(piece.clone(), files);
                }
            }
        }
    }

    /// Whether the client is slow.
    pub(crate) fn is_slow(&self) -> bool {
        self.is_slow
    }

    /// Takes what is waiting, with at most the bound's bytes in memory.
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

    /// Everything taken has been sent.
    pub(crate) fn note_sent(&mut self) {
        self.taken_in_memory = 0;
        // No earlier: each failed attempt leaves a piece in memory beyond the bound.
        self.has_no_room &= self.waiting_in_memory >= self.bounds.memory;
        if self.waiting.is_empty() {
            // Not rewritten from its beginning: its pages may still be in the socket's queue.
            self.file = None;
        }
    }

    /// Moves a piece to the file. False: there is no room.
    fn push_to_file(&mut self, piece: &Piece, files: &TemporaryFiles) -> bool {
        if self.has_no_room {
            return false;
        }
        let mut pieces = Aggregate::new();
        pieces.push(piece.clone());
        let file = match &mut self.file {
            Some(file) => Ok(file),
            none => TemporaryFile::create(files, self.client).map(|file| none.insert(file)),
        };
        match file.and_then(|file| file.append(pieces)) {
            Ok(slice) => self.waiting.push(slice),
            Err(why) => {
                self.has_no_room = true;
                files.space.tell_held_up(why);
            }
        }
        !self.has_no_room
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::temporary::{TemporaryCounters, TemporarySpace};

    const BOUNDS: Bounds = Bounds { memory: 100, file: 300 };

    /// Files in a folder, with so much room for all of them.
    fn files(folder: &TempDir, bytes_max: u64) -> TemporaryFiles {
        let [bytes, refused]: [&'static AtomicU64; 2] = std::array::from_fn(|_| &*Box::leak(Box::default()));
        let space = TemporarySpace::new(TemporaryCounters { bytes, refused }, Arc::new([bytes]), |_| {});
        TemporaryFiles { folder: folder.path().into(), space: space.bounded(bytes_max) }
    }

    fn push(spool: &mut Spool, files: &TemporaryFiles, byte: u8, len: usize) {
        spool.push(baton_buf::Slice::from(vec![byte; len]), files);
    }

    #[test]
    fn a_client_has_a_moment_before_it_is_called_slow() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder, u64::MAX);
        let mut spool = Spool::new(BOUNDS, None);
        push(&mut spool, &files, 1, 100);
        assert_eq!(spool.room(), Room::AfterGrace);
        let taken = spool.take().unwrap();
        assert_eq!((taken.len(), spool.room()), (100, Room::AfterGrace), "taken is not sent");
        spool.note_sent();
        assert_eq!(spool.room(), Room::Memory);
        push(&mut spool, &files, 2, 100);
        spool.mark_slow(&files);
        assert_eq!(spool.room(), Room::File);
        push(&mut spool, &files, 3, 300);
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
        let files = files(&folder, u64::MAX);
        let (region, _file) = baton_pool::Region::create(4096).unwrap();
        let mut loan = baton_buf::Loan::new(Arc::new(region), 0, 1000);
        let mut spool = Spool::new(BOUNDS, None);
        push(&mut spool, &files, 1, 100);
        spool.push(loan.slice(), &files);
        spool.mark_slow(&files);
        assert!(loan.is_over());
        assert_eq!(spool.take().unwrap().len(), 1100);
    }

    #[test]
    fn without_room_in_files_the_application_waits_for_its_client() {
        let folder = tempfile::tempdir().unwrap();
        let files = files(&folder, 250);
        let mut other = TemporaryFile::create(&files, None).unwrap();
        other.append_bytes(&[0; 100]).unwrap();
        let mut spool = Spool::new(BOUNDS, None);
        push(&mut spool, &files, 1, 100);
        spool.mark_slow(&files);
        push(&mut spool, &files, 2, 100);
        assert_eq!(spool.room(), Room::File);
        push(&mut spool, &files, 3, 100);
        assert_eq!(spool.room(), Room::None);
        assert_eq!(spool.take().unwrap().len(), 200, "memory first, then the file");
        spool.note_sent();
        assert_eq!(spool.room(), Room::None, "what found no room is in memory");
        assert_eq!(spool.take().unwrap().len(), 100);
        spool.note_sent();
        push(&mut spool, &files, 4, 100);
        assert_eq!(spool.room(), Room::File, "it is tried again");
        push(&mut spool, &files, 5, 100);
        push(&mut spool, &files, 6, 100);
        assert_eq!(spool.room(), Room::None, "there is none still");
        drop(other);
        while spool.take().is_some() {
            spool.note_sent();
        }
        push(&mut spool, &files, 7, 100);
        push(&mut spool, &files, 8, 100);
        push(&mut spool, &files, 9, 100);
        assert_eq!(spool.room(), Room::File, "there is room again");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(usize),
        Take,
        Sent,
        MarkSlow,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            5 => (1_usize..80).prop_map(Step::Push),
            2 => Just(Step::Take),
            2 => Just(Step::Sent),
            1 => Just(Step::MarkSlow),
        ];
        proptest::collection::vec(step, 1..120)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// Whatever happens in whatever order: every byte comes out once and in its place, and what is held in memory
        /// is bounded by the bound and one more piece, or two if there is no room in files.
        #[test]
        fn bytes_keep_their_order_and_memory_its_bound(steps in steps(), bytes_max in 0_u64..2_000) {
            let folder = tempfile::tempdir().unwrap();
            let files = files(&folder, bytes_max);
            let mut spool = Spool::new(BOUNDS, None);
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
                        Piece::Shared(_) | Piece::Piped(_) => unreachable!(),
                    }
                }
            };
            for step in steps {
                match step {
                    Step::Push(len) if matches!(spool.room(), Room::Memory | Room::File) => {
                        let byte = pushed.len() as u8;
                        push(&mut spool, &files, byte, len);
                        pushed.extend(vec![byte; len]);
                    }
                    Step::Push(_) => {}
                    Step::Take => take(&mut spool, &mut unsent),
                    Step::Sent => {
                        spool.note_sent();
                        unsent = 0;
                    }
                    Step::MarkSlow => spool.mark_slow(&files),
                }
                prop_assert!(spool.waiting_in_memory + unsent < BOUNDS.memory + 2 * 80);
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
