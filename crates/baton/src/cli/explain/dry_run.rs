//! Lets the real engine answer a request over a private socket: the explanation cannot differ from the server.

use std::fs::DirBuilder;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use baton_cache::SharedCache;
use baton_engine::heartbeat::Heartbeats;
use baton_engine::{
    ArchitectureName, ListenAddress, ListenOptions, Listener, Steering, Tuning, Worker, bind, run,
};
use baton_site::plan::Plan;
use baton_telemetry::log::SiteLogs;
use baton_telemetry::metrics::Counters;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::forwarded::{Forwarded, head};

/// What a request leads to.
#[derive(Debug)]
pub(super) struct Rehearsal {
    /// The head of the response, up to the empty line.
    pub(super) response: String,
    /// What an origin or an application gets, if one does.
    pub(super) forwarded: Option<Forwarded>,
}

/// A place where requests are rehearsed.
pub(super) struct DryRun {
    room: Room,
    /// In the place of all origins and applications.
    origin: UnixListener,
}

impl DryRun {
    /// A place of its own.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written to.
    pub(super) fn new() -> io::Result<Self> {
        let room = Room::new()?;
        let origin = UnixListener::bind(room.origin())?;
        origin.set_nonblocking(true)?;
        Ok(Self { room, origin })
    }

    /// The socket that stands for all origins and applications: they get the request, and do not answer.
    pub(super) fn stand_in(&self) -> PathBuf {
        self.room.origin()
    }

    /// Lets the engine answer a request that arrives at the listener with this id.
    ///
    /// # Errors
    /// The engine could not begin, or gave no answer.
    pub(super) fn ask(
        &self,
        plan: Arc<Plan>,
        tuning: Tuning,
        listener: usize,
        request: &[u8],
    ) -> io::Result<Rehearsal> {
        let address = ListenAddress::Unix(self.room.socket());
        let options =
            ListenOptions { backlog: 1, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
        let socket = bind(&address, &options)?;
        let steering = Arc::new(Steering::new());
        // Every architecture gives the same answer; this one takes no second thread.
        let tuning = Tuning { architecture: ArchitectureName::Sped, ..tuning };
        let heartbeats = Heartbeats::allocate(1, &tuning)?.remove(0);
        let counters = Counters::allocate(1)?.remove(0);
        let worker = Worker {
            shared_cache: SharedCache::open(&tuning.shared_cache, counters.of_cache(), None)?,
            tuning,
            plan,
            listeners: vec![Arc::new(Listener { id: listener, address, socket })],
            counters,
            figures: None,
            heartbeats,
            log: None,
            site_logs: Arc::new(SiteLogs::new(counters, 0, 0)),
            steering: Arc::clone(&steering),
            arrivals: Vec::new(),
            to_agent: None,
            addresses: None,
            // What is remarkable shows in the response.
            warnings: |_| {},
        };
        thread::scope(|scope| {
            let engine = scope.spawn(|| run(worker));
            let rehearsed = self.rehearse(request);
            steering.stop();
            match engine.join() {
                Ok(Ok(())) => rehearsed,
                Ok(Err(error)) => Err(error),
                Err(_) => Err(io::Error::other("the engine panicked")),
            }
        })
    }

    /// Is the client, and whatever origin is asked.
    fn rehearse(&self, request: &[u8]) -> io::Result<Rehearsal> {
        let mut client = UnixStream::connect(self.room.socket())?;
        client.write_all(request)?;
        let mut forwarded = None;
        loop {
            let mut both = [PollFd::new(&client, PollFlags::IN), PollFd::new(&self.origin, PollFlags::IN)];
            if poll(&mut both, Some(&PATIENCE))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if both[0].revents().is_empty() {
                // Its connection ends without an answer, and the next origin is asked.
                let (mut origin, _) = self.origin.accept()?;
                wait_for(&mut origin)?;
                let request = Forwarded::read(&mut origin)?;
                forwarded.get_or_insert(request);
            } else {
                return Ok(Rehearsal { response: read_head(&mut client)?, forwarded });
            }
        }
    }
}

/// Longer than any disk takes to find one file.
const PATIENCE: Timespec = Timespec { tv_sec: 30, tv_nsec: 0 };

fn wait_for(from: &mut UnixStream) -> io::Result<()> {
    from.set_nonblocking(false)?;
    from.set_read_timeout(Some(Duration::from_secs(PATIENCE.tv_sec as u64)))
}

fn read_head(from: &mut UnixStream) -> io::Result<String> {
    wait_for(from)?;
    let mut received = Vec::new();
    let mut some = [0; 4096];
    loop {
        if let Some(head) = head(&received) {
            return Ok(head);
        }
        match from.read(&mut some)? {
            // A route may leave requests unanswered.
            0 if received.is_empty() => return Ok(String::new()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => received.extend_from_slice(&some[..count]),
        }
    }
}

/// A folder that only this user can enter, for the time of a rehearsal.
struct Room(PathBuf);

impl Room {
    fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("baton-explain-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }

    fn origin(&self) -> PathBuf {
        self.0.join("origin")
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // What cannot be removed is an empty folder in the place for such.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
