//! Files without a name, for responses to slow clients and for request bodies that are still arriving.
//!
//! The files of all workers together have a bound. Each worker counts the bytes of its own files in shared memory, and adds
//! up the counts of all before a file grows. A file counts until its last reader has closed it.

use std::collections::HashMap;
use std::fmt;
use std::io::IoSlice;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_buf::{Aggregate, FileSlice, OpenFile, gather};
use baton_shares::{ClientKey, Full, has_room};
use baton_sys::descriptors;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// Where temporary files are created, and how much space they may take.
#[derive(Clone, Debug)]
pub struct TemporaryFiles {
    /// The folder in which they are created, without a name.
    pub folder: Arc<Path>,
    /// The space that files of all folders share.
    pub space: TemporarySpace,
}

/// The space that the temporary files of all workers share, in bytes.
#[derive(Clone, Debug)]
pub struct TemporarySpace {
    worker: TemporaryCounters,
    all: Arc<[&'static AtomicU64]>,
    bytes_max: u64,
    tell: fn(fmt::Arguments<'_>),
    told: Arc<Mutex<Option<Instant>>>,
    /// Bytes that each client has in files of this worker.
    held: Arc<Mutex<HashMap<ClientKey, u64>>>,
}

/// A worker's counters of its temporary files.
#[derive(Clone, Copy, Debug)]
pub struct TemporaryCounters {
    /// Bytes in them.
    pub bytes: &'static AtomicU64,
    /// How often there was no room for more.
    pub refused: &'static AtomicU64,
}

/// Why bytes cannot be written to a temporary file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// All of them together have reached their bound.
    Bound,
    /// The client has its share, and there is not much left for others.
    Share,
    /// The file cannot be created, or cannot grow.
    Failed(Errno),
}

/// A temporary file, which only grows.
#[derive(Debug)]
pub struct TemporaryFile {
    file: Arc<OpenFile>,
    len: u64,
    reservation: Arc<Reservation>,
}

/// What one file takes of the space, until the file is closed.
#[derive(Debug)]
struct Reservation {
    space: TemporarySpace,
    client: Option<ClientKey>,
    bytes: AtomicU64,
}

impl TemporarySpace {
    /// A space without a bound. `all`: the byte counters of all workers, including this one's. `tell` writes a line to the
    /// error log.
    pub fn new(
        worker: TemporaryCounters,
        all: Arc<[&'static AtomicU64]>,
        tell: fn(fmt::Arguments<'_>),
    ) -> Self {
        Self { worker, all, bytes_max: u64::MAX, tell, told: Arc::default(), held: Arc::default() }
    }

    /// This space with another bound.
    #[must_use]
    pub fn bounded(&self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self.clone() }
    }

    fn refuse(&self, why: NoRoom) -> NoRoom {
        self.worker.refused.fetch_add(1, Ordering::Relaxed);
        why
    }

    fn used(&self) -> u64 {
        self.all.iter().fold(0, |used, worker| used.saturating_add(worker.load(Ordering::Relaxed)))
    }

    /// Logs that applications have to wait for slow clients. Once a minute: where one response finds no room, others follow.
    pub(crate) fn tell_held_up(&self, why: NoRoom) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|told| told.elapsed() >= TOLD_EVERY) {
            *told = Some(Instant::now());
            (self.tell)(format_args!(
                "applications wait for slow clients, whose responses find no room: {why}"
            ));
        }
    }

