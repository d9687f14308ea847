//! Several origins behind one route, its *peers*: which of them gets a request, and which are left out.
//!
//! ```text
//!   request ─► Balance: policy, weights ─► Turn at a peer ─► pool of that peer ─► its connections
//!                 ▲                          │    ▲ │
//!                 └── Standing ◄─ outcomes ──┘    └─┘ a failure that another peer may make good
//! ```
//!
//! The loops of a process share loads under a lock, which is held for one decision; requests to origins cost far more. All
//! processes of a server share verdicts: see [`origins`](crate::origins).

mod balance;
mod cause;
mod checks;
mod crew;
mod event;
mod failure_window;
mod homes;
mod offered;
mod standing;
#[cfg(test)]
mod succession;
mod turn;
mod view;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_dispatch::{Compared, RelayWork, Why, target_hash};

pub use balance::{BalanceSettings, ClusterSettings, PEERS_MAX};
pub(crate) use cause::Cause;
pub use checks::CheckSettings;
pub use event::PeerEvent;
pub(crate) use event::PeerEventQueue;
pub use homes::{Homes, RehearsedFetch};
pub use offered::{OfferedHandOff, OfferedWays};
pub use standing::Ejection;
pub(crate) use turn::Begun;
pub use turn::{Turn, TurnSought};
pub use view::{JudgedBy, OriginState};

use crate::{Application, ChoiceKey};
use balance::{Balance, Decided};
use crew::{Crew, Member};
use event::Change;

/// The peers of a route.
#[derive(Debug)]
pub struct Peers {
    peers: Vec<Peer>,
    check: Option<CheckSettings>,
    is_cluster: bool,
    crew: Crew,
    /// Shared with the peers that these follow, and with those that follow them.
    balance: Arc<Mutex<Balance>>,
}

/// Where a request would go.
#[derive(Clone, Debug)]
pub struct Rehearsed {
    /// The peer.
    pub application: Arc<Application>,
    /// Why.
    pub why: Why,
    /// The ways of the first request of a connection, compared, if connections can be handed over to it.
    pub ways: Option<Compared>,
}

/// A node of a cluster, for what is measured of its requests.
#[derive(Clone, Debug)]
pub(crate) struct NodeOfPeers {
    peers: Arc<Peers>,
    peer: usize,
}

impl NodeOfPeers {
    /// Work for relayed requests has taken so long.
    pub(crate) fn note_relayed(&self, work: RelayWork, ns: u64) {
        let mut balance = self.peers.balance();
        balance.ways.note_relayed(work, ns);
        self.peers.application(self.peer).settings().record.set_way_prices(&balance.ways);
    }

    /// A connection was given away in so long.
    pub(crate) fn note_given(&self, ns: u64) {
        let mut balance = self.peers.balance();
        balance.ways.note_given(ns);
        self.peers.application(self.peer).settings().record.set_way_prices(&balance.ways);
    }
}

/// One origin among several.
#[derive(Clone, Debug)]
pub struct Peer {
    /// The origin, which has a pool of its own in each loop.
    pub application: Arc<Application>,
    /// Its part of the requests, in relation to the weights of the others; at least 1.
    pub weight: u32,
    /// Whether it is asked only if no other is in.
    pub is_backup: bool,
    /// The head of the request that checks it.
    pub check_text: Vec<u8>,
    /// How the URL begins by which clients reach it, if it is a node that they may be sent to.
    pub public: Option<String>,
}

impl Peers {
    /// These peers: `None` if there are none, or more than [`PEERS_MAX`].
    pub fn new(peers: Vec<Peer>, settings: &BalanceSettings) -> Option<Arc<Self>> {
        has_right_count(&peers).then(|| {
            let (balance, crew) = Balance::new(members(&peers), settings);
            Arc::new(Self::of(peers, settings, crew, Arc::new(Mutex::new(balance))))
        })
    }

    /// These peers, in the place of others: peers of the same name keep their loads and their targets. The others
    /// are chosen from until these are for the first time.
    pub fn following(former: &Self, peers: Vec<Peer>, settings: &BalanceSettings) -> Option<Arc<Self>> {
        let mut balance = former.balance();
        if !has_right_count(&peers) || !balance.can_go_on(settings) {
            drop(balance);
            return Self::new(peers, settings);
        }
        let crew = balance.enroll(members(&peers), settings);
        drop(balance);
        Some(Arc::new(Self::of(peers, settings, crew, Arc::clone(&former.balance))))
    }

