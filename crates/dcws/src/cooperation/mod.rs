//! One site among the servers that share its load, as a machine without I/O: what it lends, what it is lent, and how it
//! hears of the others.
//!
//! ```text
//!   what is in the folder ─┐                      ┌─► Question ──► peer ──► Reply ─┐
//!   requests served ───────┼─► Cooperation ───────┤                                │
//!   questions of peers ────┘    │ HomeServer       └─◄──────────────────────────────┘
//!                               └─► Map: to the workers
//! ```
//!
//! A document moves in three steps, so that no address is given out that does not work: the policy chooses it; the peer is
//! told, and says that it obeys that list; from then on the map has it, and pages and redirects lead there. It comes home
//! in one: the map no longer has it, and the peer sends clients back as soon as it hears of that.

mod documents;
mod peer;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash as _, Hasher as _};

use baton_dispatch::Time;
use baton_dispatch::migration::{
    DocumentId, HomeServer, Location, MigrationSettings, Move, PeerId, WhyRecalled,
};
use serde_json::{Value, json};

pub use self::documents::{DocumentFile, FileStamp};

use self::documents::Documents;
use self::peer::Peer;
use crate::Origin;
use crate::map::{Map, ServedCounts};
use crate::trust::Key;
use crate::words::{Distrust, Envelope, LoadReport, Question, Reply, SignedMessage};

/// A site and its peers.
#[derive(Debug)]
pub struct Cooperation {
    at: Origin,
    key: Key,
    settings: MigrationSettings,
    home: HomeServer,
    documents: Documents,
    peers: Vec<Peer>,
    map_is_due: bool,
    /// The states of pages with links to documents away, by name, and since when in seconds since 1970.
    page_states: BTreeMap<String, (u64, u64)>,
    /// The time of the last question.
    asked_us: u64,
    moved: u64,
    recalled: BTreeMap<&'static str, u64>,
    /// Requests that got the address where a document is.
    redirected: u64,
    /// Requests for copies of peers' documents.
    copied: u64,
    /// Questions that peers have not replied to.
    unanswered: u64,
    refused: BTreeMap<&'static str, u64>,
}

/// A question whose head was believed. Only [`Cooperation::admit`] makes it.
#[derive(Debug, PartialEq, Eq)]
pub struct AuthenticQuestion {
    /// The place of the peer that asks.
    peer: usize,
    envelope: Envelope,
}

impl AuthenticQuestion {
    /// Bytes of the body.
    pub fn body_len(&self) -> usize {
        self.envelope.body_len()
    }
}

impl Cooperation {
    /// Nothing is lent yet. `wall_us` is the time since 1970, from which the versions of lists are counted: a server that
    /// starts anew uses none twice.
    pub fn new(
        at: Origin,
        peers: Vec<Origin>,
        key: Key,
        settings: MigrationSettings,
        now: Time,
        wall_us: u64,
    ) -> Self {
        let mut home = HomeServer::new(settings.clone(), now);
        let peers = peers.into_iter().map(|origin| {
            home.join();
            Peer::new(origin, wall_us, now)
        });
        let peers = peers.collect();
        Self {
            at,
            key,
            settings,
            home,
            documents: Documents::default(),
            peers,
            map_is_due: true,
            page_states: BTreeMap::new(),
            asked_us: 0,
            moved: 0,
            recalled: [WhyRecalled::Busier, WhyRecalled::Silent].map(|why| (why.word(), 0)).into(),
            redirected: 0,
            copied: 0,
            unanswered: 0,
            refused: BTreeMap::new(),
        }
    }

    /// Load per second in the last interval, by the metric of the settings.
    pub fn load(&self) -> u64 {
        self.home.load()
    }

    /// What is in the site's folder now, by path. Documents that have changed or are gone come home.
    pub fn handle_scan(&mut self, scanned: BTreeMap<String, DocumentFile>, now: Time) {
        for gone in self.documents.handle_scan(scanned, &mut self.home) {
            self.unlist(gone, now);
        }
        self.map_is_due = true;
    }

