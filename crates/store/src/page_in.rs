//! The threads that read blocks which are not in memory, and compare them with their checksums, so that no event loop
//! waits for the disk.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use baton_sys::blocking::Blocking;

use crate::key::BlockId;
use crate::shared::Shared;
use crate::table::Found;

/// A few threads, started when there is something to read.
#[derive(Debug, Default)]
pub(crate) struct PageIn {
    work: Arc<Work>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wanted: VecDeque<Wanted>,
    idle: usize,
    is_ending: bool,
}

/// A block to be read, if it is one, and what is called then.
type Wanted = (Option<BlockId>, Box<dyn FnOnce() + Send>);

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("wanted", &self.wanted.len()).field("idle", &self.idle).finish()
    }
}

impl PageIn {
    /// Reads a block behind the caller, then calls `done`; `None`: `done` itself reads. If no thread can be started, it is called
    /// at once.
    pub(crate) fn read(&self, shared: &Arc<Shared>, id: Option<BlockId>, done: Box<dyn FnOnce() + Send>) {
        let has_thread = {
            let mut state = self.work.lock();
            state.wanted.push_back((id, done));
            state.idle >= state.wanted.len()
        };
        self.work.changed.notify_one();
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if has_thread || threads.len() >= THREADS_MAX {
            return;
        }
        let (work, shared) = (Arc::clone(&self.work), Arc::clone(shared));
        match std::thread::Builder::new().name("store-read".into()).spawn(move || work.run(&shared)) {
            Ok(thread) => threads.push(thread),
            Err(_) if !threads.is_empty() => {}
            Err(_) => self.work.take_all().into_iter().for_each(|(_, done)| done()),
        }
    }

    /// Ends the threads. What is still wanted is not read.
    pub(crate) fn end(&self) {
        self.work.lock().is_ending = true;
        self.work.changed.notify_all();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // A panic has been reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl Work {
    fn run(&self, shared: &Arc<Shared>) {
        while let Some((id, done)) = self.next() {
            // The lock of the table is not held while the disk is read.
            let found = id.and_then(|id| Some((id, shared.table.of(&id.key).find(&id)?)));
            if let Some((id, Found::Disk { block, file: _file, volume })) = found
                && !block.is_verified
            {
                // The block is verified or forgotten after this; the caller looks again.
                let _ = shared.verified(&id, &block, &volume, Blocking::Allowed);
            }
            done();
        }
    }

    fn next(&self) -> Option<Wanted> {
        let mut state = self.lock();
        loop {
            if state.is_ending {
                return None;
            }
            if let Some(wanted) = state.wanted.pop_front() {
                return Some(wanted);
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn take_all(&self) -> VecDeque<Wanted> {
        std::mem::take(&mut self.lock().wanted)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A disk works on several reads at a time; more threads than this only queue there.
const THREADS_MAX: usize = 4;
