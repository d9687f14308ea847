//! What holds of a home server through any history of requests, moves, silences and changes of its site.

use std::collections::HashMap;

use baton_dispatch::Time;
use baton_dispatch::migration::{
    DocumentId, HomeServer, Location, MigrationSettings, Move, PeerId, WhyRecalled,
};
use proptest::prelude::*;

use crate::driver::SECOND;

/// The next event. Numbers of documents and peers are taken as they are, whether or not these exist.
#[derive(Clone, Debug)]
enum Event {
    Insert { is_entry_point: bool },
    Remove { document: u32 },
    Link { document: u32, links: Vec<u32> },
    Serve { document: u32, requests: u64 },
    Join,
    Tell { peer: u32, load: u64 },
    Silence { peer: u32 },
    Wait { seconds: u64 },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => any::<bool>().prop_map(|is_entry_point| Event::Insert { is_entry_point }),
        1 => (0_u32..8).prop_map(|document| Event::Remove { document }),
        2 => (0_u32..8, prop::collection::vec(0_u32..8, 0..4))
            .prop_map(|(document, links)| Event::Link { document, links }),
        12 => (0_u32..8, 0_u64..400).prop_map(|(document, requests)| Event::Serve { document, requests }),
        1 => Just(Event::Join),
        8 => (0_u32..4, prop_oneof![Just(0), 0_u64..60]).prop_map(|(peer, load)| Event::Tell { peer, load }),
        2 => (0_u32..4).prop_map(|peer| Event::Silence { peer }),
        12 => prop_oneof![Just(10), 0_u64..25].prop_map(|seconds| Event::Wait { seconds }),
    ]
}

const STATISTICS: Time = 10 * SECOND;
const PING: Time = 20 * SECOND;
const PEER: Time = 30 * SECOND;
const RECALL: Time = 50 * SECOND;

/// Short times, so that each rule is met.
fn settings() -> MigrationSettings {
    MigrationSettings {
        statistics_us: STATISTICS,
        ping_us: PING,
        peer_us: PEER,
        recall_us: RECALL,
        silences_max: 2,
        documents_max: 8,
        links_max: 12,
        peers_max: 4,
        ..MigrationSettings::default()
    }
}

/// What a caller would know from decisions alone.
#[derive(Default)]
struct Books {
    now: Time,
    /// Where each document is, since when, and whether it is an entry point.
    documents: HashMap<DocumentId, (Option<(PeerId, Time)>, bool)>,
    /// When a peer last told its load; gone with a silence.
    told: HashMap<PeerId, Time>,
    moved: HashMap<PeerId, Time>,
    last_balance: Option<Time>,
}

impl Books {
    /// Holds a decision against the rules, and takes it over.
    fn check(&mut self, decided: Move) -> Result<(), TestCaseError> {
        let now = self.now;
        let Some((holder, is_entry_point)) = self.documents.get_mut(&decided.document()) else {
            return Err(TestCaseError::fail(format!("{decided:?}: there is no such document")));
        };
        let peer = match decided {
            Move::Migrate { to, .. } => {
                prop_assert_eq!(*holder, None, "it is lent already: {:?}", decided);
                prop_assert!(!*is_entry_point, "an entry point moved");
                *holder = Some((to, now));
                to
            }
            Move::Recall { from, why, .. } => {
                let Some((peer, since)) = holder.take() else {
                    return Err(TestCaseError::fail(format!("{decided:?}: it is at home")));
                };
                prop_assert_eq!(peer, from);
                if why == WhyRecalled::Silent {
                    prop_assert!(!self.told.contains_key(&from), "the peer has answered");
                    self.moved.insert(from, now);
                    return Ok(());
                }
                prop_assert!(now - since >= RECALL);
                from
            }
        };
        // Balance: one document per interval, one per peer in its time, and none for a peer that does not answer.
        prop_assert!(self.last_balance.replace(now).is_none_or(|last| now - last >= STATISTICS));
        prop_assert!(self.moved.insert(peer, now).is_none_or(|last| now - last >= PEER));
        let told = self.told.get(&peer);
        prop_assert!(told.is_some_and(|&told| now - told <= 2 * PING), "{} does not answer", peer);
        Ok(())
    }
}

