//! The relay: one thread, one epoll instance, a connection to the origin for each client.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use rustix::thread::{CpuSet, gettid, sched_setaffinity};

use super::origin::OriginAddress;
use crate::rig::loopback;

/// How bodies are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// Read into memory, 64 KiB at a time, and sent from there.
    ReadWrite,
    /// What comes with the head is read and sent, the rest goes through a pipe.
    SpliceRest,
    /// The head is looked at first, and all of the body goes through a pipe.
    SpliceAll,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::ReadWrite, Self::SpliceRest, Self::SpliceAll];
}

/// A relay that runs on the server's CPU until this is dropped.
pub(super) struct Relay {
    pub(super) way: Way,
    pub(super) address: SocketAddr,
    thread_id: i32,
    stops: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub(super) fn start(way: Way, origin: OriginAddress, cpus: &[usize]) -> Result<Self> {
        let listener = TcpListener::bind(loopback(0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stops = Arc::new(AtomicBool::new(false));
        let (tell, told) = mpsc::channel();
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        let stopped = Arc::clone(&stops);
        let thread = thread::spawn(move || {
            let _ = sched_setaffinity(None, &set);
            let _ = tell.send(gettid().as_raw_nonzero().get());
            if let Err(error) = run(way, &listener, &origin, &stopped) {
                eprintln!("the relay has ended: {error:#}");
            }
        });
        let thread_id = told.recv().context("the relay's thread")?;
        Ok(Self { way, address, thread_id, stops, thread: Some(thread) })
    }

    /// CPU time that its thread has used, up to when it slept last.
    pub(super) fn cpu_time(&self) -> Result<Duration> {
        let path = format!("/proc/self/task/{}/schedstat", self.thread_id);
        let text = fs::read_to_string(&path).context(path)?;
        let ns = text.split(' ').next().and_then(|ns| ns.parse().ok()).context("a time")?;
        Ok(Duration::from_nanos(ns))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(way: Way, listener: &TcpListener, origin: &OriginAddress, stops: &AtomicBool) -> Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    let mut pumps: Vec<Option<Pump>> = Vec::new();
    let mut memory = vec![0; READ_BYTES];
    let mut events: Vec<Event> = Vec::with_capacity(64);
    let pause = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    while !stops.load(Ordering::Relaxed) {
        events.clear();
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&pause)) {
            Err(Errno::INTR) | Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            if event.data.u64() == LISTENER {
                while let Ok((client, _)) = listener.accept() {
                    let at = pumps.iter().position(Option::is_none).unwrap_or(pumps.len());
                    let pump = Pump::new(way, client, origin.connect()?)?;
                    let flags = EventFlags::IN | EventFlags::OUT | EventFlags::ET;
                    for socket in [&pump.client, &pump.origin] {
                        epoll::add(&epoll, socket, EventData::new_u64(at as u64), flags)?;
                    }
                    if at == pumps.len() {
                        pumps.push(None);
                    }
                    pumps[at] = Some(pump);
                }
                continue;
            }
            let at = event.data.u64() as usize;
            let Some(Some(pump)) = pumps.get_mut(at) else { continue };
            match pump.go_on(&mut memory) {
                Ok(()) | Err(Errno::AGAIN) => {}
                // The client has left, or the origin.
                Err(_) => pumps[at] = None,
            }
        }
    }
    Ok(())
}

/// A client and its origin.
struct Pump {
    way: Way,
    client: OwnedFd,
    origin: OwnedFd,
    /// Where bodies go through, if they do.
    pipe: Option<(OwnedFd, OwnedFd)>,
    state: State,
    /// Bytes that the client has not taken.
    unsent: Vec<u8>,
    in_pipe: usize,
}

#[derive(Clone, Copy)]
enum State {
    Request,
    Head,
    Body { left: u64 },
}

impl Pump {
    fn new(way: Way, client: TcpStream, origin: OwnedFd) -> Result<Self> {
        client.set_nonblocking(true)?;
        client.set_nodelay(true)?;
        let pipe = match way {
            Way::ReadWrite => None,
            Way::SpliceRest | Way::SpliceAll => {
                let pipe = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                fcntl_setpipe_size(&pipe.1, PIPE_BYTES)?;
                Some(pipe)
            }
        };
        let client = client.into();
        Ok(Self { way, client, origin, pipe, state: State::Request, unsent: Vec::new(), in_pipe: 0 })
    }

