//! Three servers over a network that loses, delays and repeats messages, and cuts servers off: no address is given out that
//! does not work, and in the end all agree.

use std::collections::BTreeMap;

use baton_dcws::{
    Cooperation, Distrust, DocumentFile, Key, LoadReport, Map, Origin, Question, ServedCounts, SignedMessage,
    Stays,
};
use baton_dispatch::migration::{LoadMetric, MigrationSettings};

const SECOND: u64 = 1_000_000;

/// Clocks begin here, apart by less than what is tolerated.
const WALL_US: u64 = 1_700_000_000 * SECOND;

fn origin(index: usize) -> Origin {
    format!("http://s{index}.example").parse().unwrap()
}

fn key() -> Key {
    Key::from_file(&[b'k'; 40]).unwrap()
}

fn settings() -> MigrationSettings {
    MigrationSettings { peer_us: 10 * SECOND, recall_us: 60 * SECOND, ..MigrationSettings::default() }
}

/// A server, its map as its workers have it, and its clock's error.
struct Server {
    site: Cooperation,
    map: Option<Map>,
    skew_us: u64,
    is_cut_off: bool,
}

struct World {
    servers: Vec<Server>,
    now: u64,
    random: fastrand::Rng,
    /// Of a hundred messages.
    lost: u8,
}

impl World {
    fn new(seed: u64, count: usize, lost: u8) -> Self {
        let mut world = Self { servers: Vec::new(), now: 0, random: fastrand::Rng::with_seed(seed), lost };
        for index in 0..count {
            let server = world.start(index, count);
            world.servers.push(server);
        }
        world
    }

    fn start(&mut self, index: usize, count: usize) -> Server {
        let peers = (0..count).filter(|other| *other != index).map(origin).collect();
        let skew_us = self.random.u64(0..200 * SECOND);
        let wall_us = WALL_US + self.now + skew_us;
        let mut site = Cooperation::new(origin(index), peers, key(), settings(), self.now, wall_us);
        if index == 0 {
            site.handle_scan(folder(40, 1), self.now);
        }
        Server { site, map: None, skew_us, is_cut_off: false }
    }

    /// A second passes: questions, their replies, counts and maps.
    fn second(&mut self, requests: u64) {
        self.now += SECOND;
        for index in 0..self.servers.len() {
            self.ask(index);
            let server = &mut self.servers[index];
            if index == 0 {
                let numbering = server.map.as_ref().map_or(0, |map| map.numbering);
                let away = |number: &u32| {
                    server.map.as_ref().is_some_and(|map| map.away.iter().any(|(away, _)| away == number))
                };
                let documents: Vec<_> =
                    (1..40).filter(|number| !away(number)).map(|number| (number, requests, 0)).collect();
                server.site.handle_served(&ServedCounts {
                    numbering,
                    documents,
                    others: 1,
                    ..ServedCounts::default()
                });
            }
            server.site.handle_timeout(self.now);
            self.take_map(index);
        }
        self.check();
    }

    fn ask(&mut self, index: usize) {
        let (now, wall_us) = (self.now, WALL_US + self.now + self.servers[index].skew_us);
        while let Some((peer, question)) = self.servers[index].site.question(now, wall_us) {
            let to = self.servers[index].site.peer(peer).unwrap().to_string();
            let target = (0..self.servers.len()).find(|other| origin(*other).to_string() == to).unwrap();
            let is_cut = self.servers[index].is_cut_off || self.servers[target].is_cut_off;
            let reply = match is_cut || self.random.u8(0..100) < self.lost {
                true => None,
                false => self.answer(target, &question),
            };
            let site = &mut self.servers[index].site;
            match reply.filter(|_| self.random.u8(0..100) >= self.lost) {
                Some(reply) => site.handle_reply(peer, &reply.body, reply.signature.as_bytes(), now).unwrap(),
                None => site.handle_silence(peer, now),
            }
        }
    }

