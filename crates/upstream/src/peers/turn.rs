//! A request at a peer: it counts for the peer's load, and its outcome for the peer's standing.

use std::sync::Arc;

use baton_shares::ClientKey;

use super::NodeOfPeers;
use super::Peers;
use super::balance::{Decided, Judged};
use super::cause::Cause;
use super::event::{Change, PeerEvent};
use super::failure_window::Asker;
use super::offered::{OfferedHandOff, OfferedWays};
use crate::origins::RETRIED;
use crate::{Application, Choice, ChoiceKey, FailureReason, Way};

/// A request that any of these peers may answer.
#[derive(Clone, Debug)]
pub struct TurnSought {
    peers: Arc<Peers>,
    /// What the policy knows the request by: the hash of its path, or `key`.
    hash: u64,
    /// By which the sizes of answers are known, whatever the key is.
    path_hash: u64,
    key: ChoiceKey,
    asker: Asker,
    offered: OfferedWays,
}

/// A request at one of the peers, until it is dropped.
#[derive(Debug)]
pub struct Turn {
    peers: Arc<Peers>,
    peer: usize,
    path_hash: u64,
    /// Peers that had the request, as bits.
    tried: u64,
    begun_ms: u64,
    asker: Asker,
    /// The window of failures that its answer counts in.
    answered_in: Option<u64>,
    /// Why it was chosen, and how the request gets there, if it is a node of a cluster.
    choice: Option<Choice>,
    /// Whether it counts for the peer's load.
    is_counted: bool,
    /// Whether the head of the response, or a failure, has been counted.
    has_answered: bool,
    has_failed: bool,
    /// Bytes of the answer, once it is complete.
    size: Option<u64>,
}

/// What came of a turn that was sought.
#[derive(Debug)]
pub(crate) enum Begun {
    /// A turn.
    Turn(Turn),
    /// It has to wait: the cluster has all that it can take.
    Wait(TurnSought),
    /// All peers are drained.
    Nowhere,
}

impl TurnSought {
    /// A request for this target, by which some policies choose: those of a cluster by its path. `client`: its address, unless
    /// it has come over a Unix socket. Failures that all clients of one address meet eject no peer.
    pub fn new(peers: Arc<Peers>, target: &[u8], client: Option<ClientKey>) -> Self {
        let hash = peers.hash(target);
        let (key, offered) = (ChoiceKey::Path, OfferedWays::default());
        Self { peers, hash, path_hash: hash, key, asker: Asker::new(client, target), offered }
    }

    /// The request, if the policy is to know it by something else than its path.
    #[must_use]
    pub fn keyed(self, key: ChoiceKey) -> Self {
        let hash = if let ChoiceKey::Own(hash) = key { hash } else { self.path_hash };
        Self { hash, key, ..self }
    }

    /// The peers.
    pub(crate) fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// The request, if its client can get to a node by these ways, too.
    #[must_use]
    pub fn offering(self, offered: OfferedWays) -> Self {
        Self { offered, ..self }
    }

    /// The request, for another target; a key of its own stays.
    #[must_use]
    pub fn for_target(&self, target: &[u8]) -> Self {
        let (peers, hash) = (Arc::clone(&self.peers), self.peers.hash(target));
        let asker = self.asker.for_target(target);
        Self { peers, hash, path_hash: hash, asker, ..self.clone() }.keyed(self.key)
    }
}

impl Turn {
    /// Lets the policy choose a peer.
    pub(crate) fn begin(sought: TurnSought, now_ms: u64) -> Begun {
        let TurnSought { peers, hash, path_hash, key, asker, offered } = &sought;
        let decided = {
            let mut balance = peers.balance();
            balance.retry_budget.note_request();
            balance.choose(&peers.crew, *hash, now_ms)
        };
        let (peer, why) = match decided {
            Decided::To(peer, why) => (peer, why),
            Decided::Wait => return Begun::Wait(sought),
            Decided::Nowhere => return Begun::Nowhere,
        };
        let way = way(peers, peer, *path_hash, *offered);
        let choice = peers.is_cluster().then(|| Choice { why: why.word(), way, key: *key });
        let (path_hash, asker) = (*path_hash, *asker);
        Begun::Turn(Self::at(sought.peers, peer, path_hash, asker, choice, now_ms))
    }

    /// The turn at a peer that was chosen, and counts it for its load.
    pub(super) fn at(
        peers: Arc<Peers>,
        peer: usize,
        path_hash: u64,
        asker: Asker,
        choice: Option<Choice>,
        now_ms: u64,
    ) -> Self {
        let turn = Self {
            asker,
            path_hash,
            peers,
            peer,
            tried: 1 << peer,
            begun_ms: now_ms,
            answered_in: None,
            choice,
            is_counted: true,
            has_answered: false,
            has_failed: false,
            size: None,
        };
        turn.note_choice();
        turn
    }

    /// The request has become a tunnel, which may be there for ever: in a cluster it counts for no load any more, or tunnels would
    /// keep all other requests waiting.
    pub(crate) fn note_tunnel(&mut self) {
        if self.peers.is_cluster() && std::mem::take(&mut self.is_counted) {
            self.peers.balance().end(&self.peers.crew, self.peer);
        }
    }

