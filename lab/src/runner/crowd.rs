//! Clients that read slowly: each asks once and then takes a kilobyte a second of a long response.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, ipproto, socket_with, sockopt};

/// What became of slow clients, which live on a thread of their own.
#[derive(Debug, Default)]
pub(super) struct Crowd {
    stop: AtomicBool,
    served: AtomicUsize,
    refused: AtomicUsize,
}

/// Lets all clients of a crowd disconnect when it is dropped.
pub(super) struct Stop<'a>(pub(super) &'a Crowd);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

impl Crowd {
    /// How many have got the beginning of a good response.
    pub(super) fn served(&self) -> usize {
        self.served.load(Ordering::Relaxed)
    }

    /// How many got another response, or lost their connection.
    pub(super) fn refused(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }

    /// Lets `count` clients request `path`, `per_second` of them every second, until they are stopped. One client has a turn
    /// after the other: in a second each had one, and new ones that were due have connected.
    pub(super) fn live(&self, address: SocketAddr, path: &str, count: usize, per_second: f64) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nUser-Agent: baton-lab\r\n\r\n");
        let start = Instant::now();
        let mut clients: Vec<Option<Reader>> = Vec::new();
        let mut turns = 0_u32;
        let pause = Duration::from_secs(1) / u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        while !self.stop.load(Ordering::Relaxed) {
            let due = (start.elapsed().as_secs_f64() * per_second) as usize;
            while clients.len() < due.min(count) {
                let client = Reader::ask(address, &request);
                self.refused.fetch_add(usize::from(client.is_err()), Ordering::Relaxed);
                clients.push(client.ok());
            }
            if let Some(client) = clients.get_mut(turns as usize % count.max(1)) {
                self.take_a_kilobyte(client);
            }
            turns = turns.wrapping_add(1);
            thread::sleep((start + pause * turns).saturating_duration_since(Instant::now()));
        }
    }

    fn take_a_kilobyte(&self, client: &mut Option<Reader>) {
        let Some(reader) = client else { return };
        let mut bytes = [0; 1024];
        match reader.socket.read(&mut bytes) {
            Ok(length) if reader.begun && length > 0 => {}
            Ok(length) if bytes[..length].starts_with(b"HTTP/1.1 200 ") => {
                reader.begun = true;
                self.served.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                *client = None;
            }
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
        let (address, crowd) = (listener.local_addr().unwrap(), Crowd::default());
        thread::scope(|scope| {
            let _stop = Stop(&crowd);
            scope.spawn(|| crowd.live(address, "/page", 3, 1000.0));
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
        });
        assert_eq!((crowd.served(), crowd.refused()), (1, 2));
    }
}