    /// What workers have counted.
    pub fn handle_served(&mut self, served: &ServedCounts) {
        for &(number, requests, bytes) in &served.documents {
            let document =
                (served.numbering == self.documents.numbering()).then(|| self.documents.id(number)).flatten();
            self.home.handle_served(document, requests, bytes);
        }
        self.redirected += served.redirects;
        self.copied += served.copies;
        let others = served.redirects.saturating_add(served.copies).saturating_add(served.others);
        self.home.handle_served(None, others, served.other_bytes);
    }

    /// When [`handle_timeout`](Self::handle_timeout) or a [question](Self::question) is due.
    pub fn poll_timeout(&self) -> Time {
        let asks = self.peers.iter().filter_map(Peer::due);
        asks.fold(self.home.poll_timeout(), Time::min)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.home.handle_timeout(now);
        self.take_moves(now);
    }

    /// The next question to a peer, if one is due. Its peer has to be told of by [`handle_reply`](Self::handle_reply) or
    /// [`handle_silence`](Self::handle_silence).
    pub fn question(&mut self, now: Time, wall_us: u64) -> Option<(usize, SignedMessage)> {
        let due: BTreeSet<PeerId> = self.home.due(now).collect();
        let is_due = |(index, peer): &(usize, &Peer)| peer.is_due(now, due.contains(&id_of(*index)));
        let (index, _) = self.peers.iter().enumerate().find(is_due)?;
        // Two questions of one microsecond would look like a replay.
        self.asked_us = wall_us.max(self.asked_us + 1);
        let news = self.news(index);
        let peer = &mut self.peers[index];
        peer.begin_question(self.asked_us);
        let question =
            Question { from: self.at.clone(), to: peer.origin.clone(), time_us: self.asked_us, news };
        Some((index, question.signed(&self.key)))
    }

    /// Where a peer is.
    pub fn peer(&self, index: usize) -> Option<&Origin> {
        self.peers.get(index).map(|peer| &peer.origin)
    }

    /// A peer has replied.
    ///
    /// # Errors
    /// It cannot be believed: the peer counts as silent.
    pub fn handle_reply(
        &mut self,
        index: usize,
        body: &[u8],
        signature: &[u8],
        now: Time,
    ) -> Result<(), Distrust> {
        let reply = Reply::verified(body, signature, &self.key).and_then(|reply| {
            let peer = self.peers.get(index).ok_or(Distrust::Stranger)?;
            if reply.from != peer.origin || reply.to != self.at {
                return Err(Distrust::Stranger);
            }
            if peer.asked() != Some(reply.answers_us) { Err(Distrust::Replayed) } else { Ok(reply) }
        });
        match reply {
            Ok(reply) => {
                self.peers[index].end_question();
                self.hear(index, reply.news, now);
                Ok(())
            }
            Err(distrust) => {
                self.note_refused(distrust);
                self.handle_silence(index, now);
                Err(distrust)
            }
        }
    }

    /// A peer has not replied. After several times in a row, its documents come home.
    pub fn handle_silence(&mut self, index: usize, now: Time) {
        let Some(peer) = self.peers.get_mut(index) else { return };
        peer.end_question();
        self.unanswered += 1;
        peer.note_silence(&self.settings, now);
        self.home.handle_silence(id_of(index), now);
        self.take_moves(now);
    }

    /// Admits a question by its signature field, once. Its body may be read then, and answered.
    ///
    /// # Errors
    /// It cannot be believed, and changes nothing.
    pub fn admit(&mut self, field: &str, wall_us: u64) -> Result<AuthenticQuestion, Distrust> {
        let admitted = self.believed(field, wall_us);
        let admitted = admitted.inspect_err(|distrust| self.note_refused(*distrust))?;
        self.peers[admitted.peer].heard_us = admitted.envelope.time_us;
        Ok(admitted)
    }

    /// Answers a question that was admitted.
    ///
    /// # Errors
    /// The body is another one, and changes nothing.
    pub fn answer(
        &mut self,
        admitted: AuthenticQuestion,
        body: &[u8],
        now: Time,
    ) -> Result<SignedMessage, Distrust> {
        let AuthenticQuestion { peer, envelope } = admitted;
        let news = envelope.open(body).inspect_err(|distrust| self.note_refused(*distrust))?;
        // The settings may have changed meanwhile.
        if self.peer(peer) != Some(&envelope.from) || envelope.to != self.at {
            return Err(Distrust::Stranger);
        }
        self.hear(peer, news, now);
        let news = self.news(peer);
        let reply = Reply { from: self.at.clone(), to: envelope.from, answers_us: envelope.time_us, news };
        Ok(reply.signed(&self.key))
    }

