//! The machine: counts what is served, and decides once in an interval whether a document moves.

use std::collections::VecDeque;

use super::graph::Graph;
use super::peers::Peers;
use super::selection::select;
use super::{DocumentId, Location, MigrationSettings, PeerId};
use crate::Time;

/// A server that owns documents and may lend them to peers.
///
/// Methods: getters; commands (`insert` to `join`); `handle_*` for input; [`Self::poll_timeout`] says when to call
/// [`Self::handle_timeout`], and to ask the peers that are [`Self::due`]; after that, and after a silence,
/// [`Self::poll_move`] has the decisions.
#[derive(Clone, Debug)]
pub struct HomeServer {
    settings: MigrationSettings,
    graph: Graph,
    peers: Peers,
    /// When the interval began.
    since: Time,
    /// What this server has served since then.
    counted: u64,
    /// What it served per second in the interval before.
    load: u64,
    /// At most one decision about balance, and the recalls of documents whose peer is gone.
    moves: VecDeque<Move>,
}

/// A decision about one document. The books have it already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// The peer serves it from now on; links and requests are sent there.
    Migrate {
        /// The document, which was at home.
        document: DocumentId,
        /// The peer.
        to: PeerId,
    },
    /// The home server serves it again; the peer may forget it.
    Recall {
        /// The document.
        document: DocumentId,
        /// The peer that had it.
        from: PeerId,
        /// The reason.
        why: WhyRecalled,
    },
}

/// Why a document is recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyRecalled {
    /// The peer does not answer.
    Silent,
    /// The peer is busier than the home server.
    Busier,
}

impl WhyRecalled {
    /// The reason as one word for logs and metric labels.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Silent => "silent",
            Self::Busier => "busier",
        }
    }
}

impl HomeServer {
    /// A home server without documents and peers, whose first interval begins now.
    pub const fn new(settings: MigrationSettings, now: Time) -> Self {
        Self {
            graph: Graph::new(settings.documents_max, settings.links_max),
            peers: Peers::new(settings.peers_max),
            settings,
            since: now,
            counted: 0,
            load: 0,
            moves: VecDeque::new(),
        }
    }

    /// What the server served per second in the last complete interval, by the metric of its settings: the load that it tells
    /// its peers.
    pub const fn load(&self) -> u64 {
        self.load
    }

    /// Who serves a document; none if it does not exist.
    pub fn location(&self, document: DocumentId) -> Option<Location> {
        self.graph.location(document)
    }

    /// What a document has been asked for in this interval so far, and T: what it needs for a migration, as long as any
    /// document has so much.
    pub fn weight(&self, document: DocumentId) -> (u64, u64) {
        (self.graph.load(document), self.threshold())
    }

    /// The peer that would get a document now, and whether this server is busy enough for that. None: no peer has told its
    /// load, or something moved to or from each of them lately.
    pub fn lightest_peer(&self, now: Time) -> Option<(PeerId, bool)> {
        let lightest =
            self.peers.movable(now, &self.settings).min_by_key(|known| (known.load, known.peer))?;
        Some((lightest.peer, self.is_busier(self.load, lightest.load)))
    }

    fn threshold(&self) -> u64 {
        let threshold = u128::from(self.counted) * u128::from(self.settings.threshold_permille) / 1000;
        u64::try_from(threshold).unwrap_or(u64::MAX)
    }

    /// The documents with links to this one: those that change when it moves.
    pub fn links_from(&self, document: DocumentId) -> &[DocumentId] {
        self.graph.links_from(document)
    }

    /// Peers that have said nothing for so long that they should be asked for their load.
    pub fn due(&self, now: Time) -> impl Iterator<Item = PeerId> {
        self.peers.due(now)
    }

    /// Adds a document, at home and without links. A well-known entry point never migrates. None if there are too many.
    ///
    /// Of documents that are equal to the policy, the one inserted first migrates first.
    pub fn insert(&mut self, is_entry_point: bool) -> Option<DocumentId> {
        self.graph.insert(is_entry_point)
    }

    /// Removes a document. Says who served it: a peer has to be told by the caller.
    pub fn remove(&mut self, document: DocumentId) -> Option<Location> {
        self.moves.retain(|decided| decided.document() != document);
        self.graph.remove(document)
    }

