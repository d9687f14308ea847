//! The mechanism of a hand-off alone: a server of a thread for each connection at the node, whose connections are opened
//! there, or at the front-end, which moves them when their first request has come.
//!
//! All of it runs in this process. What a hand-off takes beyond that is messages between processes and hosts.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::Scope;
use std::time::Duration;

use anyhow::{Context, Result};
use baton_sys::flow_table::{Flow, FlowTable, NextHop};
use baton_sys::tcp_repair::{TcpState, dump, end, freeze, restore, thaw};
use rustix::net::{SendFlags, send};

use crate::load::thread_cpu;
use crate::rig::network::ClusterHosts;

/// Files by their paths on the server, with their lengths.
pub(super) type Files = HashMap<String, (File, u64)>;

/// What threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    stopping: AtomicBool,
    front_cpu_ns: AtomicU64,
}

impl Shared {
    /// CPU time of the front-end so far.
    pub(super) fn front_cpu(&self) -> Duration {
        Duration::from_nanos(self.front_cpu_ns.load(Ordering::Relaxed))
    }

    /// Ends the server: a connection wakes the thread that accepts.
    pub(super) fn stop(&self, hosts: &ClusterHosts, address: SocketAddr) {
        self.stopping.store(true, Ordering::Relaxed);
        let _ = hosts.client.run(|| TcpStream::connect(address));
    }
}

/// Serves at the node.
pub(super) fn serve_at_node<'scope>(
    scope: &'scope Scope<'scope, '_>,
    hosts: &'scope ClusterHosts,
    address: SocketAddr,
    files: &'scope Files,
    shared: &'scope Shared,
) -> Result<()> {
    let listener = hosts.nodes[0].run(|| TcpListener::bind(address)).context("the node's address")?;
    accept(scope, listener, shared, move |stream| {
        scope.spawn(move || serve(stream, files));
    });
    Ok(())
}

/// Takes connections as they come, until the server ends.
fn accept<'scope>(
    scope: &'scope Scope<'scope, '_>,
    listener: TcpListener,
    shared: &'scope Shared,
    take: impl FnMut(TcpStream) + Send + 'scope,
) {
    scope.spawn(move || {
        let streams = listener.incoming().map_while(Result::ok);
        streams.take_while(|_| !shared.stopping.load(Ordering::Relaxed)).for_each(take);
    });
}

/// Accepts at the front-end, moves each connection to the node, and serves it there.
pub(super) fn serve_moved<'scope>(
    scope: &'scope Scope<'scope, '_>,
    hosts: &'scope ClusterHosts,
    address: SocketAddr,
    files: &'scope Files,
    shared: &'scope Shared,
) -> Result<()> {
    let listener = hosts.front.run(|| TcpListener::bind(address)).context("the front-end's address")?;
    let (table, interface) = hosts.front.run(|| -> io::Result<_> {
        let mut table = FlowTable::create(FLOWS_MAX)?;
        let interface = baton_sys::interfaces::towards(hosts.client.v4().into())?;
        let interface = interface.ok_or(io::ErrorKind::AddrNotAvailable)?;
        table.attach(interface)?;
        Ok((table, interface))
    })?;
    let table = std::sync::Arc::new(Mutex::new(table));
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let of_node = std::sync::Arc::clone(&table);
    scope.spawn(move || {
        hosts.nodes[0].run(|| {
            let next_hop = NextHop { interface, address: hosts.nodes[0].v4().into() };
            for state in receiver {
                match arrive(&state, &of_node, next_hop) {
                    Ok((flow, stream)) => {
                        let table = std::sync::Arc::clone(&of_node);
                        scope.spawn(move || {
                            serve(stream, files);
                            // Else the client's next connection from this port would be taken for this one.
                            table.lock().unwrap_or_else(PoisonError::into_inner).end(flow);
                        });
                    }
                    Err(error) => eprintln!("a connection did not arrive: {error:#}"),
                }
            }
        });
    });
    accept(scope, listener, shared, move |stream| {
        match leave(stream, &table) {
            Ok(Some(state)) => drop(sender.send(state)),
            Ok(None) => {}
            Err(error) => eprintln!("a connection did not leave: {error:#}"),
        }
        shared.front_cpu_ns.store(thread_cpu().as_nanos() as u64, Ordering::Relaxed);
    });
    Ok(())
}

/// Ends a connection at the front-end, as bytes that travel, with the request that has come; `None`: the client has left.
fn leave(stream: TcpStream, table: &Mutex<FlowTable>) -> Result<Option<Vec<u8>>> {
    if stream.peek(&mut [0]).context("waiting for the request")? == 0 {
        return Ok(None);
    }
    let flow = Flow { client: stream.peer_addr()?, vip: stream.local_addr()? };
    table.lock().unwrap_or_else(PoisonError::into_inner).hold(flow)?;
    freeze(&stream)?;
    let state = dump(&stream)?;
    end(&stream)?;
    Ok(Some(state.to_bytes()))
}

/// Makes the connection at the node, and has the client's packets forwarded there.
fn arrive(state: &[u8], table: &Mutex<FlowTable>, next_hop: NextHop) -> Result<(Flow, TcpStream)> {
    let state = TcpState::from_bytes(state).context("these bytes are no connection")?;
    let socket: OwnedFd = restore(&state)?;
    let flow = Flow { client: state.peer, vip: state.local };
    table.lock().unwrap_or_else(PoisonError::into_inner).forward(flow, next_hop)?;
    thaw(&socket)?;
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok((flow, stream))
}

/// Answers one request after the other. A client that goes is no error.
fn serve(mut stream: TcpStream, files: &Files) {
    let _ = stream.set_nodelay(true);
    let mut head = vec![0; 4096];
    let mut len = 0;
    loop {
        match stream.read(&mut head[len..]) {
            Ok(0) | Err(_) => return,
            Ok(count) => len += count,
        }
        if !head[..len].ends_with(b"\r\n\r\n") {
            continue;
        }
        let text = String::from_utf8_lossy(&head[..len]);
        let Some((file, bytes)) = text.split(' ').nth(1).and_then(|path| files.get(path)) else { return };
        if answer(&stream, file, *bytes).is_err() || text.contains("Connection: close") {
            return;
        }
        len = 0;
    }
}

fn answer(stream: &TcpStream, file: &File, bytes: u64) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n");
    send(stream, head.as_bytes(), SendFlags::MORE | SendFlags::NOSIGNAL)?;
    let mut offset = 0;
    while offset < bytes {
        let left = (bytes - offset) as usize;
        rustix::fs::sendfile(stream, file, Some(&mut offset), left)?;
    }
    Ok(())
}

/// More than a client has ports.
const FLOWS_MAX: u32 = 1 << 16;
