//! A run: clients walk, servers answer, and the home server's policy moves documents.
//!
//! ```text
//!  walker ─► request ─► queue of the server that the link names ─► sends it ───────────────► walker
//!                │ full: 503, later again                        ├► not here: redirect ────► another server
//!                                                                └► not yet here: home server ─► copy
//! ```
//!
//! Networks cost nothing. A page's links lead where the documents were when the page was made: by the home server at each
//! request, for a peer when it fetched its copy.

use baton_dispatch::migration::{DocumentId, HomeServer, Location, Move, PeerId};

use super::outcome::{DocumentOutcome, WINDOW_S, settling_s};
use super::scenario::DocumentScenario;
use super::server::{DocumentCopy, Job, Request, Server};
use super::site::DocumentSite;
use super::walker::{Step, Walker};
use crate::queueing::{EventQueue, Work};

const SECOND_NS: u64 = 1_000_000_000;
/// The server that owns all documents. Peer *n* of the policy is server *n* + 1.
const HOME: u32 = 0;

/// Runs a scenario. `so_far` is told now and then how many simulated seconds have passed.
pub(crate) fn simulate(
    scenario: &DocumentScenario,
    site: &DocumentSite,
    so_far: &mut dyn FnMut(u64),
) -> DocumentOutcome {
    let mut simulation = Simulation::new(scenario, site);
    let end_ns = scenario.seconds * SECOND_NS;
    let mut told_s = 0;
    while let Some((now_ns, event)) = simulation.events.pop().filter(|(now_ns, _)| *now_ns < end_ns) {
        simulation.now_ns = now_ns;
        simulation.handle(event);
        if now_ns / SECOND_NS > told_s {
            told_s = now_ns / SECOND_NS;
            so_far(told_s);
        }
    }
    simulation.finish()
}

struct Simulation<'a> {
    scenario: &'a DocumentScenario,
    site: &'a DocumentSite,
    hot_page: Option<u32>,
    events: EventQueue<Event>,
    now_ns: u64,
    random: fastrand::Rng,
    walkers: Vec<Walker>,
    servers: Vec<Server>,
    home: HomeServer,
    /// Since when each document has been with which server, oldest first.
    history: Vec<Vec<(u64, u32)>>,
    measures: Measures,
}