    /// Replaces the links of a document: the documents that it leads to or embeds. False if there would be too many, or the
    /// document does not exist; it has no links then.
    pub fn set_links(&mut self, document: DocumentId, links: &[DocumentId]) -> bool {
        self.graph.set_links(document, links)
    }

    /// Adds a peer, which gets nothing until it tells its load. None if there are too many.
    pub fn join(&mut self) -> Option<PeerId> {
        self.peers.join()
    }

    /// The server has answered so many requests with so many bytes together: with this document, or with something else that
    /// costs it a connection, such as redirects or what it holds for another server.
    pub fn handle_served(&mut self, document: Option<DocumentId>, requests: u64, bytes: u64) {
        let weight = self.settings.metric.of(requests, bytes);
        self.counted = self.counted.saturating_add(weight);
        if let Some(document) = document {
            self.graph.count(document, weight);
        }
    }

    /// A peer has told its load, per second and by the same metric.
    pub fn handle_load(&mut self, peer: PeerId, load: u64, now: Time) {
        self.peers.handle_load(peer, load, now, &self.settings);
    }

    /// A peer has not answered. After several times in a row, its documents are recalled.
    pub fn handle_silence(&mut self, peer: PeerId, now: Time) {
        if !self.peers.handle_silence(peer, now, &self.settings) {
            return;
        }
        let documents: Vec<DocumentId> = self.graph.lent_to(peer).map(|(_, document)| document).collect();
        for document in documents {
            self.recall(document, peer, WhyRecalled::Silent, now);
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub fn poll_timeout(&self) -> Time {
        let interval = self.since.saturating_add(self.settings.statistics_us);
        self.peers.next_due().map_or(interval, |due| due.min(interval))
    }

    /// Time has passed. At the end of an interval, computes loads and decides.
    pub fn handle_timeout(&mut self, now: Time) {
        let elapsed_us = now.saturating_sub(self.since);
        if elapsed_us < self.settings.statistics_us.max(1) {
            return;
        }
        let per_s = u128::from(self.counted) * 1_000_000 / u128::from(elapsed_us);
        self.load = u64::try_from(per_s).unwrap_or(u64::MAX);
        if !self.migrate(now) {
            self.relieve(now);
        }
        self.graph.reset_loads();
        (self.since, self.counted) = (now, 0);
    }

    /// The next decision.
    pub fn poll_move(&mut self) -> Option<Move> {
        self.moves.pop_front()
    }

    /// Lends a document to the least busy peer, if this server is busier. False if none moves.
    fn migrate(&mut self, now: Time) -> bool {
        let Some((peer, true)) = self.lightest_peer(now) else { return false };
        let Some(document) = select(self.graph.candidates(), self.threshold()) else { return false };
        self.graph.set_location(document, Location::Lent { to: peer, since: now });
        self.peers.handle_move(peer, now);
        self.moves.push_back(Move::Migrate { document, to: peer });
        true
    }

    /// Recalls a document from the busiest peer, if that is busier than this server: the one that it has had the longest.
    fn relieve(&mut self, now: Time) {
        let recall_us = self.settings.recall_us;
        let longest = |peer| {
            let long = self.graph.lent_to(peer).filter(|&(since, _)| now.saturating_sub(since) >= recall_us);
            long.min()
        };
        let busier =
            self.peers.movable(now, &self.settings).filter(|known| self.is_busier(known.load, self.load));
        let found = busier.filter_map(|known| Some((known, longest(known.peer)?)));
        let busiest = found.max_by_key(|(known, _)| (known.load, std::cmp::Reverse(known.peer)));
        if let Some((known, (_, document))) = busiest {
            self.recall(document, known.peer, WhyRecalled::Busier, now);
        }
    }

    fn recall(&mut self, document: DocumentId, from: PeerId, why: WhyRecalled, now: Time) {
        self.graph.set_location(document, Location::Home);
        self.peers.handle_move(from, now);
        self.moves.push_back(Move::Recall { document, from, why });
    }

    fn is_busier(&self, this: u64, that: u64) -> bool {
        u128::from(this) * 100 > u128::from(that) * u128::from(self.settings.imbalance_percent.max(100))
    }
}

impl Move {
    /// The document that moves.
    pub const fn document(self) -> DocumentId {
        match self {
            Self::Migrate { document, .. } | Self::Recall { document, .. } => document,
        }
    }
}