    fn of(peers: Vec<Peer>, settings: &BalanceSettings, crew: Crew, balance: Arc<Mutex<Balance>>) -> Self {
        let is_cluster = settings.cluster.is_some();
        Self { peers, check: settings.check.clone(), is_cluster, crew, balance }
    }

    /// How they are checked, if they are.
    pub fn check(&self) -> Option<&CheckSettings> {
        self.check.as_ref()
    }

    /// The peer that a request for this target would go to now, if no other request were under way; `None`: all are drained.
    pub fn rehearse(&self, target: &[u8], key: ChoiceKey) -> Option<Rehearsed> {
        self.ask(target, key, 0)
    }

    /// The peer that a request for this target would go to at that time, beside the requests that are under way. The policy may
    /// note the choice, as it does that of a request.
    pub fn ask(&self, target: &[u8], key: ChoiceKey, now_ms: u64) -> Option<Rehearsed> {
        let mut balance = self.balance();
        let hash = if let ChoiceKey::Own(hash) = key { hash } else { self.hash(target) };
        let Decided::To(chosen, why) = balance.choose(&self.crew, hash, now_ms) else {
            return None;
        };
        balance.end(&self.crew, chosen);
        let application = Arc::clone(self.application(chosen));
        let record = &application.settings().record;
        let ways = record
            .takes_connections()
            .then(|| balance.ways.compare(self.hash(target), 0, record.hand_off_seen()));
        Some(Rehearsed { application, why, ways })
    }

    /// By what policies know a target: in a cluster by its path, since nodes keep files.
    pub(crate) fn hash(&self, target: &[u8]) -> u64 {
        let path_len = target.iter().position(|byte| *byte == b'?').filter(|_| self.is_cluster);
        target_hash(&target[..path_len.unwrap_or(target.len())])
    }

    /// The first peer.
    pub fn first(&self) -> &Arc<Application> {
        self.application(0)
    }

    /// The peer of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<Application>> {
        self.peers.iter().map(|peer| &peer.application).find(|application| application.name() == name)
    }

    /// Whether they are the nodes of a cluster.
    pub(crate) fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    /// How the URL begins by which clients reach a peer.
    pub(crate) fn public(&self, peer: usize) -> Option<&str> {
        self.peers[peer].public.as_deref()
    }

    /// A peer.
    pub(crate) fn application(&self, peer: usize) -> &Arc<Application> {
        &self.peers[peer].application
    }

    /// What checks a peer.
    pub(crate) fn check_text(&self, peer: usize) -> &[u8] {
        &self.peers[peer].check_text
    }

    /// A peer whose check is due. The caller makes the check.
    pub(crate) fn take_due_check(&self, now_ms: u64) -> Option<usize> {
        self.crew.take_due_check(self.check.as_ref()?, now_ms)
    }

    /// When the next check is due; `u64::MAX`: never.
    pub(crate) fn next_check_ms(&self) -> u64 {
        self.crew.next_check_ms()
    }

    /// The result of a check: why it has failed, if it has.
    pub(crate) fn handle_check(&self, peer: usize, failed: Option<Cause>, now_ms: u64) -> Option<PeerEvent> {
        let turns = self.balance().handle_check(&self.crew, peer, self.check.as_ref()?, failed, now_ms);
        let change = failed.map_or(Change::Up, |cause| Change::Down { cause });
        turns.then(|| PeerEvent { origin: Arc::clone(self.application(peer)), change })
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        self.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn has_right_count(peers: &[Peer]) -> bool {
    (1..=PEERS_MAX).contains(&peers.len())
}

fn members(peers: &[Peer]) -> Vec<Member> {
    let member = |peer: &Peer| {
        let settings = peer.application.settings();
        Member {
            name: settings.node.clone().unwrap_or_else(|| settings.name.clone()),
            weight: peer.weight,
            is_backup: peer.is_backup,
            record: settings.record.clone(),
        }
    };
    peers.iter().map(member).collect()
}
