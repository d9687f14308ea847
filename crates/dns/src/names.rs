//! The names of a process, and the thread that looks them up.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use baton_report::log::{notice, warning};

use crate::{Change, Lookup, Outcome, Refresh};

/// A name that is kept up to date as long as it is held.
#[derive(Debug)]
pub struct Name {
    host: Box<str>,
    refresh: Mutex<Refresh>,
    /// Whose turn it is among the addresses.
    turn: AtomicUsize,
    shared: Weak<Shared>,
}

/// The names that are kept up to date. The thread ends with the last handle.
#[derive(Debug)]
pub struct Names {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    lookup: Mutex<Lookup>,
    begun: Instant,
    watched: Mutex<NameRegistry>,
    /// Something is due earlier, or the last handle is gone.
    news: Condvar,
    /// A name was looked up.
    settled: Condvar,
}

#[derive(Debug, Default)]
struct NameRegistry {
    names: Vec<Weak<Name>>,
    has_thread: bool,
    closed: bool,
}

impl Name {
    /// The name.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its addresses, those of IPv4 first; none if none were found yet, or the name is gone. Never waits for a lookup.
    pub fn addresses(&self) -> Arc<[IpAddr]> {
        Arc::clone(lock(&self.refresh).addresses())
    }

    /// Its addresses, beginning with the next one at each call, so that connections spread over them.
    pub fn in_turn(&self) -> impl Iterator<Item = IpAddr> + use<> {
        let addresses = self.addresses();
        let first = self.turn.fetch_add(1, Relaxed);
        (0..addresses.len()).map(move |step| addresses[(first.wrapping_add(step)) % addresses.len()])
    }

    /// None of its addresses can be connected to: looks it up within a second, however long the answer says that it holds.
    pub fn hurry(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        lock(&self.refresh).hurry(shared.now_ms());
        // The thread must not go to sleep between looking and waiting.
        drop(lock(&shared.watched));
        shared.news.notify_one();
    }

    /// Whether it was looked up.
    fn is_settled(&self) -> bool {
        lock(&self.refresh).due_ms() > 0
    }
}

impl Names {
    /// No names yet, and no thread.
    pub fn new(lookup: Lookup) -> Self {
        let shared = Shared {
            lookup: Mutex::new(lookup),
            begun: Instant::now(),
            watched: Mutex::default(),
            news: Condvar::new(),
            settled: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// A name that is kept up to date once [`begin`](Self::begin) was called.
    pub fn watch(&self, host: &str) -> Arc<Name> {
        let mut watched = lock(&self.shared.watched);
        watched.names.retain(|name| name.strong_count() > 0);
        let known = watched.names.iter().filter_map(Weak::upgrade);
        if let Some(name) = known.into_iter().find(|name| name.host.eq_ignore_ascii_case(host)) {
            return name;
        }
        let shared = Arc::downgrade(&self.shared);
        let name = Name { host: host.into(), refresh: Mutex::default(), turn: AtomicUsize::new(0), shared };
        let name = Arc::new(name);
        watched.names.push(Arc::downgrade(&name));
        drop(watched);
        self.shared.news.notify_one();
        name
    }

    /// Asks these DNS servers instead of the system's from now on; none: the system's.
    pub fn ask(&self, servers: &[SocketAddr]) {
        lock(&self.shared.lookup).servers = servers.to_vec();
    }

    /// Has the names looked up, if there are any, by a thread that the first call starts: a process must have forked before.
    /// Waits until each was looked up once, at most `patience`. Returns whether they were.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn begin(&self, patience: Duration) -> std::io::Result<bool> {
        let mut watched = lock(&self.shared.watched);
        if !watched.has_thread && watched.names.iter().any(|name| name.strong_count() > 0) {
            let shared = Arc::clone(&self.shared);
            let thread = std::thread::Builder::new().name("names".into()).stack_size(STACK_BYTES);
            thread.spawn(move || shared.run())?;
            watched.has_thread = true;
        }
        let until = Instant::now() + patience;
        loop {
            if watched.names.iter().filter_map(Weak::upgrade).all(|name| name.is_settled()) {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let waited = self.shared.settled.wait_timeout(watched, left);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Default for Names {
    fn default() -> Self {
        Self::new(Lookup::default())
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        lock(&self.shared.watched).closed = true;
        self.shared.news.notify_one();
    }
}

impl Shared {
    fn now_ms(&self) -> u64 {
        // Never 0, which means that a name was never looked up.
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// The thread.
    fn run(&self) {
        while let Some(name) = self.next_due() {
            let lookup = lock(&self.lookup).clone();
            let outcome = lookup.look_up(&name.host);
            self.take(&name, &outcome);
        }
    }

    /// Waits for a name to be due. `None`: it is over.
    fn next_due(&self) -> Option<Arc<Name>> {
        let mut watched = lock(&self.watched);
        loop {
            if watched.closed {
                return None;
            }
            watched.names.retain(|name| name.strong_count() > 0);
            let first = watched
                .names
                .iter()
                .filter_map(Weak::upgrade)
                .map(|name| {
                    let due_ms = lock(&name.refresh).due_ms();
                    (due_ms, name)
                })
                .min_by_key(|(due_ms, _)| *due_ms);
            let now_ms = self.now_ms();
            watched = match first {
                Some((due_ms, name)) if due_ms <= now_ms => return Some(name),
                Some((due_ms, _)) => {
                    let wait = Duration::from_millis(due_ms - now_ms);
                    self.news.wait_timeout(watched, wait).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.news.wait(watched).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn take(&self, name: &Name, outcome: &Outcome) {
        let change = lock(&name.refresh).handle(outcome, self.now_ms());
        drop(lock(&self.watched));
        self.settled.notify_all();
        let host = &name.host;
        match change {
            Some(Change::Addresses(addresses)) => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                notice(format_args!("{host}: its addresses are now {}", addresses.join(", ")));
            }
            Some(Change::Failing { error, keeps }) => {
                warning(format_args!("{host}: cannot be looked up: {error}{}", kept(keeps)));
            }
            Some(Change::Absent { keeps }) => {
                warning(format_args!("{host}: DNS and the system know no address of it{}", kept(keeps)));
            }
            Some(Change::Recovered) => notice(format_args!("{host}: can be looked up again")),
            None => {}
        }
    }
}

fn kept(keeps: bool) -> &'static str {
    if keeps { "; the last answer counts" } else { "; requests for it are answered 502" }
}

/// What a panic leaves is whole: each change is one assignment.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `getaddrinfo` loads modules of the C library, which take some stack.
const STACK_BYTES: usize = 512 * 1024;
