//! Connections with other agents, by the machine's names for them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use baton_cluster::agent::{HandoffAgent, NodeId, Peer, limits};
use baton_report::log;
use baton_tls::MemberKey;

use crate::channel::Channel;

/// Connections that have not shown yet that they are a member's.
const STRANGERS_MAX: usize = 32;

/// How long that may take.
const HANDSHAKE_MS: u64 = 3_000;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    pub(crate) channels: BTreeMap<Peer, Channel>,
    accepted: u64,
    buffer: Vec<u8>,
}

impl Peers {
    /// Begins to connect to a node.
    pub(crate) fn connect(
        &mut self,
        node: NodeId,
        address: SocketAddr,
        key: Option<&MemberKey>,
        now_ms: u64,
    ) -> Result<(), String> {
        let key = key.ok_or("there is no key")?;
        self.channels.insert(Peer::Node(node), Channel::connect(address, key, now_ms)?);
        Ok(())
    }

    /// Takes a connection that has arrived.
    pub(crate) fn accept(&mut self, socket: OwnedFd, key: &MemberKey, now_ms: u64) {
        let is_stranger =
            |(peer, channel): &(&Peer, &Channel)| matches!(peer, Peer::FrontEnd(_)) && !channel.is_announced;
        let strangers: Vec<_> = self.channels.iter().filter(is_stranger).map(|(peer, _)| *peer).collect();
        // The oldest has had the most time to show itself.
        if let [oldest, ..] = strangers[..]
            && strangers.len() >= STRANGERS_MAX
        {
            self.channels.remove(&oldest);
        }
        self.accepted += 1;
        match Channel::accept(socket, key, now_ms) {
            Ok(channel) => _ = self.channels.insert(Peer::FrontEnd(self.accepted), channel),
            Err(why) => log::warning(format_args!("a handoff agent's connection cannot be taken: {why}")),
        }
    }

    /// A socket can be read or written.
    pub(crate) fn handle_ready<S>(
        &mut self,
        peer: Peer,
        writable: bool,
        agent: &mut HandoffAgent<S>,
        now_ms: u64,
    ) {
        if let Err(why) = self.advance(peer, writable, agent, now_ms) {
            self.fail(peer, why, agent, now_ms);
        }
    }

    fn advance<S>(
        &mut self,
        peer: Peer,
        writable: bool,
        agent: &mut HandoffAgent<S>,
        now_ms: u64,
    ) -> Result<(), String> {
        let Some(channel) = self.channels.get_mut(&peer) else { return Ok(()) };
        if writable {
            channel.handle_writable()?;
        }
        // Bounded: others want to be heard, too.
        for _ in 0..READS_MAX {
            let read = channel.read(&mut self.buffer);
            if channel.is_established() && !std::mem::replace(&mut channel.is_announced, true) {
                match peer {
                    Peer::Node(node) => agent.handle_connected(node),
                    Peer::FrontEnd(connection) => {
                        if !agent.handle_accepted(connection, now_ms) {
                            return Err("there are too many front-ends".into());
                        }
                    }
                }
            }
            loop {
                match channel.frames.next_body() {
                    Ok(Some(body)) => agent.handle_body(peer, body, now_ms),
                    Ok(None) => break,
                    Err(refused) => {
                        agent.handle_refused(peer, refused, now_ms);
                        return Ok(());
                    }
                }
            }
            if !read? {
                break;
            }
        }
        Ok(())
    }

    /// A connection is of no use any more.
    fn fail<S>(&mut self, peer: Peer, why: String, agent: &mut HandoffAgent<S>, now_ms: u64) {
        let Some(channel) = self.channels.remove(&peer) else { return };
        match peer {
            Peer::FrontEnd(_) if !channel.is_announced => {
                log::warning(format_args!("a connection to the handoff agent's port is refused: {why}"));
            }
            _ => agent.handle_closed(peer, why, now_ms),
        }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, peer: Peer, message: &[u8]) {
        if let Some(channel) = self.channels.get_mut(&peer) {
            channel.send(message);
        }
    }

    /// Sends everything, and closes what takes too long.
    pub(crate) fn flush<S>(&mut self, agent: &mut HandoffAgent<S>, now_ms: u64) {
        let mut failed = Vec::new();
        for (peer, channel) in &mut self.channels {
            let is_late = !channel.is_announced && now_ms >= channel.since_ms + HANDSHAKE_MS;
            let flushed = channel.flush();
            match flushed {
                Err(why) => failed.push((*peer, why)),
                Ok(()) if is_late => failed.push((*peer, "it does not show that it is a member".to_owned())),
                Ok(()) => {}
            }
        }
        for (peer, why) in failed {
            self.fail(peer, why, agent, now_ms);
        }
    }

    /// Closes the connections of members that are none any more.
    pub(crate) fn revoke<S>(&mut self, revoked: &[String], agent: &mut HandoffAgent<S>, now_ms: u64) {
        let is_revoked = |channel: &Channel| {
            channel.member().is_some_and(|name| revoked.iter().any(|other| other.eq_ignore_ascii_case(&name)))
        };
        let of = |(peer, channel): (&Peer, &Channel)| is_revoked(channel).then_some(*peer);
        let closed: Vec<_> = self.channels.iter().filter_map(of).collect();
        for peer in closed {
            self.fail(peer, "its certificate is revoked".into(), agent, now_ms);
        }
    }

    /// When a connection is late.
    pub(crate) fn deadline_ms(&self) -> Option<u64> {
        let strangers = self.channels.values().filter(|channel| !channel.is_announced);
        strangers.map(|channel| channel.since_ms + HANDSHAKE_MS).min()
    }

    /// Closes a connection.
    pub(crate) fn disconnect(&mut self, peer: Peer) {
        if let Some(mut channel) = self.channels.remove(&peer) {
            let _ = channel.flush();
        }
    }
}

/// Reads of one peer in a row.
const READS_MAX: usize = 16;

const _: () = assert!(STRANGERS_MAX < limits::CONNECTIONS_MAX);
