//! A proxy of TCP that harms the bytes that pass through it, as networks do, and as a seed says.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::common::server::PATIENCE;

/// What happens to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// Each piece is delayed.
    Latency,
    /// A piece of 1000 bytes now and then.
    Bandwidth,
    /// Bytes come one by one for a while.
    Slices,
    /// The connection is reset.
    Reset,
    /// One side sends no more, and is not told that the other goes on.
    HalfClose,
    /// Nothing more passes.
    Stall,
    /// Bytes that neither side has sent pass, and then the others.
    Garbage,
}

/// Which bytes a fault befalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Those of the side that has connected.
    Up,
    Down,
}

/// What befalls a connection, and behind how many bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) fault: Fault,
    pub(crate) direction: Direction,
    pub(crate) after_bytes: usize,
}

/// A listener in front of `target`.
pub(crate) struct FaultProxy {
    address: SocketAddr,
    open: Arc<AtomicUsize>,
}

impl FaultProxy {
    /// Passes connections to `target`, the one with number n with the faults of `plan(n)`.
    pub(crate) fn start(target: SocketAddr, plan: impl Fn(usize) -> Plan + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let open = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&open);
        std::thread::spawn(move || {
            for (number, near) in listener.incoming().map_while(Result::ok).enumerate() {
                let Ok(far) = TcpStream::connect(target) else { continue };
                pass(near, far, plan(number), &counted);
            }
        });
        Self { address, open }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Directions in which bytes may still pass.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

impl Fault {
    pub(crate) const ALL: [Self; 8] = [
        Self::Nothing,
        Self::Latency,
        Self::Bandwidth,
        Self::Slices,
        Self::Reset,
        Self::HalfClose,
        Self::Stall,
        Self::Garbage,
    ];
}

/// Passes bytes in both directions, each on a thread.
fn pass(near: TcpStream, far: TcpStream, plan: Plan, open: &Arc<AtomicUsize>) {
    for direction in [Direction::Up, Direction::Down] {
        let pair = (near.try_clone().expect("a descriptor"), far.try_clone().expect("a descriptor"));
        let (from, to) = if direction == Direction::Up { pair } else { (pair.1, pair.0) };
        let harm = (direction == plan.direction).then_some(plan);
        open.fetch_add(1, Ordering::Relaxed);
        let open = Arc::clone(open);
        std::thread::spawn(move || {
            pump(from, to, harm);
            open.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, harm: Option<Plan>) {
    let _ = (from.set_read_timeout(Some(PATIENCE)), to.set_nodelay(true));
    let mut passed = 0;
    let mut bytes = vec![0; 16_384];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let piece = &bytes[..count];
        let Some(plan) = harm else {
            if to.write_all(piece).is_err() {
                break;
            }
            continue;
        };
        // What comes in front of the fault passes as it is.
        let at = plan.after_bytes.saturating_sub(passed).min(count);
        passed += count;
        let (before, behind) = piece.split_at(at);
        if to.write_all(before).is_err() {
            break;
        }
        if !behind.is_empty() && !fail(&from, &mut to, plan.fault, behind) {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    // The sender learns that its bytes arrive no more.
    let _ = from.shutdown(Shutdown::Read);
}

/// Passes bytes as the fault lets it; `false`: nothing more passes.
fn fail(from: &TcpStream, to: &mut TcpStream, fault: Fault, bytes: &[u8]) -> bool {
    match fault {
        Fault::Nothing => to.write_all(bytes).is_ok(),
        Fault::Latency => {
            std::thread::sleep(Duration::from_millis(5));
            to.write_all(bytes).is_ok()
        }
        Fault::Bandwidth => bytes.chunks(1_000).all(|piece| {
            std::thread::sleep(Duration::from_millis(1));
            to.write_all(piece).is_ok()
        }),
        Fault::Slices => {
            let (one_by_one, rest) = bytes.split_at(bytes.len().min(200));
            one_by_one.chunks(1).all(|byte| to.write_all(byte).is_ok()) && to.write_all(rest).is_ok()
        }
        Fault::Reset => {
            for end in [from, to] {
                let _ = set_socket_linger(end, Some(Duration::ZERO));
                let _ = end.shutdown(Shutdown::Both);
            }
            false
        }
        Fault::HalfClose => {
            let _ = to.shutdown(Shutdown::Write);
            swallow(from);
            false
        }
        Fault::Stall => {
            swallow(from);
            let _ = to.shutdown(Shutdown::Both);
            false
        }
        Fault::Garbage => to.write_all(GARBAGE).is_ok() && to.write_all(bytes).is_ok(),
    }
}

/// Reads up to the end, so that the sender notices nothing.
fn swallow(mut from: &TcpStream) {
    let mut bytes = vec![0; 16_384];
    while matches!(from.read(&mut bytes), Ok(1..)) {}
}

/// Bytes that no test sends otherwise, and no head may have.
const GARBAGE: &[u8] = b"\x00\x01#########\x02\x03";
