//! What a site knows of one peer: what it lends to it, which list the peer obeys, and what the peer lends.

use std::collections::BTreeMap;

use baton_dispatch::Time;
use baton_dispatch::migration::{DocumentId, LoadMetric, MigrationSettings};
use serde_json::{Value, json};

use crate::Origin;
use crate::words::LoadReport;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) origin: Origin,
    /// The time of its last question, in its own clock: an older one is a replay.
    pub(super) heard_us: u64,
    /// Documents that it may serve.
    lent: BTreeMap<DocumentId, Lending>,
    /// Of that list.
    version: u64,
    /// The version that it obeys.
    obeyed: Option<u64>,
    /// What it lends to this server.
    theirs: Option<Theirs>,
    /// When it is asked, whatever the policy says.
    ask_at: Option<Time>,
    /// The question that it has not replied to.
    asked: Option<u64>,
    silences: u32,
    load: Option<(u64, Time)>,
}

#[derive(Clone, Copy, Debug)]
struct Lending {
    /// The first version of the list that has it.
    since: u64,
    /// The peer has obeyed that version, so that clients may be sent there.
    is_away: bool,
}

#[derive(Debug)]
struct Theirs {
    version: u64,
    documents: Vec<(String, u64)>,
}

impl Peer {
    pub(super) fn new(origin: Origin, version: u64, now: Time) -> Self {
        Self {
            origin,
            heard_us: 0,
            lent: BTreeMap::new(),
            version,
            obeyed: None,
            theirs: None,
            // It may know already what it lends to this server.
            ask_at: Some(now),
            asked: None,
            silences: 0,
            load: None,
        }
    }

    /// Lends a document. The peer is told at once.
    pub(super) fn list(&mut self, document: DocumentId, now: Time) {
        self.version += 1;
        self.lent.insert(document, Lending { since: self.version, is_away: false });
        self.ask_at = Some(now);
    }

    /// Takes a document back. Says whether clients were sent to it.
    pub(super) fn unlist(&mut self, document: DocumentId, now: Time) -> bool {
        let Some(lent) = self.lent.remove(&document) else { return false };
        self.version += 1;
        // A silent peer has its own schedule.
        self.ask_at = self.ask_at.or_else(|| (self.silences == 0).then_some(now));
        lent.is_away
    }

    pub(super) fn listed(&self) -> impl Iterator<Item = DocumentId> {
        self.lent.keys().copied()
    }

    /// The documents that it may serve, each with the first version of the list that has it.
    pub(super) fn listed_since(&self) -> impl Iterator<Item = (DocumentId, u64)> {
        self.lent.iter().map(|(document, lent)| (*document, lent.since))
    }

    pub(super) fn away(&self) -> impl Iterator<Item = DocumentId> {
        self.lent.iter().filter(|(_, lent)| lent.is_away).map(|(document, _)| *document)
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    pub(super) fn obeys_newest(&self) -> bool {
        self.obeyed == Some(self.version)
    }

    pub(super) fn theirs_version(&self) -> Option<u64> {
        self.theirs.as_ref().map(|theirs| theirs.version)
    }

    /// What it lends to this server, by name, and since when. None if it has not said so yet.
    pub(super) fn held(&self) -> Option<Vec<(String, u64)>> {
        self.theirs.as_ref().map(|theirs| theirs.documents.clone())
    }

    pub(super) fn due(&self) -> Option<Time> {
        self.ask_at.filter(|_| self.asked.is_none())
    }

    pub(super) fn is_due(&self, now: Time, by_policy: bool) -> bool {
        self.asked.is_none() && self.ask_at.map_or(by_policy, |at| at <= now)
    }

    pub(super) fn begin_question(&mut self, asked_us: u64) {
        self.asked = Some(asked_us);
        self.ask_at = None;
    }

    pub(super) fn asked(&self) -> Option<u64> {
        self.asked
    }

    pub(super) fn end_question(&mut self) {
        self.asked = None;
    }

    /// Asks again soon, so that a peer that is gone is known within one interval of questions.
    pub(super) fn note_silence(&mut self, settings: &MigrationSettings, now: Time) {
        self.silences = self.silences.saturating_add(1);
        self.load = None;
        let pause = if self.silences < settings.silences_max {
            AGAIN_US.min(settings.ping_us)
        } else {
            settings.ping_us
        };
        self.ask_at = Some(now.saturating_add(pause));
    }

    /// Takes what it says. Says whether the map has changed.
    pub(super) fn hear(&mut self, news: LoadReport, metric: LoadMetric, now: Time) -> bool {
        let mut changed = false;
        self.load = (news.metric == metric).then_some((news.load, now));
        if std::mem::take(&mut self.silences) > 0 {
            self.ask_at = None;
        }
        self.obeyed = news.obeys.filter(|version| *version <= self.version);
        for lent in self.lent.values_mut() {
            if !lent.is_away && self.obeyed.is_some_and(|obeyed| obeyed >= lent.since) {
                lent.is_away = true;
                changed = true;
            }
        }
        let knows = self.theirs_version() == Some(news.version);
        if let Some(documents) = news.lent.filter(|_| !knows) {
            changed = true;
            self.theirs = Some(Theirs { version: news.version, documents });
        }
        if !self.obeys_newest() || self.theirs_version() != Some(news.version) {
            self.ask_at = self.ask_at.or(Some(now.saturating_add(AGAIN_US)));
        }
        changed
    }

    pub(super) fn report(&self, now: Time) -> Value {
        json!({
            "at": self.origin.to_string(),
            "load": self.load.map(|(load, _)| load),
            "heard_ms": self.load.map(|(_, at)| now.saturating_sub(at) / 1000),
            "silences": self.silences,
            "holds": self.lent.len(),
            "lends": self.theirs.as_ref().map(|theirs| theirs.documents.len()),
        })
    }
}

/// The pause before a question is repeated, in microseconds.
const AGAIN_US: u64 = 1_000_000;
