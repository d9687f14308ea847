//! An application that follows a script.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use baton_fcgi::application::{self, Part, RequestReader};
use baton_fcgi::offer::{self, Offer, Ring, Transport};
use baton_fcgi::response::ProtocolStatus;
use baton_fcgi::{AnswerOutcome, Answered, FileRange, RegionSlice};
use baton_upstream::{Address, Endpoint};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// A thread in place of a process: it accepts one connection at a time and runs its script on it.
pub(crate) struct App {
    folder: tempfile::TempDir,
    accepted: Arc<AtomicUsize>,
    closed: Arc<AtomicUsize>,
}

type Script = dyn Fn(&mut Peer) + Send + Sync;

impl App {
    /// An application of one process.
    pub(crate) fn start(script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        Self::with_processes(1, script)
    }

    /// An application of `count` processes that share an address.
    pub(crate) fn with_processes(count: usize, script: impl Fn(&mut Peer) + Send + Sync + 'static) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("app")).unwrap();
        let (accepted, closed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let script: Arc<Script> = Arc::new(script);
        for _ in 0..count {
            let (listener, script) = (listener.try_clone().unwrap(), Arc::clone(&script));
            let (accepted, closed) = (Arc::clone(&accepted), Arc::clone(&closed));
            // Blocked in `accept` until the test's process ends.
            std::thread::spawn(move || {
                while let Ok((socket, _)) = listener.accept() {
                    let index = accepted.fetch_add(1, Ordering::SeqCst);
                    script(&mut Peer::new(socket, index));
                    closed.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Self { folder, accepted, closed }
    }

    /// An application that answers every request with the same output.
    pub(crate) fn answering(output: &'static [u8]) -> Self {
        Self::start(move |peer| {
            while let Some(asked) = peer.request() {
                peer.answer_at_once(&asked, output);
            }
        })
    }

    /// Where it listens.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::Shared(self.address())
    }

    pub(crate) fn address(&self) -> Address {
        Address::Unix(self.folder.path().join("app"))
    }

    /// A folder of its own.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl App {
    /// Waits until it has closed `count` connections.
    pub(crate) fn wait_closed(&self, count: usize) {
        while self.closed.load(Ordering::SeqCst) < count {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// The application's end of a connection.
pub(crate) struct Peer {
    pub(crate) socket: UnixStream,
    /// How many connections were accepted before this one.
    pub(crate) index: usize,
    reader: RequestReader,
    input: Vec<u8>,
    descriptors: VecDeque<OwnedFd>,
    region: Option<File>,
    /// What bodies refer to: the pool, and the file of the request at hand.
    pub(crate) pool: Option<File>,
    pub(crate) body_file: Option<File>,
    /// Bytes it reads with one call.
    pub(crate) read_bytes: usize,
}

/// A request as the application got it.
#[derive(Debug, Default)]
pub(crate) struct ReceivedRequest {
    pub(crate) id: u16,
    pub(crate) keep: bool,
    pub(crate) params: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) offer: Offered,
}

/// What came with a request.
#[derive(Debug, Default)]
pub(crate) enum Offered {
    #[default]
    Nothing,
    PassFd {
        client: OwnedFd,
        fields: Vec<u8>,
    },
    Shm(Ring),
}

/// What comes from the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Begin { id: u16, keep: bool },
    Params(Vec<u8>),
    ParamsEnd,
    Stdin(Vec<u8>),
    StdinEnd,
    Slices(Vec<RegionSlice>),
    File(FileRange),
    Freed(u32),
    GiveBack,
    GetValues,
    Other,
}

impl Peer {
    fn new(socket: UnixStream, index: usize) -> Self {
        let (input, descriptors) = (Vec::new(), VecDeque::new());
        let (reader, region) = (RequestReader::new(), None);
        let (pool, body_file) = (None, None);
        Self { socket, index, reader, input, descriptors, region, pool, body_file, read_bytes: 65536 }
    }

    /// The next event from the server; `None`: it has closed the connection.
    pub(crate) fn event(&mut self) -> Option<Event> {
        loop {
            let (count, part) = self.reader.read(&self.input).unwrap();
            let of = |range: std::ops::Range<usize>| self.input[range].to_vec();
            let event = match part {
                Part::NeedMore => {
                    self.input.clear();
                    let mut buffer = [0; 65536];
                    let piece = &mut buffer[..self.read_bytes];
                    let (count, descriptors) = baton_sys::passing::receive(&self.socket, piece).ok()?;
                    if count == 0 {
                        return None;
                    }
                    self.input.extend_from_slice(&buffer[..count]);
                    self.descriptors.extend(descriptors);
                    continue;
                }
                Part::Begin { id, keep_connection, .. } => Event::Begin { id, keep: keep_connection },
                Part::Params(range) => Event::Params(of(range)),
                Part::ParamsEnd => Event::ParamsEnd,
                Part::Stdin(range) => Event::Stdin(of(range)),
                Part::StdinEnd => Event::StdinEnd,
                Part::Slices => Event::Slices(self.reader.slices().collect()),
                Part::File(range) => Event::File(range),
                Part::Freed(bytes) => Event::Freed(bytes),
                Part::GiveBack => Event::GiveBack,
                Part::GetValues => Event::GetValues,
                _ => Event::Other,
            };
            self.input.drain(..count);
            return Some(event);
        }
    }

    /// Drops unparsed input and the state of the request.
    pub(crate) fn discard_input(&mut self) {
        (self.reader, self.input) = (RequestReader::new(), Vec::new());
    }

    /// The next request, whole.
    pub(crate) fn request(&mut self) -> Option<ReceivedRequest> {
        let mut asked = self.head()?;
        loop {
            match self.event()? {
                Event::Stdin(bytes) => asked.stdin.extend(bytes),
                Event::StdinEnd => return Some(asked),
                _ => {}
            }
        }
    }

    /// The next request up to its body.
    pub(crate) fn head(&mut self) -> Option<ReceivedRequest> {
        let mut asked = ReceivedRequest::default();
        let mut block = Vec::new();
        loop {
            match self.event()? {
                Event::Begin { id, keep } => (asked.id, asked.keep) = (id, keep),
                Event::Params(bytes) => block.extend(bytes),
                Event::ParamsEnd => break,
                _ => {}
            }
        }
        for pair in baton_fcgi::params::Params::new(&block) {
            let (name, value) = pair.unwrap();
            if name == offer::NAME.as_bytes() {
                assert!(asked.params.is_empty(), "the offer is the first pair");
                asked.offer = self.take_up(Offer::parse(value).unwrap());
            } else {
                asked.params.push((name.to_vec(), value.to_vec()));
            }
        }
        Some(asked)
    }

    fn take_up(&mut self, offer: Offer<'_>) -> Offered {
        let mut descriptors = self.descriptors.drain(..offer.fds);
        let first = (offer.fds > offer.bodies.fds()).then(|| descriptors.next().unwrap());
        if offer.bodies.pool > 0 {
            self.pool = descriptors.next().map(File::from);
        }
        self.body_file = if offer.bodies.file { descriptors.next().map(File::from) } else { None };
        match (offer.transport, first) {
            (Transport::PassFd(_), client) => {
                Offered::PassFd { client: client.unwrap(), fields: offer.fields.to_vec() }
            }
            (Transport::Shm(ring), region) => {
                self.region = region.map(File::from).or(self.region.take());
                Offered::Shm(ring)
            }
            (Transport::Unknown, _) => panic!("an unknown offer"),
        }
    }

    /// Waits until the server has closed the connection, without reading.
    pub(crate) fn wait_for_close(&self) {
        let patience = Timespec { tv_sec: 5, tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&self.socket, PollFlags::empty())], Some(&patience));
    }

    /// Writes. False: the server has closed the connection.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.socket.write_all(bytes).is_ok()
    }

    pub(crate) fn stdout(&mut self, asked: &ReceivedRequest, bytes: &[u8]) -> bool {
        let mut records = Vec::new();
        application::push_stdout(&mut records, asked.id, bytes);
        self.write(&records)
    }

    /// Ends a request. The next one may come from now on.
    pub(crate) fn end(&mut self, asked: &ReceivedRequest) -> bool {
        self.finish(asked, ProtocolStatus::RequestComplete)
    }

    pub(crate) fn finish(&mut self, asked: &ReceivedRequest, status: ProtocolStatus) -> bool {
        let mut records = Vec::new();
        application::push_end(&mut records, asked.id, 0, status);
        self.reader.finish();
        self.write(&records)
    }

    /// Answers through the connection, with one write.
    pub(crate) fn answer_at_once(&mut self, asked: &ReceivedRequest, output: &[u8]) -> bool {
        let mut records = Vec::new();
        application::push_stdout(&mut records, asked.id, output);
        self.end_with(asked, records)
    }

    /// Answers through the region, in two slices, with one write.
    pub(crate) fn share_and_end(&mut self, asked: &ReceivedRequest, ring: &Ring, output: &[u8]) -> bool {
        let len = output.len() as u32;
        self.region().write_all_at(output, u64::from(ring.at)).unwrap();
        let mut records = Vec::new();
        let first = RegionSlice { offset: ring.at, len: len / 4 * 3 };
        let second = RegionSlice { offset: ring.at + first.len, len: len - first.len };
        application::push_slices(&mut records, asked.id, &[first, second]);
        self.end_with(asked, records)
    }

    fn end_with(&mut self, asked: &ReceivedRequest, mut records: Vec<u8>) -> bool {
        application::push_end(&mut records, asked.id, 0, ProtocolStatus::RequestComplete);
        self.reader.finish();
        self.write(&records)
    }

    /// Answers through the connection.
    pub(crate) fn answer(&mut self, asked: &ReceivedRequest, output: &[u8]) -> bool {
        self.stdout(asked, output) && self.end(asked)
    }

    /// Reports that the client was answered on its own socket.
    pub(crate) fn answered(&mut self, asked: &ReceivedRequest, body_bytes: u64) -> bool {
        let answered = Answered {
            complete: true,
            may_go_on: true,
            outcome: AnswerOutcome::Complete,
            status: 200,
            head_bytes: 19,
            body_bytes,
        };
        let mut records = Vec::new();
        application::push_answered(&mut records, asked.id, &answered);
        self.end_with(asked, records)
    }

    /// Writes output through the region, in slices as large as it allows.
    pub(crate) fn share(&mut self, asked: &ReceivedRequest, ring: &mut Ring, mut output: &[u8]) -> bool {
        while !output.is_empty() {
            let len = ring.free.min(ring.size - ring.at).min(output.len() as u32);
            if len == 0 {
                match self.event() {
                    Some(Event::Freed(bytes)) => ring.free += bytes,
                    Some(_) => {}
                    None => return false,
                }
                continue;
            }
            let (now, rest) = output.split_at(len as usize);
            self.region.as_ref().unwrap().write_all_at(now, u64::from(ring.at)).unwrap();
            if !self.slices(asked, &[RegionSlice { offset: ring.at, len }]) {
                return false;
            }
            ring.at = (ring.at + len) % ring.size;
            ring.free -= len;
            output = rest;
        }
        true
    }

    pub(crate) fn slices(&mut self, asked: &ReceivedRequest, slices: &[RegionSlice]) -> bool {
        let mut records = Vec::new();
        application::push_slices(&mut records, asked.id, slices);
        self.write(&records)
    }

    pub(crate) fn region(&self) -> &File {
        self.region.as_ref().unwrap()
    }
}

/// A value that the script of an application and its test share.
pub(crate) fn shared<T: Default>() -> Arc<Mutex<T>> {
    Arc::default()
}
