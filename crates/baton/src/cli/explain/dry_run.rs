//! Lets the real engine answer a request over a private socket: the explanation cannot differ from the server.

use std::fs::DirBuilder;
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use baton_engine::heartbeat::Heartbeats;
use baton_engine::{
    ArchitectureName, Counters, ListenAddress, ListenOptions, Listener, Plan, Steering, Tuning, Worker, bind,
    run,
};

/// The head of the response, up to the empty line, to a request that arrives at the listener with this id.
///
/// # Errors
/// The engine could not begin, or gave no answer.
pub(super) fn response_head(
    plan: Arc<Plan>,
    tuning: Tuning,
    listener: usize,
    request: &[u8],
) -> io::Result<Vec<u8>> {
    let room = Room::new()?;
    let address = ListenAddress::Unix(room.socket());
    let options = ListenOptions { backlog: 1, reuse_port: false, defer_accept_s: 0, send_buffer_bytes: None };
    let socket = bind(&address, &options)?;
    let steering = Arc::new(Steering::new());
    // Every architecture gives the same answer; this one takes no second thread.
    let tuning = Tuning { architecture: ArchitectureName::Sped, ..tuning };
    let heartbeats = Heartbeats::allocate(1, &tuning)?.remove(0);
    let worker = Worker {
        tuning,
        plan,
        listeners: vec![Arc::new(Listener { id: listener, address, socket })],
        counters: Counters::allocate(1)?.remove(0),
        heartbeats,
        log: None,
        steering: Arc::clone(&steering),
        // What is remarkable shows in the response.
        remarks: |_| {},
    };
    thread::scope(|scope| {
        let engine = scope.spawn(|| run(worker));
        let head = ask(&room.socket(), request);
        steering.stop();
        match engine.join() {
            Ok(Ok(())) => head,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(io::Error::other("the engine panicked")),
        }
    })
}

/// Longer than any disk takes to find one file.
const PATIENCE: Duration = Duration::from_secs(30);

fn ask(socket: &Path, request: &[u8]) -> io::Result<Vec<u8>> {
    let mut client = UnixStream::connect(socket)?;
    client.set_read_timeout(Some(PATIENCE))?;
    client.write_all(request)?;
    let mut received = Vec::new();
    let mut some = [0; 4096];
    loop {
        if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            received.truncate(end);
            return Ok(received);
        }
        match client.read(&mut some)? {
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
}

impl Drop for Room {
    fn drop(&mut self) {
        // What cannot be removed is an empty folder in the place for such.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
