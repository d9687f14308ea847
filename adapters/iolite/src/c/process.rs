//! What this process has: the standard pool, and what is known of its descriptors. A child begins with neither.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};

use rustix::io::Errno;

use super::{Code, code_of};
use crate::{Allocator, Reader, Writer};

/// A descriptor, until the program closes it or uses its number for another file.
#[derive(Clone)]
pub(super) struct Known {
    /// Device and number of its file, by which another one is noticed.
    file: (u64, u64),
    pub(super) reader: Arc<Mutex<Option<Reader<BorrowedFd<'static>>>>>,
    pub(super) writer: Arc<Mutex<Writer<BorrowedFd<'static>>>>,
}

struct Process {
    allocator: Allocator,
    known: HashMap<RawFd, Known>,
}

/// The standard pool.
pub(super) fn default_allocator() -> Result<Allocator, Code> {
    with_process(|process| Ok(process.allocator.clone()))
}

/// What is known of a descriptor.
pub(super) fn known(descriptor: RawFd) -> Result<Known, Code> {
    if descriptor < 0 {
        return Err(libc::EBADF);
    }
    // SAFETY: the program keeps it open during the call, and `file` notices when it has become another one since.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    let stat = rustix::fs::fstat(borrowed).map_err(Errno::raw_os_error)?;
    let file = (stat.st_dev, stat.st_ino);
    with_process(|process| {
        if let Some(known) = process.known.get(&descriptor).filter(|known| known.file == file) {
            return Ok(known.clone());
        }
        let writer = Arc::new(Mutex::new(Writer::new(borrowed)));
        let known = Known { file, reader: Arc::default(), writer };
        process.known.insert(descriptor, known.clone());
        Ok(known)
    })
}

/// Forgets a descriptor that is to be closed.
pub(super) fn forget(descriptor: RawFd) -> Result<(), Code> {
    with_process(|process| {
        process.known.remove(&descriptor);
        Ok(())
    })
}

fn with_process<R>(run: impl FnOnce(&mut Process) -> Result<R, Code>) -> Result<R, Code> {
    static PROCESS: Mutex<Option<Process>> = Mutex::new(None);
    let mut process = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    if is_child() {
        // Two processes that take chunks of one pool would write over each other's bytes.
        *process = None;
    }
    let process = match &mut *process {
        Some(process) => process,
        none => {
            let allocator = Allocator::new().map_err(|error| code_of(&error))?;
            none.insert(Process { allocator, known: HashMap::new() })
        }
    };
    run(process)
}

/// Whether this process was forked since the last call.
fn is_child() -> bool {
    static FORKED: AtomicBool = AtomicBool::new(false);
    static PREPARED: Once = Once::new();
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    PREPARED.call_once(|| {
        // SAFETY: the handler only stores a flag.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
    FORKED.swap(false, Ordering::Relaxed)
}