#[derive(Default)]
struct Measures {
    /// By step of the timeline.
    answers: Vec<u64>,
    /// By document.
    documents: Vec<u64>,
    bytes: u64,
    redirects: u64,
    refusals: u64,
    migrations: u64,
    recalls: u64,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A client comes for the first time.
    Arrive { client: u32 },
    /// A client that was turned away asks again.
    Retry { server: u32, request: Request },
    /// A server has done what it was at.
    Done { server: u32, job: Job },
    /// The policy's time has come.
    Timeout,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a DocumentScenario, site: &'a DocumentSite) -> Self {
        let mut home = HomeServer::new(scenario.migration.clone(), 0);
        site.tell(&mut home);
        for _ in 1..scenario.servers {
            home.join();
        }
        let mut simulation = Self {
            hot_page: scenario.hot.and(site.hot_page()),
            events: EventQueue::new(),
            now_ns: 0,
            random: fastrand::Rng::with_seed(scenario.seed),
            walkers: vec![Walker::default(); scenario.clients_per_server * scenario.servers],
            servers: (0..scenario.servers).map(|_| Server::new()).collect(),
            home,
            history: vec![vec![(0, HOME)]; site.documents.len()],
            measures: Measures { documents: vec![0; site.documents.len()], ..Measures::default() },
            scenario,
            site,
        };
        for client in 0..simulation.walkers.len() as u32 {
            // Over the first second.
            let at_ns = simulation.random.u64(..SECOND_NS);
            simulation.events.push(at_ns, Event::Arrive { client });
        }
        simulation.events.push(0, Event::Timeout);
        simulation
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive { client } => self.begin(client),
            Event::Retry { server, request } => self.request(server, request),
            Event::Done { server, job } => {
                self.handle_done(server, job);
                if let Some(next) = self.servers[server as usize].station.handle_done() {
                    self.foresee(server, next);
                }
            }
            Event::Timeout => self.handle_timeout(),
        }
    }

    /// A walk begins, at an entry point or at the page that is hot.
    fn begin(&mut self, client: u32) {
        let is_late = self.now_ns >= self.hot_since_ns();
        let share = self.scenario.hot.map_or(0.0, |hot| hot.share);
        let hot_page = self.hot_page.filter(|_| is_late && self.random.f64() < share);
        let starts = &self.site.starts;
        let page = hot_page.unwrap_or_else(|| starts[self.random.usize(..starts.len())]);
        let steps = self.random.u32(1..=self.scenario.machine.steps as u32);
        self.walkers[client as usize].begin(page, steps);
        self.request(HOME, Request { client, document: page, is_page: true });
    }

    /// A client does what it can without waiting.
    fn proceed(&mut self, client: u32) {
        let helpers = self.scenario.machine.helpers as u32;
        loop {
            let walker = &mut self.walkers[client as usize];
            let (document, as_of_ns, is_page) = match walker.next(self.site, helpers, &mut self.random) {
                Step::Fetch { object, as_of_ns } => (object, as_of_ns, false),
                Step::Visit { page, as_of_ns } => (page, as_of_ns, true),
                Step::Wait => return,
                Step::Begin => return self.begin(client),
            };
            let server = self.holder_at(document, as_of_ns);
            self.request(server, Request { client, document, is_page });
        }
    }

    /// A client connects to a server.
    fn request(&mut self, server: u32, request: Request) {
        let station = &self.servers[server as usize].station;
        if station.waiting() >= self.scenario.machine.queue as usize {
            self.measures.refusals += u64::from(self.is_measured());
            let wait_s = self.walkers[request.client as usize].handle_refusal();
            let at_ns = self.now_ns + wait_s * SECOND_NS;
            return self.events.push(at_ns, Event::Retry { server, request });
        }
        let holder = self.holder(request.document);
        if holder != server {
            return self.work(server, Job::Redirect(request));
        }
        if server == HOME {
            return self.work(server, Job::Answer(request));
        }
        let validate_ns = (self.scenario.machine.validate_s * 1e9) as u64;
        let peer = &mut self.servers[server as usize];
        match peer.copies.get_mut(&request.document) {
            Some(held) => {
                let is_due = self.now_ns.saturating_sub(held.checked_ns) >= validate_ns && !held.is_asking;
                held.is_asking |= is_due;
                self.work(server, Job::Answer(request));
                if is_due {
                    self.work(HOME, Job::Copy { document: request.document, peer: server });
                }
            }
            None => {
                let waiting = peer.waiting.entry(request.document).or_default();
                waiting.push(request);
                if waiting.len() == 1 {
                    self.work(HOME, Job::Copy { document: request.document, peer: server });
                }
            }
        }
    }

    /// A server has a connection more to do something for.
    fn work(&mut self, server: u32, job: Job) {
        let machine = &self.scenario.machine;
        let us = machine.connection_us + machine.kb_us * self.bytes_of(job) as f64 / 1024.0;
        if let Some(begun) = self.servers[server as usize].offer(job, (us * 1000.0) as u64) {
            self.foresee(server, begun);
        }
    }

    fn foresee(&mut self, server: u32, work: Work<Job>) {
        self.events.push(self.now_ns + work.ns, Event::Done { server, job: work.job });
    }

    /// Bytes that are sent. A copy that has not changed is not sent again.
    fn bytes_of(&self, job: Job) -> u64 {
        let (document, is_sent) = match job {
            Job::Answer(request) => (request.document, true),
            Job::Redirect(request) => (request.document, false),
            Job::Copy { document, peer } => {
                let held = self.servers[peer as usize].copies.get(&document);
                (document, held.is_none_or(|held| self.has_changed_since(document, held.as_of_ns)))
            }
        };
        if is_sent { self.site.documents[document as usize].bytes } else { 0 }
    }

    /// Whether a link of the document leads elsewhere by now.
    fn has_changed_since(&self, document: u32, as_of_ns: u64) -> bool {
        let document = &self.site.documents[document as usize];
        let mut links = document.links.iter().chain(&document.embedded);
        links.any(|&to| self.history[to as usize].last().is_some_and(|&(since_ns, _)| since_ns > as_of_ns))
    }

    fn handle_done(&mut self, server: u32, job: Job) {
        let bytes = self.bytes_of(job);
        self.count(server, job, bytes);
        match job {
            Job::Answer(request) => {
                let window = (self.now_ns / (WINDOW_S * SECOND_NS)) as usize;
                self.measures.answers.resize(self.measures.answers.len().max(window + 1), 0);
                self.measures.answers[window] += 1;
                if self.is_measured() {
                    self.measures.bytes += bytes;
                    self.measures.documents[request.document as usize] += 1;
                    self.servers[server as usize].answers += 1;
                }
                let held = self.servers[server as usize].copies.get(&request.document);
                let as_of_ns = held.map_or(self.now_ns, |held| held.as_of_ns);
                let walker = &mut self.walkers[request.client as usize];
                if request.is_page {
                    walker.handle_page(self.site, request.document, as_of_ns);
                } else {
                    walker.handle_object();
                }
                self.proceed(request.client);
            }
            Job::Redirect(request) => {
                self.measures.redirects += u64::from(self.is_measured());
                // A peer knows the home server alone.
                let to = if server == HOME { self.holder(request.document) } else { HOME };
                self.request(to, request);
            }
            Job::Copy { document, peer } => self.handle_copy(document, peer, bytes > 0),
        }
    }

    /// A document, or that it has not changed, has arrived at a peer, which has told its load with the question.
    fn handle_copy(&mut self, document: u32, peer: u32, is_sent: bool) {
        let load = self.servers[peer as usize].load;
        self.home.handle_load(PeerId(peer - 1), load, self.now_ns / 1000);
        let is_lent = self.holder(document) == peer;
        let server = &mut self.servers[peer as usize];
        if is_lent {
            let before = server.copies.get(&document).filter(|_| !is_sent);
            let as_of_ns = before.map_or(self.now_ns, |held| held.as_of_ns);
            server
                .copies
                .insert(document, DocumentCopy { as_of_ns, checked_ns: self.now_ns, is_asking: false });
        }
        for request in server.waiting.remove(&document).unwrap_or_default() {
            self.work(peer, if is_lent { Job::Answer(request) } else { Job::Redirect(request) });
        }
    }

    /// Counts a connection for the loads on which the policy decides.
    fn count(&mut self, server: u32, job: Job, bytes: u64) {
        if server == HOME {
            let document = match job {
                Job::Answer(request) => Some(DocumentId(request.document)),
                Job::Redirect(_) | Job::Copy { .. } => None,
            };
            self.home.handle_served(document, 1, bytes);
        } else {
            self.servers[server as usize].counted += self.scenario.migration.metric.of(1, bytes);
        }
    }

    fn handle_timeout(&mut self) {
        let now_us = self.now_ns / 1000;
        let statistics_us = self.scenario.migration.statistics_us;
        if now_us > 0 && now_us.is_multiple_of(statistics_us) {
            for server in &mut self.servers {
                server.load = server.counted * 1_000_000 / statistics_us;
                server.counted = 0;
            }
        }
        let due: Vec<PeerId> = self.home.due(now_us).collect();
        for peer in due {
            self.home.handle_load(peer, self.servers[peer.index() + 1].load, now_us);
        }
        self.home.handle_timeout(now_us);
        while let Some(decided) = self.home.poll_move() {
            self.handle_move(decided);
        }
        self.events.push(self.home.poll_timeout() * 1000, Event::Timeout);
    }

    fn handle_move(&mut self, decided: Move) {
        let document = decided.document().0;
        let to = match decided {
            Move::Migrate { to, .. } => {
                self.measures.migrations += 1;
                to.0 + 1
            }
            Move::Recall { from, .. } => {
                self.measures.recalls += 1;
                self.servers[from.index() + 1].copies.remove(&document);
                HOME
            }
        };
        self.history[document as usize].push((self.now_ns, to));
    }

    fn holder(&self, document: u32) -> u32 {
        match self.home.location(DocumentId(document)) {
            Some(Location::Lent { to, .. }) => to.0 + 1,
            Some(Location::Home) | None => HOME,
        }
    }

    /// Where a link led that was made at a moment.
    fn holder_at(&self, document: u32, as_of_ns: u64) -> u32 {
        let mut moves = self.history[document as usize].iter().rev();
        moves.find(|(since_ns, _)| *since_ns <= as_of_ns).map_or(HOME, |(_, server)| *server)
    }

    fn hot_since_ns(&self) -> u64 {
        self.scenario.seconds * SECOND_NS / 2
    }

    /// The last third of the run.
    fn is_measured(&self) -> bool {
        self.now_ns >= self.scenario.seconds * SECOND_NS / 3 * 2
    }

    fn finish(self) -> DocumentOutcome {
        let Measures { answers, documents, bytes, redirects, refusals, migrations, recalls } = self.measures;
        let seconds = (self.scenario.seconds - self.scenario.seconds / 3 * 2).max(1) as f64;
        let by_server: Vec<u64> = self.servers.iter().map(|server| server.answers).collect();
        let answered: u64 = by_server.iter().sum();
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let timeline: Vec<f64> = answers.iter().map(|&count| count as f64 / WINDOW_S as f64).collect();
        let from_s = if self.scenario.hot.is_some() { self.scenario.seconds / 2 } else { 0 };
        let hottest = documents.into_iter().max().unwrap_or(0);
        let most = by_server.iter().max().copied().unwrap_or(0);
        DocumentOutcome {
            site: self.site.name.clone(),
            servers: self.servers.len(),
            hot_share: self.scenario.hot.map_or(0.0, |hot| hot.share),
            connections_per_s: answered as f64 / seconds,
            mbytes_per_s: bytes as f64 / seconds / 1e6,
            redirected: share(redirects, answered + redirects),
            refused: share(refusals, answered + redirects + refusals),
            home_share: share(by_server[HOME as usize], answered),
            hottest: share(hottest, answered),
            busiest: share(most * by_server.len() as u64, answered),
            migrations,
            recalls,
            lent: migrations - recalls,
            settled_s: settling_s(&timeline, (from_s / WINDOW_S) as usize),
            timeline,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::made::SiteParameters;
    use super::super::scenario::{HotPage, Machine};
    use super::*;

    /// A policy that moves a document in each second.
    fn quick(servers: usize, seconds: u64) -> DocumentScenario {
        let mut scenario = DocumentScenario { servers, seconds, ..DocumentScenario::published() };
        scenario.set("statistics_s=1,ping_s=2,peer_s=1,recall_s=5").unwrap();
        scenario
    }

    fn run(scenario: &DocumentScenario, site: &DocumentSite) -> DocumentOutcome {
        simulate(scenario, site, &mut |_| ())
    }

    /// A page of a kilobyte takes 5,000 + 80 us.
    #[test]
    fn a_connection_costs_what_it_costs() {
        let mut site = SiteParameters { pages: 1, images: 0, ..SiteParameters::default() }.site("", 1);
        site.documents[0].bytes = 1024;
        let outcome = run(&DocumentScenario { seconds: 120, ..DocumentScenario::published() }, &site);
        assert!((outcome.connections_per_s - 1e6 / 5080.0).abs() < 1.0, "{}", outcome.connections_per_s);
        assert!((outcome.mbytes_per_s - outcome.connections_per_s * 0.001024).abs() < 1e-9);
        assert_eq!((outcome.migrations, outcome.redirected, outcome.home_share), (0, 0.0, 1.0));
    }

    /// An entry page and another one: all that may move moves, and both servers have half of the work.
    #[test]
    fn links_take_the_load_along() {
        let site = SiteParameters { pages: 2, links: 1, images: 0, ..SiteParameters::default() }.site("", 1);
        let mut scenario = DocumentScenario { clients_per_server: 3, ..quick(2, 120) };
        scenario.set("steps=2,imbalance_percent=100000").unwrap();
        let outcome = run(&scenario, &site);
        assert_eq!((outcome.migrations, outcome.recalls, outcome.lent), (1, 0, 1));
        // Of two walks one goes on to the second page.
        assert!((outcome.home_share - 2.0 / 3.0).abs() < 0.05, "{}", outcome.home_share);
        assert!((outcome.hottest - 2.0 / 3.0).abs() < 0.05, "{}", outcome.hottest);
        assert_eq!(outcome.redirected, 0.0, "links lead to the new place");
    }

    /// Walks that begin at a lent page, by its address at home, are redirected.
    #[test]
    fn who_comes_by_an_old_address_is_redirected() {
        let site = SiteParameters { pages: 2, links: 1, images: 0, ..SiteParameters::default() }.site("", 1);
        let mut scenario = DocumentScenario { hot: Some(HotPage { share: 1.0 }), ..quick(2, 120) };
        scenario.set("steps=1,imbalance_percent=100000").unwrap();
        let outcome = run(&scenario, &site);
        assert_eq!(outcome.migrations, 1);
        assert!((outcome.redirected - 0.5).abs() < 0.01, "{}", outcome.redirected);
        assert!(outcome.home_share < 0.01);
    }

    #[test]
    fn a_full_queue_turns_clients_away() {
        let mut scenario = DocumentScenario { seconds: 60, ..DocumentScenario::published() };
        let site = SiteParameters::default().site("", 1);
        assert_eq!(run(&scenario, &site).refused, 0.0);
        scenario.machine.queue = 2.0;
        assert!(run(&scenario, &site).refused > 0.0);
    }

    /// A peer asks the home server for each copy once in its time, and not at each request.
    #[test]
    fn copies_are_fetched_once_and_checked_in_time() {
        let site = SiteParameters { pages: 2, links: 1, images: 0, ..SiteParameters::default() }.site("", 1);
        for (validate_s, copies) in [(1000.0, 1..2), (10.0, 10..13)] {
            let mut scenario = quick(2, 120);
            scenario.machine = Machine { validate_s, steps: 2.0, ..Machine::default() };
            scenario.set("imbalance_percent=100000").unwrap();
            let mut simulation = Simulation::new(&scenario, &site);
            let mut asked = 0;
            while let Some((now_ns, event)) = simulation.events.pop().filter(|(at, _)| *at < 120 * SECOND_NS)
            {
                simulation.now_ns = now_ns;
                asked += i32::from(matches!(event, Event::Done { job: Job::Copy { .. }, .. }));
                simulation.handle(event);
            }
            assert!(copies.contains(&asked), "{asked} with {validate_s}");
        }
    }

    /// A document that was called back while its copy was on the way: who waits for it at the peer is sent home.
    #[test]
    fn a_copy_that_comes_too_late_sends_clients_home() {
        let site = SiteParameters::default().site("", 1);
        let scenario = quick(2, 60);
        let mut simulation = Simulation::new(&scenario, &site);
        let request = Request { client: 0, document: 1, is_page: true };
        simulation.servers[1].waiting.insert(1, vec![request]);
        simulation.handle_copy(1, 1, true);
        assert!(simulation.servers[1].copies.is_empty() && simulation.servers[1].waiting.is_empty());
        let foreseen = std::iter::from_fn(|| simulation.events.pop());
        let redirected = foreseen.filter(
            |(_, event)| matches!(event, Event::Done { server: 1, job: Job::Redirect(sent) } if *sent == request),
        );
        assert_eq!(redirected.count(), 1);
    }

    /// Whatever moves and wherever it was asked for, each client has what it waits for on its way.
    #[test]
    fn no_request_is_lost() {
        let site = SiteParameters { pages: 30, links: 4, images: 1, shared: 2, ..SiteParameters::default() }
            .site("", 1);
        let (mut recalls, mut redirects, mut refusals) = (0, 0, 0);
        for seed in 0..12 {
            let mut scenario = DocumentScenario { seed, ..quick(2 + seed as usize % 4, 60) };
            scenario.hot = Some(HotPage { share: 0.5 });
            scenario.set("queue=30,validate_s=3,imbalance_percent=100").unwrap();
            let mut simulation = Simulation::new(&scenario, &site);
            let mut pending = HashMap::<u32, u32>::new();
            let mut count = |request: Request| *pending.entry(request.client).or_default() += 1;
            while let Some((now_ns, event)) = simulation.events.pop() {
                if now_ns < 60 * SECOND_NS {
                    simulation.now_ns = now_ns;
                    simulation.handle(event);
                    continue;
                }
                match event {
                    Event::Retry { request, .. }
                    | Event::Done { job: Job::Answer(request) | Job::Redirect(request), .. } => {
                        count(request);
                    }
                    Event::Done { .. } | Event::Timeout => {}
                    Event::Arrive { client } => panic!("client {client} has not come"),
                }
            }
            for server in &mut simulation.servers {
                server.waiting.values().flatten().for_each(|&request| count(request));
                while server.station.waiting() > 0 {
                    let job = server.station.handle_done().map(|work| work.job);
                    if let Some(Job::Answer(request) | Job::Redirect(request)) = job {
                        count(request);
                    }
                }
            }
            for (client, walker) in (0..).zip(&simulation.walkers) {
                assert_eq!(pending.get(&client).copied().unwrap_or(0), walker.waits_for(), "client {client}");
            }
            recalls += simulation.measures.recalls;
            redirects += simulation.measures.redirects;
            refusals += simulation.measures.refusals;
        }
        assert!(recalls > 10 && redirects > 100 && refusals > 100, "{recalls} {redirects} {refusals}");
    }
}