    /// Goes on until a socket is empty or full.
    fn go_on(&mut self, memory: &mut [u8]) -> Result<(), Errno> {
        loop {
            self.flush()?;
            match self.state {
                State::Request => {
                    let count = receive(&self.client, memory, RecvFlags::DONTWAIT)?;
                    // A request is shorter than any socket's buffer.
                    rustix::net::send(&self.origin, &memory[..count], SendFlags::NOSIGNAL)?;
                    self.state = State::Head;
                }
                State::Head => {
                    let count = if self.way == Way::SpliceAll {
                        let seen = receive(&self.origin, memory, RecvFlags::DONTWAIT | RecvFlags::PEEK)?;
                        let (head_len, _) = split(&memory[..seen])?;
                        receive(&self.origin, &mut memory[..head_len], RecvFlags::DONTWAIT)?
                    } else {
                        receive(&self.origin, memory, RecvFlags::DONTWAIT)?
                    };
                    let (head_len, length) = split(&memory[..count])?;
                    self.pass(length - (count - head_len) as u64);
                    let more = if matches!(self.state, State::Body { .. }) {
                        SendFlags::MORE
                    } else {
                        SendFlags::empty()
                    };
                    self.send(&memory[..count], more)?;
                }
                State::Body { left } => {
                    let bytes = match &self.pipe {
                        Some((_, input)) => {
                            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
                            let wanted = PIPE_BYTES.min(left as usize);
                            let count = splice(&self.origin, None, input, None, wanted, flags)?;
                            self.in_pipe = count;
                            count
                        }
                        None => {
                            let wanted = READ_BYTES.min(left as usize);
                            let count = receive(&self.origin, &mut memory[..wanted], RecvFlags::DONTWAIT)?;
                            self.pass(left - count as u64);
                            self.send(&memory[..count], SendFlags::empty())?;
                            continue;
                        }
                    };
                    if bytes == 0 {
                        return Err(Errno::PIPE);
                    }
                    self.pass(left - bytes as u64);
                }
            }
        }
    }

    /// So much of the body is left.
    fn pass(&mut self, left: u64) {
        self.state = if left > 0 { State::Body { left } } else { State::Request };
    }

    fn send(&mut self, bytes: &[u8], more: SendFlags) -> Result<(), Errno> {
        let sent =
            match rustix::net::send(&self.client, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | more) {
                Err(Errno::AGAIN) => 0,
                sent => sent?,
            };
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        while !self.unsent.is_empty() {
            let sent =
                rustix::net::send(&self.client, &self.unsent, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
            self.unsent.drain(..sent);
        }
        while let Some((output, _)) = self.pipe.as_ref().filter(|_| self.in_pipe > 0) {
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            self.in_pipe -= splice(output, None, &self.client, None, self.in_pipe, flags)?;
        }
        Ok(())
    }
}

fn receive(socket: impl AsFd, memory: &mut [u8], flags: RecvFlags) -> Result<usize, Errno> {
    match rustix::net::recv(socket, memory, flags)? {
        (_, 0) => Err(Errno::PIPE),
        (_, count) => Ok(count),
    }
}

/// The lengths of a head, which the origin sends at once, and of the body behind it.
fn split(bytes: &[u8]) -> Result<(usize, u64), Errno> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or(Errno::PROTO)?;
    let head = std::str::from_utf8(&bytes[..end]).map_err(|_| Errno::PROTO)?;
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    Ok((end + 4, length.ok_or(Errno::PROTO)?))
}

const LISTENER: u64 = u64::MAX;
/// As the server reads from origins.
const READ_BYTES: usize = 64 << 10;
/// Four times the usual pipe: fewer calls.
const PIPE_BYTES: usize = 256 << 10;