    /// Where documents are, if that has changed since the last call.
    pub fn take_map(&mut self, wall_us: u64) -> Option<Map> {
        std::mem::take(&mut self.map_is_due).then(|| self.map(wall_us / 1_000_000))
    }

    fn believed(&self, field: &str, wall_us: u64) -> Result<AuthenticQuestion, Distrust> {
        let envelope = Envelope::read(field)?;
        if !Envelope::is_signed(field, &self.key) {
            return Err(Distrust::Signature);
        }
        let is_asking = |peer: &Peer| peer.origin == envelope.from;
        let peer = self.peers.iter().position(is_asking).ok_or(Distrust::Stranger)?;
        if envelope.to != self.at {
            return Err(Distrust::Stranger);
        }
        if envelope.time_us.abs_diff(wall_us) > SKEW_US_MAX {
            return Err(Distrust::Clock);
        }
        if envelope.time_us <= self.peers[peer].heard_us {
            return Err(Distrust::Replayed);
        }
        Ok(AuthenticQuestion { peer, envelope })
    }

    fn note_refused(&mut self, distrust: Distrust) {
        *self.refused.entry(distrust.word()).or_default() += 1;
    }

    fn news(&self, index: usize) -> LoadReport {
        let peer = &self.peers[index];
        let lent = (!peer.obeys_newest()).then(|| {
            let names = |(id, since)| Some(self.documents.names(id)?.map(move |name| (name.clone(), since)));
            peer.listed_since().filter_map(names).flatten().collect()
        });
        LoadReport {
            load: self.home.load(),
            metric: self.settings.metric,
            version: peer.version(),
            lent,
            obeys: peer.theirs_version(),
        }
    }

    /// A peer has told its load and its lists.
    fn hear(&mut self, index: usize, news: LoadReport, now: Time) {
        if news.metric == self.settings.metric {
            self.home.handle_load(id_of(index), news.load, now);
        } else {
            self.note_refused(Distrust::Metric);
        }
        let changed = self.peers[index].hear(news, self.settings.metric, now);
        self.map_is_due |= changed;
        self.take_moves(now);
    }

    fn take_moves(&mut self, now: Time) {
        while let Some(decided) = self.home.poll_move() {
            match decided {
                Move::Migrate { document, to } => {
                    self.moved += 1;
                    self.peers[to.index()].list(document, now);
                }
                Move::Recall { document, why, .. } => {
                    *self.recalled.entry(why.word()).or_default() += 1;
                    self.unlist(document, now);
                }
            }
        }
    }

    fn unlist(&mut self, document: DocumentId, now: Time) {
        for peer in &mut self.peers {
            self.map_is_due |= peer.unlist(document, now);
        }
    }

    /// Documents that are known to be served by a peer, by its place.
    fn away(&self) -> impl Iterator<Item = (DocumentId, usize)> {
        self.peers
            .iter()
            .enumerate()
            .flat_map(|(index, peer)| peer.away().map(move |document| (document, index)))
    }

    fn map(&mut self, now_s: u64) -> Map {
        let mut links: BTreeMap<u32, BTreeSet<(&str, usize)>> = BTreeMap::new();
        let mut away = Vec::new();
        for (document, peer) in self.away() {
            let Some((number, name)) = self.documents.number_and_name(document) else { continue };
            away.push((number, peer as u32));
            for page in self.home.links_from(document) {
                if let Some((page, _)) = self.documents.number_and_name(*page) {
                    links.entry(page).or_default().insert((name, peer));
                }
            }
        }
        let mut page_states = BTreeMap::new();
        let mut pages = Vec::new();
        for (page, links) in links {
            let mut hasher = DefaultHasher::new();
            for (name, peer) in links {
                (name, self.peers[peer].origin.to_string()).hash(&mut hasher);
            }
            let (state, name) = (hasher.finish(), self.documents.name(page).unwrap_or_default());
            let known = self.page_states.get(name).filter(|(known, _)| *known == state);
            let since = known.map_or(now_s, |(_, since)| *since);
            page_states.insert(name.to_owned(), (state, since));
            pages.push((page, state, since));
        }
        self.page_states = page_states;
        Map {
            home: self.at.clone(),
            numbering: self.documents.numbering(),
            documents: self.documents.all_names(),
            peers: self.peers.iter().map(|peer| peer.origin.clone()).collect(),
            pages,
            held: self.peers.iter().map(Peer::held).collect(),
            away,
        }
    }