    fn answer(&mut self, target: usize, question: &SignedMessage) -> Option<SignedMessage> {
        let wall_us = WALL_US + self.now + self.servers[target].skew_us;
        let site = &mut self.servers[target].site;
        let admitted = site.admit(&question.signature, wall_us).ok()?;
        assert_eq!(site.admit(&question.signature, wall_us), Err(Distrust::Replayed));
        let reply = site.answer(admitted, &question.body, self.now).ok()?;
        // Workers have what was heard before the reply leaves.
        self.take_map(target);
        Some(reply)
    }

    fn take_map(&mut self, index: usize) {
        let server = &mut self.servers[index];
        server.map = server.site.take_map(WALL_US + self.now).or(server.map.take());
    }

    /// Every address that the home server gives out is served by its peer, or would be asked for.
    fn check(&self) {
        let Some(map) = &self.servers[0].map else { return };
        let mut seen = std::collections::BTreeSet::new();
        for (document, peer) in &map.away {
            assert!(seen.insert(*document), "a document is at one peer");
            let name = &map.documents[*document as usize][0];
            let holder = &self.servers[*peer as usize + 1];
            let held = holder.map.as_ref().and_then(|map| map.held[0].as_ref());
            assert!(
                held.is_none_or(|held| held.iter().any(|(held, _)| held == name)),
                "/{name} is not at its peer"
            );
        }
    }

    fn away(&self) -> usize {
        self.servers[0].map.as_ref().map_or(0, |map| map.away.len())
    }
}

/// An index with links to all others.
fn folder(count: usize, version: i64) -> BTreeMap<String, DocumentFile> {
    let name = |number: usize| format!("p{number:02}.png");
    let image =
        |_| DocumentFile { stamp: (1, 1, version, 0), aliases: Vec::new(), links: Vec::new(), stays: None };
    let mut folder: BTreeMap<_, _> = (0..count - 1).map(|number| (name(number), image(number))).collect();
    let links = (0..count - 1).map(|number| (name(number), baton_dcws::links::Use::Moves)).collect();
    let index = DocumentFile {
        stamp: (0, 0, 0, 0),
        aliases: vec![String::new()],
        links,
        stays: Some(Stays::EntryPoint),
    };
    folder.insert("index.html".into(), index);
    folder
}

#[test]
fn documents_move_while_the_home_server_is_busier_and_all_pages_follow() {
    let mut world = World::new(1, 3, 0);
    (0..600).for_each(|_| world.second(2));
    assert!(world.away() >= 10, "{}", world.away());
    let map = world.servers[0].map.as_ref().unwrap();
    assert_eq!(map.pages.len(), 1, "the index links to them");
}

#[test]
fn a_silent_peer_loses_its_documents_within_one_interval_of_questions() {
    let mut world = World::new(2, 2, 0);
    (0..300).for_each(|_| world.second(2));
    assert!(world.away() > 0);
    world.servers[1].is_cut_off = true;
    (0..24).for_each(|_| world.second(2));
    assert_eq!(world.away(), 0);
    world.servers[1].is_cut_off = false;
    (0..300).for_each(|_| world.second(2));
    assert!(world.away() > 0, "it gets documents again");
}

#[test]
fn a_document_that_changes_comes_home() {
    let mut world = World::new(3, 2, 0);
    (0..300).for_each(|_| world.second(2));
    assert!(world.away() > 0);
    let now = world.now;
    world.servers[0].site.handle_scan(folder(40, 2), now);
    world.second(0);
    assert_eq!(world.away(), 0);
}

