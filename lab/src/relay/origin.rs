//! An origin that answers every request with a body of one length, from memory.

use std::fmt;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::thread;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::rig::loopback;

/// What connects relay and origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OriginSocket {
    /// TCP over loopback.
    Tcp,
    /// A Unix socket.
    Unix,
}

/// Where it is.
#[derive(Clone, Debug)]
pub(crate) enum OriginAddress {
    Tcp(SocketAddr),
    Unix(UnixAddress),
}

/// An origin whose threads end with the process.
pub(crate) struct Origin {
    pub(crate) address: OriginAddress,
}

impl Origin {
    pub(crate) fn start(kind: OriginSocket, body_bytes: u64) -> Result<Self> {
        match kind {
            OriginSocket::Tcp => {
                let listener = TcpListener::bind(loopback(0))?;
                let address = OriginAddress::Tcp(listener.local_addr()?);
                thread::spawn(move || {
                    listener.incoming().flatten().for_each(|stream| {
                        let _ = stream.set_nodelay(true);
                        thread::spawn(move || serve(stream, body_bytes));
                    });
                });
                Ok(Self { address })
            }
            OriginSocket::Unix => {
                let name = format!("baton-lab-relay-{}-{body_bytes}", std::process::id());
                let address = UnixAddress::from_abstract_name(name)?;
                let listener = UnixListener::bind_addr(&address)?;
                thread::spawn(move || {
                    listener.incoming().flatten().for_each(|stream| {
                        thread::spawn(move || serve(stream, body_bytes));
                    });
                });
                Ok(Self { address: OriginAddress::Unix(address) })
            }
        }
    }
}

impl OriginAddress {
    /// A connection that never waits.
    pub(super) fn connect(&self) -> Result<OwnedFd> {
        let socket = match self {
            Self::Tcp(address) => {
                let stream = TcpStream::connect(address).context("the origin")?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                stream.into()
            }
            Self::Unix(address) => {
                let stream = UnixStream::connect_addr(address).context("the origin")?;
                stream.set_nonblocking(true)?;
                stream.into()
            }
        };
        Ok(socket)
    }
}

impl fmt::Display for OriginSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Unix => "Unix",
        })
    }
}

fn serve(mut stream: impl Read + Write, body_bytes: u64) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {body_bytes}\r\nContent-Type: text/html\r\n\r\n");
    let piece = vec![b'o'; PIECE_BYTES];
    // Head and beginning leave in one call, as from a real server.
    let first = [head.as_bytes(), &piece[..PIECE_BYTES.min(body_bytes as usize)]].concat();
    let mut request = [0; 4096];
    while matches!(stream.read(&mut request), Ok(1..)) {
        let mut left = body_bytes - PIECE_BYTES.min(body_bytes as usize) as u64;
        let mut sent = stream.write_all(&first);
        while sent.is_ok() && left > 0 {
            let bytes = PIECE_BYTES.min(left as usize);
            sent = stream.write_all(&piece[..bytes]);
            left -= bytes as u64;
        }
        if sent.is_err() {
            return;
        }
    }
}

const PIECE_BYTES: usize = 256 << 10;
