//! Running out of descriptors: closes cached ones to make room for new ones.
//!
//! Descriptors belong to the process. One thread's file cache can use up those that another thread needs for a client
//! or an application. So caches register here, and operations that may run out of descriptors go through [`retry`].

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// Keeps descriptors open that it can do without.
pub trait Holder: Send + Sync {
    /// Closes about `count` of them, those of the least use first; returns how many were closed.
    fn release(&self, count: usize) -> usize;
}

static HOLDERS: Mutex<Vec<Weak<dyn Holder>>> = Mutex::new(Vec::new());

/// Asks `holder` from now on when descriptors run out, for as long as it lives.
pub fn register<H: Holder + 'static>(holder: &Arc<H>) {
    let holder: Weak<H> = Arc::downgrade(holder);
    let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    holders.retain(|other| other.strong_count() > 0);
    holders.push(holder);
}

/// Has every holder close some; returns how many were closed.
pub fn release() -> usize {
    // Without the lock: closing a file may take its time, and other threads need not wait for it.
    let holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    holders.iter().filter_map(Weak::upgrade).map(|holder| holder.release(RELEASED)).sum()
}

/// Whether an operation failed because the process or the system has no descriptor left.
pub fn ran_out(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// Does what makes a descriptor, and once more if there was none left and holders could close some.
///
/// # Errors
/// Those of `make`.
pub fn retry<T>(mut make: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    match make() {
        Err(errno) if ran_out(errno) && release() > 0 => make(),
        result => result,
    }
}

/// Another descriptor for an open file, by which it can only be read. Its position is its own.
///
/// # Errors
/// `ENOENT` without `/proc`; `EACCES` if this process may not read the file; `EMFILE`, `ENFILE`.
pub fn read_only(file: impl AsFd) -> Result<OwnedFd, Errno> {
    let name = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    retry(|| rustix::fs::open(&name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()))
}

/// How many descriptors this process may have at a time; `None`: any number.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// How many descriptors each holder is asked to close: enough to avoid repeated requests in a burst of clients.
const RELEASED: usize = 16;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Some16(AtomicUsize);

    impl Holder for Some16 {
        fn release(&self, count: usize) -> usize {
            self.0.swap(0, Ordering::Relaxed).min(count)
        }
    }

    #[test]
    fn an_operation_is_tried_again_once_and_only_if_something_was_closed() {
        let tries = AtomicUsize::new(0);
        let fail = |errno| {
            tries.fetch_add(1, Ordering::Relaxed);
            Err::<(), _>(errno)
        };
        assert_eq!(retry(|| fail(Errno::MFILE)), Err(Errno::MFILE));
        assert_eq!(tries.load(Ordering::Relaxed), 1, "there is no holder");
        let holder = Arc::new(Some16(AtomicUsize::new(16)));
        register(&holder);
        assert_eq!(retry(|| fail(Errno::NOENT)), Err(Errno::NOENT));
        assert_eq!(tries.load(Ordering::Relaxed), 2, "another reason");
        assert_eq!(retry(|| fail(Errno::NFILE)), Err(Errno::NFILE));
        assert_eq!(tries.load(Ordering::Relaxed), 4);
        assert_eq!(retry(|| fail(Errno::MFILE)), Err(Errno::MFILE));
        assert_eq!(tries.load(Ordering::Relaxed), 5, "the holder has none left");
        drop(holder);
        assert_eq!(release(), 0);
    }

    /// Goal: a file without a name can be read by it, and not be written.
    #[test]
    fn a_file_without_a_name_is_opened_for_reading_only() {
        let file = tempfile::tempfile().unwrap();
        rustix::io::pwrite(&file, b"abc", 0).unwrap();
        let reader = read_only(&file).unwrap();
        let mut bytes = [0; 4];
        assert_eq!(rustix::io::pread(&reader, &mut bytes, 0), Ok(3));
        assert_eq!(rustix::io::pwrite(&reader, b"x", 0), Err(Errno::BADF));
        assert!(rustix::fs::ftruncate(&reader, 0).is_err());
    }
}