#[test]
fn no_address_dies_whatever_the_network_does() {
    for seed in 0..40 {
        let mut world = World::new(seed, 3, (seed % 4) as u8 * 10);
        for second in 0..400 {
            match world.random.u8(0..200) {
                0 => {
                    let index = world.random.usize(1..3);
                    world.servers[index].is_cut_off ^= true;
                }
                1 => {
                    let index = world.random.usize(0..3);
                    let server = world.start(index, 3);
                    world.servers[index] = server;
                }
                2 => {
                    let now = world.now;
                    world.servers[0].site.handle_scan(folder(40, second), now);
                }
                _ => {}
            }
            world.second(3);
        }
        world.lost = 0;
        world.servers.iter_mut().for_each(|server| server.is_cut_off = false);
        (0..60).for_each(|_| world.second(3));
        let lent = world.servers[0].site.report(world.now);
        let listed = lent["lent"].as_array().unwrap();
        assert!(listed.iter().filter(|one| one["announced"] == false).count() <= 1, "seed {seed}: {lent}");
    }
}

/// Loads that count different things say nothing about each other.
#[test]
fn the_load_of_a_peer_with_another_metric_is_not_heard() {
    let mut site = Cooperation::new(origin(0), vec![origin(1)], key(), settings(), 0, WALL_US);
    let mut hear = |metric, time_us| {
        let news = LoadReport { load: 7, metric, version: 1, lent: None, obeys: None };
        let signed = Question { from: origin(1), to: origin(0), time_us, news }.signed(&key());
        let admitted = site.admit(&signed.signature, WALL_US).unwrap();
        site.answer(admitted, &signed.body, 0).unwrap();
        let report = site.report(0);
        [report["peers"][0]["load"].as_u64(), report["refused"]["metric"].as_u64()]
    };
    assert_eq!(hear(LoadMetric::Bytes, WALL_US + 1), [None, Some(1)]);
    assert_eq!(hear(LoadMetric::Both, WALL_US + 2), [Some(7), Some(1)]);
}

#[test]
fn only_peers_with_the_key_and_a_right_clock_are_heard() {
    let mut site = Cooperation::new(origin(0), vec![origin(1)], key(), settings(), 0, WALL_US);
    let news = LoadReport {
        load: 1,
        metric: LoadMetric::Both,
        version: 1,
        lent: Some(vec![("x".into(), 1)]),
        obeys: None,
    };
    let question = |from: usize, to: usize, time_us| Question {
        from: origin(from),
        to: origin(to),
        time_us,
        news: news.clone(),
    };
    let mut hear = |question: Question, key: &Key| {
        let signed = question.signed(key);
        let admitted = site.admit(&signed.signature, WALL_US)?;
        site.answer(admitted, &signed.body, 0).map(|_| ())
    };
    let other = Key::from_file(&[b'x'; 40]).unwrap();
    assert_eq!(hear(question(1, 0, WALL_US), &other), Err(Distrust::Signature));
    assert_eq!(hear(question(2, 0, WALL_US), &key()), Err(Distrust::Stranger));
    assert_eq!(hear(question(1, 2, WALL_US), &key()), Err(Distrust::Stranger));
    assert_eq!(hear(question(1, 0, WALL_US + 301 * SECOND), &key()), Err(Distrust::Clock));
    assert_eq!(hear(question(1, 0, WALL_US - 301 * SECOND), &key()), Err(Distrust::Clock));
    assert_eq!(hear(question(1, 0, WALL_US + SECOND), &key()), Ok(()));
    assert_eq!(hear(question(1, 0, WALL_US + SECOND), &key()), Err(Distrust::Replayed));
    assert_eq!(hear(question(1, 0, WALL_US), &key()), Err(Distrust::Replayed), "an older one");
    assert_eq!(site.report(0)["refused"]["signature"], 1);
    let signed = question(1, 0, WALL_US + 2 * SECOND).signed(&key());
    let admitted = site.admit(&signed.signature, WALL_US).unwrap();
    assert_eq!(site.answer(admitted, b"another body", 0), Err(Distrust::Signature));
    for broken in ["", "a b c", &signed.signature[1..], &format!("{} x", signed.signature)] {
        assert_eq!(site.admit(broken, WALL_US), Err(Distrust::Unreadable), "{broken}");
    }
}