fn apply(home: &mut HomeServer, now: Time, event: &Event) -> Option<DocumentId> {
    match event {
        Event::Insert { is_entry_point } => return home.insert(*is_entry_point),
        Event::Remove { document } => drop(home.remove(DocumentId(*document))),
        Event::Link { document, links } => {
            let links: Vec<DocumentId> = links.iter().copied().map(DocumentId).collect();
            home.set_links(DocumentId(*document), &links);
        }
        Event::Serve { document, requests } => {
            home.handle_served(Some(DocumentId(*document)), *requests, 100 * requests);
        }
        Event::Join => drop(home.join()),
        Event::Tell { peer, load } => home.handle_load(PeerId(*peer), *load, now),
        Event::Silence { peer } => home.handle_silence(PeerId(*peer), now),
        Event::Wait { .. } => home.handle_timeout(now),
    }
    None
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A document is at home or with one peer, as decisions said; entry points never move; no more moves than allowed; nothing
    /// for a peer that does not answer; nothing stays with one that never will; equal histories give equal decisions.
    #[test]
    fn books_are_kept(events in prop::collection::vec(event(), 1..300)) {
        let mut home = HomeServer::new(settings(), 0);
        let mut twin = HomeServer::new(settings(), 0);
        let mut books = Books::default();
        let mut silences = HashMap::new();
        for event in &events {
            match *event {
                Event::Wait { seconds } => books.now += seconds * SECOND,
                Event::Remove { document } => { books.documents.remove(&DocumentId(document)); }
                Event::Tell { peer, .. } => {
                    silences.remove(&PeerId(peer));
                    books.told.insert(PeerId(peer), books.now);
                }
                Event::Silence { peer } => {
                    *silences.entry(PeerId(peer)).or_insert(0) += 1;
                    books.told.remove(&PeerId(peer));
                }
                _ => {}
            }
            let inserted = apply(&mut home, books.now, event);
            prop_assert_eq!(inserted, apply(&mut twin, books.now, event));
            if let (Some(document), Event::Insert { is_entry_point }) = (inserted, event) {
                let before = books.documents.insert(document, (None, *is_entry_point));
                prop_assert_eq!(before, None, "two documents have one id");
            }
            while let Some(decided) = home.poll_move() {
                prop_assert_eq!(Some(decided), twin.poll_move());
                books.check(decided)?;
            }
            prop_assert_eq!(twin.poll_move(), None);
            for number in 0..9 {
                let id = DocumentId(number);
                let expected = books.documents.get(&id).map(|(holder, _)| match *holder {
                    Some((to, since)) => Location::Lent { to, since },
                    None => Location::Home,
                });
                prop_assert_eq!(home.location(id), expected);
            }
            let held = |peer: &PeerId| {
                books.documents.values().any(|(holder, _)| holder.is_some_and(|(by, _)| by == *peer))
            };
            prop_assert!(silences.iter().all(|(peer, count)| *count < 2 || !held(peer)));
        }
    }
}

/// The laws above would hold of a machine that never moves anything: histories of this kind do have moves of each kind.
#[test]
fn the_histories_have_moves_of_each_kind() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let (mut migrated, mut silent, mut busier) = (0, 0, 0);
    for _ in 0..200 {
        let events = prop::collection::vec(event(), 300).new_tree(&mut runner).unwrap().current();
        let (mut home, mut now) = (HomeServer::new(settings(), 0), 0);
        for event in &events {
            if let Event::Wait { seconds } = event {
                now += seconds * SECOND;
            }
            apply(&mut home, now, event);
            while let Some(decided) = home.poll_move() {
                match decided {
                    Move::Migrate { .. } => migrated += 1,
                    Move::Recall { why: WhyRecalled::Silent, .. } => silent += 1,
                    Move::Recall { why: WhyRecalled::Busier, .. } => busier += 1,
                }
            }
        }
    }
    assert!(migrated > 100 && silent > 10 && busier > 10, "{migrated} {silent} {busier}");
}
