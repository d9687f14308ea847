//! The descriptors of handled connections.

use std::ops::Deref;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use crate::connection::{Connection, ENDING};

/// Descriptors from here on are not looked at. The table takes memory only where it is used.
const DESCRIPTORS_MAX: usize = 1 << 16;

static TABLE: [AtomicPtr<Connection>; DESCRIPTORS_MAX] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; DESCRIPTORS_MAX];

/// No descriptor above was ever in the table.
static HIGHEST: AtomicI32 = AtomicI32::new(-1);

/// The socket that accepted the last connection.
static LISTENER: AtomicI32 = AtomicI32::new(-1);

/// All connections that were ever made: they are used again, and never freed.
static CONNECTIONS: AtomicPtr<Connection> = AtomicPtr::new(std::ptr::null_mut());

/// The process whose memory this is.
static PROCESS: AtomicI32 = AtomicI32::new(0);

/// A connection, while a call uses it: so long it is not used for another one.
pub(crate) struct InUse(&'static Connection);

impl Deref for InUse {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::SeqCst);
        self.0.end_if_unused();
    }
}

/// The connection of `fd`.
pub(crate) fn find(fd: RawFd) -> Option<InUse> {
    let slot = slot(fd)?;
    let found = slot.load(Ordering::Relaxed);
    // SAFETY: entries of the table were made by `unused`, and are never freed.
    let connection = unsafe { found.as_ref() }?;
    connection.users.fetch_add(1, Ordering::SeqCst);
    let in_use = InUse(connection);
    // It may have been used for another one before it was counted as used.
    (slot.load(Ordering::SeqCst) == found).then_some(in_use)
}

/// From now on `fd`, a connection that has just been accepted from `listener`, is looked at.
pub(crate) fn adopt(fd: RawFd, listener: RawFd) {
    static PREPARED: Once = Once::new();
    let Some(slot) = slot(fd) else { return };
    PREPARED.call_once(|| {
        note_process();
        // SAFETY: `enter_child` may be called in a child of any fork: see there.
        unsafe { libc::pthread_atfork(None, None, Some(enter_child)) };
    });
    HIGHEST.fetch_max(fd, Ordering::SeqCst);
    LISTENER.store(listener, Ordering::Relaxed);
    let connection = unused();
    connection.progress.begin(PROCESS.load(Ordering::Relaxed));
    put(slot, std::ptr::from_ref(connection).cast_mut());
}

/// Whether connections come from `fd`.
pub(crate) fn is_listener(fd: RawFd) -> bool {
    fd >= 0 && LISTENER.load(Ordering::Relaxed) == fd
}

/// The process accepts no further connections: php-fpm closes its listening socket in the handler of the signal to
/// end. Signal-safe.
pub(crate) fn leave() {
    LISTENER.store(-1, Ordering::Relaxed);
    for fd in 0..=HIGHEST.load(Ordering::SeqCst) {
        if let Some(connection) = find(fd) {
            // SAFETY: it is open, as long as it is in the table.
            connection.progress.leave(unsafe { BorrowedFd::borrow_raw(fd) });
        }
    }
}

/// `copy` has been made of `fd`.
pub(crate) fn share(fd: RawFd, copy: RawFd) {
    let found = find(fd);
    let Some(slot) = slot(copy) else { return };
    let connection = found.as_ref().map_or(std::ptr::null(), |found| {
        HIGHEST.fetch_max(copy, Ordering::SeqCst);
        found.descriptors.fetch_add(1, Ordering::SeqCst);
        std::ptr::from_ref(found.0)
    });
    put(slot, connection.cast_mut());
}

/// `fd` is closed, or left alone from now on.
pub(crate) fn forget(fd: RawFd) {
    if let Some(slot) = slot(fd).filter(|slot| !slot.load(Ordering::Relaxed).is_null()) {
        put(slot, std::ptr::null_mut());
    }
}

/// All descriptors from `first` to `last` are closed.
pub(crate) fn forget_range(first: RawFd, last: RawFd) {
    for fd in first..=last.min(HIGHEST.load(Ordering::SeqCst)) {
        forget(fd);
    }
}

/// Whether the memory is the calling process's. A child of `vfork` shares its parent's, and closes its own
/// descriptors before `exec`.
pub(crate) fn is_of_this_process() -> bool {
    PROCESS.load(Ordering::Relaxed) == rustix::process::getpid().as_raw_nonzero().get()
}

fn slot(fd: RawFd) -> Option<&'static AtomicPtr<Connection>> {
    TABLE.get(usize::try_from(fd).ok()?)
}

fn put(slot: &AtomicPtr<Connection>, connection: *mut Connection) {
    let before = slot.swap(connection, Ordering::SeqCst);
    // SAFETY: as in `find`.
    if let Some(before) = unsafe { before.as_ref() } {
        before.lose_descriptor();
    }
}

impl Connection {
    fn lose_descriptor(&self) {
        let ends = |count: u32| Some(if count == 1 { ENDING } else { count - 1 });
        if self.descriptors.fetch_update(Ordering::SeqCst, Ordering::SeqCst, ends) == Ok(1) {
            self.end_if_unused();
        }
    }

    fn end_if_unused(&self) {
        if self.descriptors.load(Ordering::SeqCst) == ENDING && self.users.load(Ordering::SeqCst) == 0 {
            self.end();
        }
    }
}

/// An unused connection.
fn unused() -> &'static Connection {
    let free = all().find(|connection| {
        connection.descriptors.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    });
    free.unwrap_or_else(|| {
        let made: &'static Connection = Box::leak(Box::new(Connection::new()));
        let mut first = CONNECTIONS.load(Ordering::Acquire);
        loop {
            made.next.store(first, Ordering::Release);
            let made = std::ptr::from_ref(made).cast_mut();
            match CONNECTIONS.compare_exchange(first, made, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
        made
    })
}

fn all() -> impl Iterator<Item = &'static Connection> {
    // SAFETY: entries of the list were made by `unused`, and are never freed.
    let follow = |next: &AtomicPtr<Connection>| unsafe { next.load(Ordering::Acquire).as_ref() };
    std::iter::successors(follow(&CONNECTIONS), move |connection| follow(&connection.next))
}

fn note_process() {
    PROCESS.store(rustix::process::getpid().as_raw_nonzero().get(), Ordering::Relaxed);
}

/// A child has one thread. What another thread was using is unusable, and stays with the parent.
extern "C" fn enter_child() {
    note_process();
    for fd in 0..=HIGHEST.load(Ordering::SeqCst) {
        let Some(slot) = slot(fd) else { return };
        // SAFETY: as in `find`.
        let connection = unsafe { slot.load(Ordering::SeqCst).as_ref() };
        if connection
            .is_some_and(|connection| connection.inbox.now().is_none() || connection.outgoing.now().is_none())
        {
            slot.store(std::ptr::null_mut(), Ordering::SeqCst);
        }
    }
}
