//! An origin whose bodies tell which URL they are of, so that one that is served for another is noticed.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::Result;

use crate::files;
use crate::rig::loopback;

/// An origin whose threads end with the process.
pub(super) struct Origin {
    pub(super) address: SocketAddr,
    asked: Arc<AtomicU64>,
}

impl Origin {
    pub(super) fn start(body_bytes: u64) -> Result<Self> {
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

/// Answers with the text of the file that clients of the cache ask for, which is below `/hit` there.
fn serve(mut stream: &TcpStream, body_bytes: u64, asked: &AtomicU64) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next().transpose()? {
        while lines.next().transpose()?.is_some_and(|field| !field.is_empty()) {}
        asked.fetch_add(1, Ordering::Relaxed);
        let path = request.split(' ').nth(1).unwrap_or_default();
        let body = files::text(&format!("/hit{path}"), body_bytes);
        let head = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=86400\r\nETag: \"{path}\"\r\n");
        stream.write_all(format!("{head}Content-Length: {body_bytes}\r\n\r\n{body}").as_bytes())?;
    }
    Ok(())
}