    /// For the status.
    pub fn report(&self, now: Time) -> Value {
        let lent = self.peers.iter().enumerate().flat_map(|(index, peer)| {
            peer.listed().filter_map(move |id| Some((id, index, self.documents.number_and_name(id)?.1)))
        });
        let lent = lent.map(|(id, index, name)| {
            let peer = &self.peers[index];
            json!({
                "document": format!("/{name}"),
                "at": peer.origin.to_string(),
                "address": crate::copy_address(&peer.origin, &self.at, &crate::map::decoded(name)),
                "announced": peer.away().any(|away| away == id),
                "linked_from": self.home.links_from(id).len(),
            })
        });
        json!({
            "at": self.at.to_string(),
            "metric": self.settings.metric,
            "load": self.home.load(),
            "documents": self.documents.len(),
            "movable": self.documents.movable(),
            "lent": lent.collect::<Vec<_>>(),
            "peers": self.peers.iter().map(|peer| peer.report(now)).collect::<Vec<_>>(),
            "moved": self.moved,
            "recalled": self.recalled,
            "redirects": self.redirected,
            "copies": self.copied,
            "unanswered": self.unanswered,
            "refused": self.refused,
        })
    }

    /// Where a document is, and why it stays. `path`: as clients ask for it, without a query. None: there is no such document.
    pub fn tell_of(&self, path: &str, now: Time) -> Option<Value> {
        let (id, name, stays) = self.documents.find(path.trim_start_matches('/'))?;
        let pinned_by: Vec<_> = self.documents.pinned_by(id).map(|page| format!("/{page}")).collect();
        let (load, threshold) = self.home.weight(id);
        let lent = match self.home.location(id) {
            Some(Location::Lent { to, .. }) => self.peers.get(to.0 as usize),
            _ => None,
        };
        let address = |peer: &Peer| crate::copy_address(&peer.origin, &self.at, &crate::map::decoded(name));
        let why = match (lent, stays) {
            (Some(_), _) => "this server was busier than its peer".to_owned(),
            (None, Some(stays)) => stays.told().to_owned(),
            (None, None) if !pinned_by.is_empty() => "pages use it in a way that needs its own origin".into(),
            (None, None) => self.why_home(load, threshold, now),
        };
        Some(json!({
            "site": self.at.to_string(),
            "metric": self.settings.metric,
            "document": format!("/{name}"),
            "address": lent.map(address),
            "announced": lent.is_some_and(|peer| peer.away().any(|away| away == id)),
            "why": why,
            "pinned_by": &pinned_by[..pinned_by.len().min(PAGES_SHOWN_MAX)],
            "linked_from": self.home.links_from(id).len(),
            "load": load,
            "threshold": threshold,
        }))
    }

    /// Why a document that may move is at home.
    fn why_home(&self, load: u64, threshold: u64, now: Time) -> String {
        match self.home.lightest_peer(now) {
            None => "no peer has told its load, or something moved to or from each of them lately".into(),
            Some((peer, false)) => {
                let peer =
                    self.peers.get(peer.0 as usize).map_or("a peer".into(), |peer| peer.origin.to_string());
                format!("this server is not busier than {peer}")
            }
            Some(_) if load < threshold.max(1) => "it is asked for too little".into(),
            Some(_) => "one document moves at the end of an interval: others came first".into(),
        }
    }
}

/// The peer at a place of the configuration.
fn id_of(index: usize) -> PeerId {
    PeerId(u32::try_from(index).unwrap_or(u32::MAX))
}

/// How far clocks of servers may be apart, in microseconds.
const SKEW_US_MAX: u64 = 300_000_000;

/// Pages that are named which keep a document at home.
const PAGES_SHOWN_MAX: usize = 16;