    /// Takes room for a client.
    fn take(&self, client: Option<ClientKey>, bytes: u64) -> Result<(), NoRoom> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        // The other workers may hold as much for the client, of which this one does not know.
        let of_client = client.map(|client| held.get(&client).copied().unwrap_or(0) * self.all.len() as u64);
        // Count first, then compare: two workers that race for the last bytes cannot both pass the bound.
        self.worker.bytes.fetch_add(bytes, Ordering::Relaxed);
        let taken = self.used().saturating_sub(bytes);
        has_room(of_client, taken, bytes, self.bytes_max).map_err(|full| {
            self.subtract(bytes);
            self.refuse(if full == Full::Share { NoRoom::Share } else { NoRoom::Bound })
        })?;
        if let Some(client) = client {
            *held.entry(client).or_default() += bytes;
        }
        Ok(())
    }

    fn release(&self, client: Option<ClientKey>, bytes: u64) {
        if let Some(client) = client {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(of_client) = held.get_mut(&client) {
                *of_client = of_client.saturating_sub(bytes);
                if *of_client == 0 {
                    held.remove(&client);
                }
            }
        }
        self.subtract(bytes);
    }

    fn subtract(&self, bytes: u64) {
        // Saturating: a new worker resets the counter of its slot while the old one may still be closing files.
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.worker.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
}

/// A space of this process alone, without a bound.
impl Default for TemporarySpace {
    fn default() -> Self {
        static UNSHARED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
        let [bytes, refused] = &UNSHARED;
        Self::new(TemporaryCounters { bytes, refused }, Arc::new([bytes]), |_| {})
    }
}

impl TemporaryFile {
    /// An empty file, for a client.
    ///
    /// # Errors
    /// [`NoRoom::Failed`]: the folder is missing or not writable, or its file system has no `O_TMPFILE`.
    pub fn create(files: &TemporaryFiles, client: Option<ClientKey>) -> Result<Self, NoRoom> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let open = || rustix::fs::open(&*files.folder, flags, Mode::RUSR | Mode::WUSR);
        let descriptor =
            descriptors::retry(open).map_err(|errno| files.space.refuse(NoRoom::Failed(errno)))?;
        let reservation =
            Arc::new(Reservation { space: files.space.clone(), client, bytes: AtomicU64::new(0) });
        let held = Arc::clone(&reservation);
        Ok(Self { file: Arc::new(OpenFile::holding(descriptor, held)), len: 0, reservation })
    }

    /// Bytes in it.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it.
    pub fn slice(&self) -> FileSlice {
        FileSlice::new(Arc::clone(&self.file), 0, self.len)
    }

    /// Appends pieces and returns their slice of the file. After an error, the file is unchanged.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn append(&mut self, mut pieces: Aggregate) -> Result<FileSlice, NoRoom> {
        let (start, bytes) = (self.len, pieces.len());
        self.grow(bytes, |file, offset| {
            let written = gather::write_at(file, pieces.pieces(), offset);
            let written = written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
            pieces.advance(written as u64);
            Ok(written)
        })?;
        Ok(FileSlice::new(Arc::clone(&self.file), start, bytes))
    }

    /// Appends bytes. After an error, the file is unchanged.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn append_bytes(&mut self, mut bytes: &[u8]) -> Result<(), NoRoom> {
        self.grow(bytes.len() as u64, |file, offset| {
            let written = rustix::io::pwritev(file, &[IoSlice::new(bytes)], offset)?;
            bytes = &bytes[written..];
            Ok(written)
        })
    }

    /// `write` writes some of the bytes at an offset and returns how many.
    fn grow(
        &mut self,
        bytes: u64,
        mut write: impl FnMut(&OpenFile, u64) -> Result<usize, Errno>,
    ) -> Result<(), NoRoom> {
        self.reservation.grow(bytes)?;
        let (end, mut at) = (self.len + bytes, self.len);
        while at < end {
            match write(&self.file, at) {
                Ok(written @ 1..) => at += written as u64,
                Ok(0) => return Err(self.shrink(bytes, Errno::IO)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.shrink(bytes, errno)),
            }
        }
        self.len = end;
        Ok(())
    }

    fn shrink(&self, bytes: u64, errno: Errno) -> NoRoom {
        self.reservation.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.reservation.space.release(self.reservation.client, bytes);
        // Free what was written: the next attempt begins at the same offset. If truncating fails, the bytes stay but do
        // no harm.
        let _ = rustix::fs::ftruncate(&*self.file, self.len);
        self.reservation.space.refuse(NoRoom::Failed(errno))
    }
}

