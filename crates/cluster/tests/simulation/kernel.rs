//! Kernels: where packets go, and what becomes of sockets.

use std::collections::VecDeque;

use baton_cluster::Tuple;

use crate::events::{Event, Packet, What};
use crate::host::{Entry, Handle, Owner, Socket};
use crate::world::World;

impl Socket {
    pub(crate) fn is_inert(&self) -> bool {
        self.owner == Owner::Inert
    }
}

impl World {
    /// A host's server accepts a connection. `false`: it has none.
    pub(crate) fn accept(&mut self, host: usize, conn: u64) -> bool {
        if !self.hosts[host].server.is_up {
            return false;
        }
        let socket =
            Socket { received: 0, sent: 0, inbox: VecDeque::new(), owner: Owner::Server, is_finished: false };
        self.hosts[host].sockets.insert(conn, socket);
        self.take_client(host, Handle { conn }, None, 0, None);
        true
    }

    pub(crate) fn packet_arrives(&mut self, host: usize, packet: Packet) {
        let Packet { conn, what } = packet;
        let tuple = self.conns[&conn].tuple;
        match self.hosts[host].table.get(&tuple) {
            Some(Entry::Held) => return self.tell(|| format!("  dropped: {tuple} is held")),
            Some(Entry::Forward(node) | Entry::Over(node)) => {
                let node = *node;
                if !self.cut.contains(&(host, node)) {
                    let delay_us = self.dice.range(20, 500);
                    self.after(delay_us, Event::Packet { host: node, packet });
                    // Some arrive twice, the second time late.
                    if self.dice.percent(20) {
                        let delay_us = self.dice.range(500, 60_000);
                        self.after(delay_us, Event::Packet { host: node, packet });
                    }
                }
                return;
            }
            None => {}
        }
        let Some(socket) = self.hosts[host].sockets.get_mut(&conn) else {
            if self.conns[&conn].has_ended {
                // The kernel remembers a connection that has just been closed.
                return;
            }
            return self.after(50, Event::Reset { conn });
        };
        match what {
            What::Request(request) if request == socket.received => {
                socket.received += 1;
                socket.inbox.push_back(request);
            }
            What::Request(_) => return,
            What::Finish => socket.is_finished = true,
        }
        if socket.owner == Owner::Server {
            self.client_readable(host, conn);
        }
    }

    /// What a frozen socket is, as bytes.
    pub(crate) fn dump(&mut self, host: usize, conn: u64) -> Vec<u8> {
        let socket = self.hosts[host].sockets.remove(&conn).expect("a socket that is frozen");
        let mut numbers = vec![conn, socket.received, socket.sent, u64::from(socket.is_finished)];
        numbers.extend(socket.inbox);
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// A socket from bytes. Another one with the same ends is in the way.
    pub(crate) fn restore(&mut self, host: usize, tuple: Tuple, tcp: &[u8]) -> Result<Handle, String> {
        let numbers: Vec<_> =
            tcp.chunks(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect();
        let [conn, received, sent, is_finished, inbox @ ..] = &numbers[..] else { panic!("a state") };
        assert_eq!(self.conns[conn].tuple, tuple);
        if self.hosts[host].sockets.keys().any(|other| self.conns[other].tuple == tuple) {
            return Err("EADDRINUSE".into());
        }
        let socket = Socket {
            received: *received,
            sent: *sent,
            inbox: inbox.iter().copied().collect(),
            owner: Owner::Inert,
            is_finished: *is_finished != 0,
        };
        self.hosts[host].sockets.insert(*conn, socket);
        Ok(Handle { conn: *conn })
    }

    /// A socket is closed; `None`: silently.
    pub(crate) fn close(&mut self, host: usize, conn: u64, event: Option<Event>) {
        self.hosts[host].sockets.remove(&conn).expect("a socket that is open");
        if let Some(event) = event {
            self.conns.get_mut(&conn).unwrap().has_ended |= matches!(event, Event::Closed { .. });
            let delay_us = self.dice.range(20, 1_000);
            self.after(delay_us, event);
        }
    }

    /// All sockets of an owner that has ended.
    pub(crate) fn close_all(&mut self, host: usize, owners: &[Owner]) {
        let sockets = &self.hosts[host].sockets;
        let closed: Vec<_> = sockets
            .iter()
            .filter(|(_, socket)| owners.contains(&socket.owner))
            .map(|(conn, socket)| (*conn, socket.is_inert()))
            .collect();
        for (conn, is_inert) in closed {
            let event = (!is_inert).then_some(Event::Reset { conn });
            self.close(host, conn, event);
        }
    }

    pub(crate) fn owner(&mut self, host: usize, conn: u64, owner: Owner) {
        self.hosts[host].sockets.get_mut(&conn).expect("a socket that is open").owner = owner;
    }
}
