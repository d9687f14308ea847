//! A home server in small: when a document moves, which one, to whom, and back.

use baton_dispatch::Time;
use baton_dispatch::migration::{
    DocumentId, HomeServer, LoadMetric, Location, MigrationSettings, Move, PeerId, WhyRecalled,
};

use crate::driver::SECOND;

/// A home server of an entry page with links to some documents, and its peers, which have told that they are idle.
struct Site {
    home: HomeServer,
    documents: Vec<DocumentId>,
    peers: Vec<PeerId>,
    now: Time,
}

/// Loads that are easily told.
fn by_requests() -> MigrationSettings {
    MigrationSettings { metric: LoadMetric::Requests, ..MigrationSettings::default() }
}

impl Site {
    fn new(documents: usize, peers: usize) -> Self {
        Self::with(by_requests(), documents, peers)
    }

    fn with(settings: MigrationSettings, documents: usize, peers: usize) -> Self {
        let mut home = HomeServer::new(settings, 0);
        let entry = home.insert(true).unwrap();
        let documents: Vec<_> = (0..documents).map(|_| home.insert(false).unwrap()).collect();
        assert!(home.set_links(entry, &documents));
        let peers: Vec<_> = (0..peers).map(|_| home.join().unwrap()).collect();
        peers.iter().for_each(|&peer| home.handle_load(peer, 0, 0));
        Self { home, documents, peers, now: 0 }
    }

    /// Serves this many requests for each document, by position.
    fn serve(&mut self, requests: &[u64]) {
        for (&document, &count) in self.documents.iter().zip(requests) {
            self.home.handle_served(Some(document), count, 1000 * count);
        }
    }

    /// An interval ends in which peers have told these loads: the decision.
    fn interval(&mut self, loads: &[u64]) -> Option<Move> {
        self.now += 10 * SECOND;
        for (&peer, &load) in self.peers.iter().zip(loads) {
            self.home.handle_load(peer, load, self.now);
        }
        self.home.handle_timeout(self.now);
        let decided = self.home.poll_move();
        assert_eq!(self.home.poll_move(), None);
        decided
    }

    fn migrated(&self, document: usize, peer: usize) -> Option<Move> {
        Some(Move::Migrate { document: self.documents[document], to: self.peers[peer] })
    }
}

#[test]
fn one_document_moves_per_interval_and_peer_by_peer() {
    let mut site = Site::new(4, 2);
    let served = [50, 40, 30, 20];
    let mut decided = Vec::new();
    for _ in 0..8 {
        site.serve(&served);
        decided.push(site.interval(&[0, 0]));
    }
    // T is a hundredth of the load: all four have it, and the links tell no difference. Each peer gets its next document after
    // a minute.
    let mut expected = vec![None; 8];
    (expected[0], expected[1]) = (site.migrated(0, 0), site.migrated(1, 1));
    (expected[6], expected[7]) = (site.migrated(2, 0), site.migrated(3, 1));
    assert_eq!(decided, expected);
}

#[test]
fn the_interval_has_to_be_over() {
    let mut site = Site::new(1, 1);
    site.serve(&[500]);
    site.home.handle_timeout(10 * SECOND - 1);
    assert_eq!((site.home.poll_move(), site.home.load()), (None, 0));
    site.home.handle_timeout(10 * SECOND);
    assert_eq!((site.home.poll_move(), site.home.load()), (site.migrated(0, 0), 50));
}

/// 120 % of the other's load: at exactly that nothing moves.
#[test]
fn a_home_server_lends_only_if_it_is_busier_by_a_margin() {
    for (requests, moves) in [(1200, false), (1210, true)] {
        let mut site = Site::new(1, 1);
        site.serve(&[requests]);
        assert_eq!(site.interval(&[100]), site.migrated(0, 0).filter(|_| moves), "{requests}");
    }
}

#[test]
fn the_lightest_peer_gets_the_document() {
    let mut site = Site::new(1, 3);
    site.serve(&[1000]);
    assert_eq!(site.interval(&[30, 10, 20]), site.migrated(0, 1));
}

#[test]
fn entry_points_stay_however_busy_they_are() {
    let mut home = HomeServer::new(by_requests(), 0);
    let entry = home.insert(true).unwrap();
    let peer = home.join().unwrap();
    home.handle_load(peer, 0, 0);
    home.handle_served(Some(entry), 10_000, 10_000);
    home.handle_timeout(10 * SECOND);
    assert_eq!((home.poll_move(), home.load()), (None, 1000));
}