impl Reservation {
    fn grow(&self, bytes: u64) -> Result<(), NoRoom> {
        self.space.take(self.client, bytes)?;
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.space.release(self.client, bytes);
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound => {
                f.write_str("all temporary files together have reached `limits.temporary_bytes_max`")
            }
            Self::Share => f.write_str(
                "the client has its share of `limits.temporary_bytes_max`, most of which is taken",
            ),
            Self::Failed(errno) => {
                write!(f, "a file in `temporary_folder` cannot be written: {errno}")?;
                f.write_str(match *errno {
                    Errno::NOSPC | Errno::DQUOT => "; other files fill the disk",
                    Errno::ACCESS | Errno::ROFS => "; the workers' user needs the right to write there",
                    Errno::OPNOTSUPP => "; its file system has no files without names",
                    _ => "",
                })
            }
        }
    }
}

const TOLD_EVERY: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    /// Two workers, each with its own counter.
    fn workers(bytes_max: u64) -> [TemporarySpace; 2] {
        let [one, two, refused]: [&'static AtomicU64; 3] =
            std::array::from_fn(|_| &*Box::leak(Box::default()));
        [one, two].map(|bytes| {
            let counters = TemporaryCounters { bytes, refused };
            TemporarySpace::new(counters, Arc::new([one, two]), |_| {}).bounded(bytes_max)
        })
    }

    #[test]
    fn files_of_all_workers_share_the_room_until_they_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let [mut one, mut two] = workers(100)
            .map(|space| TemporaryFiles { folder: folder.path().into(), space })
            .map(|files| TemporaryFile::create(&files, None).unwrap());
        one.append_bytes(&[1; 60]).unwrap();
        assert_eq!(two.append_bytes(&[2; 41]), Err(NoRoom::Bound));
        two.append_bytes(&[2; 40]).unwrap();
        let sent = one.slice();
        drop(one);
        assert_eq!(two.append_bytes(&[2; 1]), Err(NoRoom::Bound), "it is still being sent");
        drop(sent);
        two.append_bytes(&[2; 60]).unwrap();
        assert_eq!((two.len(), two.reservation.space.used()), (100, 100));
        assert_eq!(two.reservation.space.worker.refused.load(Ordering::Relaxed), 2);
    }

    /// Goal: three slow readers at one address leave room for the upload of another.
    #[test]
    fn one_client_leaves_room_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = workers(400).map(|space| TemporaryFiles { folder: folder.path().into(), space });
        let client = |last| Some(ClientKey::of([192, 0, 2, last].into()));
        let create = |files, last| TemporaryFile::create(files, client(last)).unwrap();
        let mut slow = [create(&one, 1), create(&one, 1), create(&two, 1)];
        assert!(slow.iter_mut().all(|file| file.append_bytes(&[1; 100]).is_ok()), "on a quiet server");
        assert_eq!(slow[0].append_bytes(&[1]), Err(NoRoom::Share));
        assert_eq!(slow[2].append_bytes(&[1]), Err(NoRoom::Share), "another worker has no more for it");
        let mut other = create(&one, 2);
        other.append_bytes(&[2; 50]).unwrap();
        drop(slow);
        other.append_bytes(&[2; 250]).unwrap();
        drop(other);
        assert_eq!((one.space.used(), one.space.held.lock().unwrap().len()), (0, 0));
    }

    #[test]
    fn what_cannot_be_written_takes_no_room() {
        let [space, _] = workers(100);
        let mut file = TemporaryFile {
            file: Arc::new(OpenFile::from(std::os::fd::OwnedFd::from(
                std::fs::File::open("/dev/null").unwrap(),
            ))),
            len: 0,
            reservation: Arc::new(Reservation {
                space: space.clone(),
                client: None,
                bytes: AtomicU64::new(0),
            }),
        };
        assert_eq!(file.append_bytes(&[1; 60]), Err(NoRoom::Failed(Errno::BADF)));
        assert_eq!((file.len(), space.used()), (0, 0));
        let files = TemporaryFiles { folder: Path::new("/nonexistent").into(), space };
        assert_eq!(TemporaryFile::create(&files, None).unwrap_err(), NoRoom::Failed(Errno::NOENT));
    }
}