    /// Why a node was chosen, and how the request gets there.
    pub(crate) fn choice(&self) -> Option<Choice> {
        self.choice
    }

    /// Whether the request gets to the node by another way than through the gateway.
    pub(crate) fn leads_elsewhere(&self) -> bool {
        self.choice.is_some_and(|choice| !choice.way.is_through_gateway())
    }

    /// The node, if it is one of a cluster.
    pub(crate) fn node(&self) -> Option<NodeOfPeers> {
        self.choice.map(|_| NodeOfPeers { peers: Arc::clone(&self.peers), peer: self.peer })
    }

    /// A whole answer has so many bytes.
    pub(crate) fn note_size(&mut self, bytes: u64) {
        self.size = Some(bytes);
    }

    /// How the URL begins by which clients reach the node.
    pub(crate) fn public(&self) -> Option<&str> {
        self.peers.public(self.peer)
    }

    /// The request takes this way instead.
    pub(crate) fn take_way(&mut self, way: Way) {
        self.choice = self.choice.map(|choice| Choice { way, ..choice });
    }

    fn note_choice(&self) {
        if let Some(choice) = self.choice {
            self.application().settings().record.note_choice(choice.why);
        }
    }

    /// The peer.
    pub(crate) fn application(&self) -> &Arc<Application> {
        self.peers.application(self.peer)
    }

    /// The head of the response has come; the first call counts.
    pub(crate) fn note_status(&mut self, status: u16, now_ms: u64) -> Option<PeerEvent> {
        if std::mem::replace(&mut self.has_answered, true) {
            return None;
        }
        let (crew, begun_ms) = (&self.peers.crew, self.begun_ms);
        let judged =
            self.peers.balance().handle_status(crew, self.peer, status, self.asker, begun_ms, now_ms);
        match judged {
            Judged::Ejected { out_ms } => Some(self.ejected(out_ms, Cause::Status(status))),
            Judged::Failed => None,
            Judged::Answered { window_ms } => {
                self.answered_in = window_ms;
                None
            }
        }
    }

    /// The request has failed at the peer; the first call counts.
    pub(crate) fn note_failure(&mut self, why: FailureReason, now_ms: u64) -> Option<PeerEvent> {
        if !why.is_fault_of_peer() || std::mem::replace(&mut self.has_failed, true) {
            return None;
        }
        let cause = Cause::Failure(why);
        let (crew, answered_in) = (&self.peers.crew, self.answered_in.take());
        let mut balance = self.peers.balance();
        let out_ms = balance.handle_failure(crew, self.peer, cause, self.asker, answered_in, now_ms)?;
        drop(balance);
        Some(self.ejected(out_ms, cause))
    }

    fn ejected(&self, out_ms: u64, cause: Cause) -> PeerEvent {
        PeerEvent { origin: Arc::clone(self.application()), change: Change::Ejected { out_ms, cause } }
    }

    /// Goes on to a peer that was not tried, if there is one and the budget of retries allows it. What our own bounds refuse
    /// has cost no peer anything, and takes nothing from the budget.
    pub(crate) fn move_on(&mut self, why: FailureReason, now_ms: u64) -> bool {
        // Only the home has the file in memory: the node that fetches has its own disk besides.
        if self.choice.is_some_and(|choice| choice.way == Way::Fetch) {
            return false;
        }
        let mut balance = self.peers.balance();
        let is_free = matches!(why, FailureReason::QueueFull | FailureReason::TunnelsFull);
        let all = u64::MAX >> (u64::BITS as usize - self.peers.peers.len());
        if self.tried == all || !(is_free || balance.retry_budget.take()) {
            return false;
        }
        let Some(next) = balance.choose_other(&self.peers.crew, self.tried, now_ms) else { return false };
        if std::mem::replace(&mut self.is_counted, true) {
            balance.end(&self.peers.crew, self.peer);
        }
        drop(balance);
        (self.peer, self.begun_ms) = (next, now_ms);
        (self.has_answered, self.has_failed, self.answered_in) = (false, false, None);
        self.tried |= 1 << next;
        self.choice = self.choice.map(|choice| Choice { why: RETRIED, way: Way::Relay, ..choice });
        self.note_choice();
        true
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_counted {
            return;
        }
        let mut balance = self.peers.balance();
        balance.end(&self.peers.crew, self.peer);
        if let Some(bytes) = self.size.filter(|_| self.peers.is_cluster()) {
            balance.ways.note_size(self.path_hash, bytes);
        }
    }
}

/// By which way a request gets to its node.
fn way(peers: &Peers, peer: usize, path_hash: u64, offered: OfferedWays) -> Way {
    let record = &peers.application(peer).settings().record;
    let hands_over = match offered.hand_off {
        OfferedHandOff::No => false,
        OfferedHandOff::Always => record.takes_connections(),
        OfferedHandOff::IfCheaper { requests_before } => {
            record.takes_connections()
                && peers.balance().ways.choose(path_hash, requests_before, record.hand_off_seen())
        }
    };
    if hands_over {
        Way::HandOff
    } else if offered.redirect && peers.public(peer).is_some() {
        Way::Redirect
    } else {
        Way::Relay
    }
}