/// Step iv: a document that pages away link to waits for one that none of them does.
#[test]
fn links_from_pages_away_count() {
    let mut site = Site::new(3, 2);
    let [page, linked, alone] = site.documents[..] else { panic!("three documents") };
    assert!(site.home.set_links(page, &[linked]));
    site.serve(&[300, 0, 0]);
    assert_eq!(site.interval(&[0, 0]), site.migrated(0, 0));
    assert_eq!(site.home.links_from(linked).len(), 2);
    site.serve(&[0, 300, 300]);
    assert_eq!(site.interval(&[0, 0]), Some(Move::Migrate { document: alone, to: site.peers[1] }));
}

/// A few large files outweigh many small ones only if bytes count.
#[test]
fn the_metric_decides_what_is_heavy() {
    for (metric, expected, load) in [
        (LoadMetric::Requests, 0, 101),
        (LoadMetric::Bytes, 1, 600),
        (LoadMetric::Both, 0, 101 * 65_536 + 600),
    ] {
        let settings = MigrationSettings { metric, threshold_permille: 500, ..MigrationSettings::default() };
        let mut site = Site::with(settings, 2, 1);
        site.home.handle_served(Some(site.documents[0]), 1000, 1000);
        site.home.handle_served(Some(site.documents[1]), 10, 5000);
        assert_eq!(site.interval(&[0]), site.migrated(expected, 0));
        assert_eq!(site.home.load(), load);
    }
}

#[test]
fn a_peer_that_stays_busier_returns_its_oldest_document_after_t_home() {
    let mut site = Site::new(2, 1);
    site.serve(&[500, 500]);
    assert_eq!(site.interval(&[0]), site.migrated(0, 0));
    let since = site.now;
    let recalled = loop {
        site.serve(&[0, 100]);
        if let Some(decided) = site.interval(&[50]) {
            break decided;
        }
    };
    let (document, from) = (site.documents[0], site.peers[0]);
    assert_eq!(recalled, Move::Recall { document, from, why: WhyRecalled::Busier });
    assert_eq!(site.now - since, 300 * SECOND);
    assert_eq!(site.home.location(document), Some(Location::Home));
}

#[test]
fn a_peer_that_falls_silent_gets_nothing_and_loses_all_after_the_third_time() {
    let mut site = Site::new(3, 1);
    for _ in 0..7 {
        site.serve(&[100, 100, 100]);
        site.interval(&[0]);
    }
    let peer = site.peers[0];
    assert_eq!(site.home.due(site.now + 20 * SECOND).collect::<Vec<_>>(), [peer]);
    assert_eq!(site.home.due(site.now + 20 * SECOND - 1).count(), 0);
    for silences in 1..=3 {
        site.now += 20 * SECOND;
        site.home.handle_silence(peer, site.now);
        site.serve(&[0, 0, 500]);
        site.home.handle_timeout(site.now);
        let recalled: Vec<_> = std::iter::from_fn(|| site.home.poll_move()).collect();
        let expected: Vec<_> = site.documents[..2]
            .iter()
            .filter(|_| silences == 3)
            .map(|&document| Move::Recall { document, from: peer, why: WhyRecalled::Silent })
            .collect();
        assert_eq!(recalled, expected, "after {silences}");
    }
    // It answers again: a minute after the recalls it gets a document.
    site.serve(&[100, 0, 0]);
    assert_eq!(site.interval(&[0]), None);
    for _ in 0..5 {
        site.serve(&[100, 0, 0]);
        if let Some(decided) = site.interval(&[0]) {
            assert_eq!(Some(decided), site.migrated(0, 0));
        }
    }
    assert_eq!(site.home.location(site.documents[0]), Some(Location::Lent { to: peer, since: site.now }));
}

/// A load that is older than two pings is no reason to lend anything.
#[test]
fn old_news_is_no_news() {
    for (age, moves) in [(40, true), (41, false)] {
        let mut site = Site::new(1, 1);
        site.now = age * SECOND;
        site.serve(&[1000]);
        site.home.handle_timeout(site.now);
        assert_eq!(site.home.poll_move(), site.migrated(0, 0).filter(|_| moves), "{age}");
    }
}

#[test]
fn tables_are_bounded() {
    let settings =
        MigrationSettings { documents_max: 2, links_max: 1, peers_max: 1, ..MigrationSettings::default() };
    let mut home = HomeServer::new(settings, 0);
    let [first, second] = [home.insert(false).unwrap(), home.insert(false).unwrap()];
    assert_eq!(home.insert(false), None);
    assert!(home.set_links(first, &[second, second, first]), "one link: twice, and to itself");
    assert!(!home.set_links(second, &[first]));
    assert_eq!((home.join().is_some(), home.join()), (true, None));
    assert_eq!(home.remove(first), Some(Location::Home));
    assert_eq!((home.location(first), home.remove(first)), (None, None));
    assert_eq!(home.insert(true), Some(first));
    assert!(home.set_links(second, &[first]));
}
