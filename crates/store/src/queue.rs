//! What waits for the disk: loops put in, the writer takes out. Bounded in bytes and in number.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baton_buf::{Buffer, Slice};

use crate::key::{BlockId, Key};
use crate::slots::Allocation;

/// Something for the writer to do.
#[derive(Debug)]
pub(crate) enum Op {
    /// Note the record of an object.
    Object { key: Key, generation: u32, kind: u8, replaces: bool, record: Buffer },
    /// Write a block.
    Block { id: BlockId, bytes: Slice, allocated: Allocation, reuse: Reuse },
    /// Note that a block is gone.
    BlockGone { key: Key, number: u32 },
    /// Note that an object is gone.
    ObjectGone { key: Key },
    /// Make everything before durable, then call this.
    Sync(Done),
}

/// Whether a block is likely to be read again soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The block stays in memory as long as the kernel likes.
    Likely,
    /// The block leaves the memory once the disk has it.
    Unlikely,
}

/// What is called when all that was done before is durable, or is known not to be. It must not block.
pub(crate) struct Done(pub(crate) Box<dyn FnOnce(Result<(), NotDurable>) + Send>);

impl fmt::Debug for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Done")
    }
}

/// The disk does not work: what was done counts in this process, and is lost if it ends before the disk works again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDurable;

/// Why an operation is not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Too much waits already.
    Full,
    /// The disk does not work.
    Closed,
}

/// The queue of a store.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    bytes_max: u64,
}

#[derive(Debug)]
struct State {
    ops: VecDeque<Op>,
    bytes: u64,
    /// Bytes of operations that were taken since the writer last waited: it waits once its journal is in the file.
    taken_bytes: u64,
    phase: Phase,
    is_ending: bool,
    missed: JournalGaps,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is known of the disk yet: [`Op::Sync`] waits, all else is refused.
    Opening,
    /// The writer takes what comes.
    Open,
    /// The disk does not work.
    Closed,
    /// There is none.
    Off,
}

/// What the journal lacks.
#[derive(Debug, Default)]
pub(crate) struct JournalGaps {
    /// Something: the journal must be written anew before anything is durable.
    pub(crate) any: bool,
    /// Objects that were removed.
    pub(crate) removed: HashSet<Key, foldhash::fast::RandomState>,
    /// More than those.
    pub(crate) more_removed: bool,
}

/// What [`Queue::wait`] has waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// There may be something to do, or it is time.
    Go,
    /// The store ends, and the queue is empty.
    End,
}

impl Queue {
    /// A queue in front of a disk, or of none.
    pub(crate) fn new(bytes_max: u64, has_disk: bool) -> Self {
        let state = State {
            ops: VecDeque::new(),
            bytes: 0,
            taken_bytes: 0,
            phase: if has_disk { Phase::Opening } else { Phase::Off },
            is_ending: false,
            missed: JournalGaps::default(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), bytes_max }
    }

    /// Bytes that a process which ends now would lose.
    pub(crate) fn bytes(&self) -> u64 {
        let state = self.lock();
        state.bytes + state.taken_bytes
    }

    /// Adds an operation. A refused [`Op::Object`] or [`Op::Block`] changes nothing. What else is refused is missed: the
    /// journal will be written anew.
    pub(crate) fn push(&self, op: Op) -> Result<(), Refused> {
        let mut state = self.lock();
        match state.phase {
            Phase::Open => {}
            Phase::Off => return Err(Refused::Closed),
            Phase::Opening | Phase::Closed => {
                state.missed.miss(&op);
                return Err(Refused::Closed);
            }
        }
        let bytes = op.bytes();
        let is_full = state.ops.len() >= OPS_MAX || (bytes > 0 && state.bytes + bytes > self.bytes_max);
        if is_full {
            if !matches!(op, Op::Object { .. } | Op::Block { .. }) {
                state.missed.miss(&op);
            }
            return Err(Refused::Full);
        }
        state.bytes += bytes;
        state.ops.push_back(op);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Adds an operation that is missed if it is refused, whatever it is. Returns whether it is queued.
    pub(crate) fn push_mark(&self, op: Op) -> bool {
        let mut state = self.lock();
        let is_queued = state.phase == Phase::Open && state.ops.len() < OPS_MAX;
        if is_queued {
            state.bytes += op.bytes();
            state.ops.push_back(op);
            drop(state);
            self.changed.notify_one();
        } else if state.phase != Phase::Off {
            state.missed.miss(&op);
        }
        is_queued
    }

    /// Adds a sync, which is called at once if the disk does not work or too many wait.
    pub(crate) fn push_sync(&self, done: Done) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Closed | Phase::Off) || state.ops.len() >= OPS_MAX {
            drop(state);
            return (done.0)(Err(NotDurable));
        }
        state.ops.push_back(Op::Sync(done));
        drop(state);
        self.changed.notify_one();
    }

    /// The next operation, while the disk works.
    pub(crate) fn next(&self) -> Option<Op> {
        let mut state = self.lock();
        if state.phase != Phase::Open {
            return None;
        }
        let op = state.ops.pop_front()?;
        state.bytes -= op.bytes();
        state.taken_bytes += op.bytes();
        Some(op)
    }

    /// Waits until there is an operation, or until `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> WaitOutcome {
        let mut state = self.lock();
        state.taken_bytes = 0;
        loop {
            if state.phase == Phase::Open && !state.ops.is_empty() {
                return WaitOutcome::Go;
            }
            if state.is_ending {
                return WaitOutcome::End;
            }
            let Some(deadline) = deadline else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return WaitOutcome::Go };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The disk works: from now on the writer takes what comes.
    pub(crate) fn open(&self) {
        self.lock().phase = Phase::Open;
    }

    /// The disk does not work. Returns what waited.
    pub(crate) fn close(&self) -> VecDeque<Op> {
        let mut state = self.lock();
        state.phase = Phase::Closed;
        state.bytes = 0;
        let State { ops, missed, .. } = &mut *state;
        ops.iter().for_each(|op| missed.miss(op));
        std::mem::take(ops)
    }

    /// What has been missed since this was last asked.
    pub(crate) fn take_missed(&self) -> JournalGaps {
        std::mem::take(&mut self.lock().missed)
    }

    /// Ends the writer once the queue is empty.
    pub(crate) fn end(&self) {
        self.lock().is_ending = true;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalGaps {
    fn miss(&mut self, op: &Op) {
        match op {
            Op::Block { .. } | Op::Sync(_) => {}
            Op::Object { .. } | Op::BlockGone { .. } => self.any = true,
            Op::ObjectGone { key } => {
                self.any = true;
                if self.removed.len() < REMOVED_MAX {
                    self.removed.insert(*key);
                } else {
                    self.more_removed = true;
                }
            }
        }
    }
}

impl Op {
    /// Bytes that count against the bound of the queue.
    fn bytes(&self) -> u64 {
        match self {
            Self::Object { record, .. } => record.len() as u64 + OBJECT_OVERHEAD_BYTES,
            Self::Block { bytes, .. } => bytes.len() as u64,
            Self::BlockGone { .. } | Self::ObjectGone { .. } | Self::Sync(_) => 0,
        }
    }
}

/// Most operations that wait: some megabytes of them.
const OPS_MAX: usize = 64 << 10;

/// Most keys that are remembered as removed while there is no journal; if there are more, the journal that is found
/// later is void.
const REMOVED_MAX: usize = 64 << 10;

/// What a record takes beside its bytes, about.
const OBJECT_OVERHEAD_BYTES: u64 = 128;
