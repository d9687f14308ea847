//! The threads that follow etcd: one asks for everything now and then, one is told of changes at once.
//!
//! The watch is what makes changes quick. The ranges find out whether etcd answers at all, begin each watch, and make good what
//! a watch has missed: data that was lost, a connection that hangs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, TrySendError, sync_channel};
use std::thread::Builder;
use std::time::Duration;

use crate::etcd::Api;
use crate::inputs::Input;

/// The threads, as the first one sees them.
#[derive(Debug)]
pub(crate) struct Follower {
    api: Arc<Api>,
    inputs: Sender<Input>,
    /// The view's revision.
    known: Arc<AtomicI64>,
    /// Asks for a range now.
    hurry: SyncSender<()>,
    /// The number of the watch that counts.
    watch: Arc<AtomicU64>,
    is_watching: bool,
}

impl Follower {
    /// Asks for a range at once, and again after each `interval`.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(api: Arc<Api>, interval: Duration, inputs: Sender<Input>) -> io::Result<Self> {
        let known = Arc::new(AtomicI64::new(0));
        let (hurry, hurried) = sync_channel(1);
        let (asking, shared, tell) = (Arc::clone(&api), Arc::clone(&known), inputs.clone());
        Builder::new().name("ranges".into()).spawn(move || {
            loop {
                let asked_at = shared.load(Relaxed);
                if tell.send(Input::Range(asking.range(), asked_at)).is_err() {
                    return;
                }
                match hurried.recv_timeout(interval) {
                    Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        })?;
        Ok(Self { api, inputs, known, hurry, watch: Arc::default(), is_watching: false })
    }

    /// The view is of this revision: changes after it are told from now on. Returns whether another watch begins for that.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn follow(&mut self, revision: i64, anew: bool) -> io::Result<bool> {
        self.known.store(revision, Relaxed);
        if self.is_watching && !anew {
            return Ok(false);
        }
        let number = self.watch.fetch_add(1, Relaxed) + 1;
        let (api, current, tell) = (Arc::clone(&self.api), Arc::clone(&self.watch), self.inputs.clone());
        Builder::new().name("watch".into()).spawn(move || {
            let mut watch = api.watch(revision + 1, WATCH_IDLE).ok();
            loop {
                let line = watch.as_mut().and_then(|watch| watch.next().ok().flatten());
                let is_over = line.is_none();
                // Another watch has taken its place.
                let is_stale = current.load(Relaxed) != number;
                if is_stale || tell.send(Input::Watched(number, line)).is_err() || is_over {
                    return;
                }
            }
        })?;
        self.is_watching = true;
        Ok(true)
    }

    /// The view's revision, after events.
    pub(crate) fn note(&self, revision: i64) {
        self.known.store(revision, Relaxed);
    }

    /// Whether the watch with this number counts.
    pub(crate) fn is_current(&self, number: u64) -> bool {
        self.is_watching && self.watch.load(Relaxed) == number
    }

    /// The watch has ended. `hurry`: all is asked for at once.
    pub(crate) fn handle_end(&mut self, hurry: bool) {
        self.is_watching = false;
        if hurry {
            self.hurry();
        }
    }

    /// Asks for all now.
    pub(crate) fn hurry(&self) {
        // One is enough.
        if let Err(TrySendError::Disconnected(())) = self.hurry.try_send(()) {
            baton_report::log::error("the thread that asks etcd has ended");
        }
    }
}

/// How long a watch may be silent: a connection that the network has forgotten is made anew then.
const WATCH_IDLE: Duration = Duration::from_secs(60);
