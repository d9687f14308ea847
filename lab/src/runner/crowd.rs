//! Clients that read slowly: each asks once and then takes a kilobyte a second of a long response.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

/// Slow clients on a thread of their own. They disconnect when this is dropped.
#[derive(Debug)]
pub(super) struct Crowd {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// Clients that got the beginning of a good response.
    served: AtomicUsize,
    /// Clients with another response or a broken connection.
    refused: AtomicUsize,
}

impl Crowd {
    /// Lets `count` clients request `path`, `per_second` of them every second.
    pub(super) fn gather(address: SocketAddr, path: &str, count: usize, per_second: f64) -> Self {
        let shared = Arc::new(Shared::default());
        let seen = Arc::clone(&shared);
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: baton-lab\r\n\r\n");
        let thread = thread::spawn(move || live(&seen, address, &request, count, per_second));
        Self { shared, thread: Some(thread) }
    }

    /// How many have got the beginning of their response.
    pub(super) fn served(&self) -> usize {
        self.shared.served.load(Ordering::Relaxed)
    }

    /// How many were refused, or lost their connection.
    pub(super) fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One client per turn: in a second each had a turn, and new ones that were due have connected.
fn live(shared: &Shared, address: SocketAddr, request: &str, count: usize, per_second: f64) {
    let start = Instant::now();
    let mut clients: Vec<Option<Reader>> = Vec::new();
    let mut turns = 0_u32;
    let pause = Duration::from_secs(1) / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    while !shared.stop.load(Ordering::Relaxed) {
        let due = (start.elapsed().as_secs_f64() * per_second) as usize;
        while clients.len() < due.min(count) {
            let client = Reader::ask(address, request);
            shared.refused.fetch_add(usize::from(client.is_err()), Ordering::Relaxed);
            clients.push(client.ok());
        }
        if let Some(client) = clients.get_mut(turns as usize % count.max(1)) {
            take_a_kilobyte(client, shared);
        }
        turns = turns.wrapping_add(1);
        thread::sleep((start + pause * turns).saturating_duration_since(Instant::now()));
    }
}

fn take_a_kilobyte(client: &mut Option<Reader>, shared: &Shared) {
    let Some(reader) = client else { return };
    let mut bytes = [0; 1024];
    match reader.socket.read(&mut bytes) {
        Ok(length) if reader.begun && length > 0 => {}
        Ok(length) if bytes[..length].starts_with(b"HTTP/1.1 200 ") => {
            reader.begun = true;
            shared.served.fetch_add(1, Ordering::Relaxed);
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {}
        Ok(_) | Err(_) => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            *client = None;
        }
    }
}

#[derive(Debug)]
struct Reader {
    socket: TcpStream,
    begun: bool,
}

impl Reader {
    /// Its receive buffer is as small as the kernel allows, so that unread bytes stay with the server.
    fn ask(address: SocketAddr, request: &str) -> Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, Some(ipproto::TCP))?;
        sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER_BYTES)?;
        connect(&socket, &address).context("connecting")?;
        let mut socket = TcpStream::from(socket);
        socket.write_all(request.as_bytes())?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, begun: false })
    }
}

const RECEIVE_BUFFER_BYTES: usize = 2048;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn who_is_served_and_who_is_refused_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let crowd = Crowd::gather(listener.local_addr().unwrap(), "/page", 3, 1000.0);
        let mut open = Vec::new();
        for answer in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 503 Service Unavailable\r\n\r\n", ""] {
            let (mut client, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let length = client.read(&mut request).unwrap();
            assert!(request[..length].starts_with(b"GET /page HTTP/1.1\r\n"));
            client.write_all(answer.as_bytes()).unwrap();
            // The last one loses its connection without a word.
            open.extend((!answer.is_empty()).then_some(client));
        }
        let limit = Instant::now() + Duration::from_secs(10);
        while crowd.served() + crowd.refused() < 3 && Instant::now() < limit {
            thread::sleep(Duration::from_millis(10));
        }
        assert_eq!((crowd.served(), crowd.refused()), (1, 2));
    }
}
