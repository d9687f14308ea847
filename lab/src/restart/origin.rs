//! An origin whose bodies tell which URL they are of, so that one that is served for another is noticed.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::Result;

use crate::rig::loopback;

/// An origin whose threads end with the process.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Origin {
    pub(super) fn start(body_bytes: usize) -> Result<Self> {
        let listener = TcpListener::bind(loopback(0))?;
        let address = listener.local_addr()?;
        let asked = Arc::new(AtomicU64::new(0));
        let of_threads = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let asked = Arc::clone(&of_threads);
                // A client that leaves ends its thread.
                thread::spawn(move || serve(&stream, body_bytes, &asked));
            }
        });
        Ok(Self { address, asked })
    }

    /// Requests until now.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }
}

/// What there is at a path: the path, over and over.
pub(super) fn body_of(path: &str, bytes: usize) -> Vec<u8> {
    path.bytes().chain([b' ']).cycle().take(bytes).collect()
}

fn serve(stream: &TcpStream, body_bytes: usize, asked: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while line != "\r\n" {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
        }
        asked.fetch_add(1, Ordering::Relaxed);
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\nETag: \"{path}\"\r\nContent-Length: {body_bytes}\r\n\r\n"
        );
        let mut stream = stream;
        stream.write_all(&[head.as_bytes(), &body_of(&path, body_bytes)].concat())?;
    }
}
