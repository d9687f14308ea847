//! What a home server knows of its peers: their loads, and how old that knowledge is.

use std::fmt;

use super::settings::MigrationSettings;
use crate::Time;

/// A peer: its position in the order of joining. It is not given to another peer later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

impl PeerId {
    /// The position as an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "peer {}", self.0)
    }
}

/// The global load table of the paper.
#[derive(Clone, Debug)]
pub(super) struct Peers {
    peers: Vec<Peer>,
    peers_max: usize,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    /// What it told last, and when. None until it does, and from its first silence on.
    told: Option<(u64, Time)>,
    /// When a question is due, if nothing is heard before.
    question_due: Time,
    silences: u32,
    /// When a document last moved to it or from it.
    moved: Option<Time>,
}

/// A peer whose load is known, and recently enough to rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeerLoad {
    pub(super) peer: PeerId,
    pub(super) load: u64,
}

/// A load that is older than this many pings counts as unknown: its peer has left a question unanswered.
const PINGS_MAX: u64 = 2;

impl Peers {
    pub(super) const fn new(peers_max: usize) -> Self {
        Self { peers: Vec::new(), peers_max }
    }

    pub(super) fn join(&mut self) -> Option<PeerId> {
        let id = PeerId(u32::try_from(self.peers.len()).ok()?);
        if self.peers.len() >= self.peers_max {
            return None;
        }
        self.peers.push(Peer { told: None, question_due: 0, silences: 0, moved: None });
        Some(id)
    }

    pub(super) fn handle_load(&mut self, peer: PeerId, load: u64, now: Time, settings: &MigrationSettings) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.told = Some((load, now));
            peer.question_due = now.saturating_add(settings.ping_us);
            peer.silences = 0;
        }
    }

    /// A question was not answered. Says whether the peer has just been given up.
    pub(super) fn handle_silence(&mut self, peer: PeerId, now: Time, settings: &MigrationSettings) -> bool {
        let Some(peer) = self.peers.get_mut(peer.index()) else { return false };
        peer.told = None;
        peer.question_due = now.saturating_add(settings.ping_us);
        peer.silences = peer.silences.saturating_add(1);
        peer.silences == settings.silences_max.max(1)
    }

    pub(super) fn handle_move(&mut self, peer: PeerId, now: Time) {
        if let Some(peer) = self.peers.get_mut(peer.index()) {
            peer.moved = Some(now);
        }
    }

    /// Peers that should be asked for their load.
    pub(super) fn due(&self, now: Time) -> impl Iterator<Item = PeerId> {
        self.each().filter(move |(_, peer)| peer.question_due <= now).map(|(id, _)| id)
    }

    /// When the next peer should be asked.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.peers.iter().map(|peer| peer.question_due).min()
    }

    /// Peers to or from which a document may move now.
    pub(super) fn movable(
        &self,
        now: Time,
        settings: &MigrationSettings,
    ) -> impl Iterator<Item = PeerLoad> + Clone {
        let age_max = settings.ping_us.saturating_mul(PINGS_MAX);
        let peer_us = settings.peer_us;
        self.each().filter_map(move |(id, peer)| {
            let (load, at) = peer.told?;
            let is_settled = peer.moved.is_none_or(|moved| now.saturating_sub(moved) >= peer_us);
            (is_settled && now.saturating_sub(at) <= age_max).then_some(PeerLoad { peer: id, load })
        })
    }

    fn each(&self) -> impl Iterator<Item = (PeerId, &Peer)> + Clone {
        (0..).map(PeerId).zip(&self.peers)
    }
}
