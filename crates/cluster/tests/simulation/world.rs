//! Hosts, clients and the network between them.

use std::collections::{BTreeMap, BTreeSet};

use baton_cluster::agent::{HandoffAgent, NodeId};
use baton_cluster::local::Node;

use crate::clients::Conn;
use crate::dice::Dice;
use crate::events::{Event, Events};
use crate::host::Host;
use crate::links::Connections;
use crate::sum::Sum;

pub(crate) const FRONT_ENDS: usize = 2;
pub(crate) const NODES: usize = 3;
const HOSTS: usize = FRONT_ENDS + NODES;

/// When faults have ended, and when all clients have to be done.
const FAULTS_END_US: u64 = 20_000_000;
const CLIENTS_END_US: u64 = 90_000_000;

/// How long hosts have to forget everything behind the last client: idle clients, lingering packets, lost peers.
const SETTLING_US: u64 = 45_000_000;

/// What goes wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    processes: bool,
    network: bool,
    /// Delays up to some seconds.
    pub(crate) slow: bool,
    /// Operators drain nodes.
    drains: bool,
}

impl Faults {
    /// A quarter of the seeds has no fault: there, no connection may be reset.
    pub(crate) fn of(seed: u64) -> Self {
        Self {
            processes: seed & 1 != 0,
            network: seed & 2 != 0,
            slow: seed & 12 == 12,
            drains: seed % 3 == 1,
        }
    }
}

pub(crate) struct World {
    pub(crate) now_us: u64,
    pub(crate) dice: Dice,
    pub(crate) events: Events,
    pub(crate) hosts: Vec<Host>,
    pub(crate) lines: Connections,
    pub(crate) conns: BTreeMap<u64, Conn>,
    /// Pairs between which nothing passes now, and those for which that was so once.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    pub(crate) was_cut: BTreeSet<(usize, usize)>,
    /// Which node an agent means.
    pub(crate) names: BTreeMap<(usize, u64, NodeId), usize>,
    pub(crate) faults: Faults,
    pub(crate) sum: Sum,
    /// What operators have said of nodes last.
    words: BTreeMap<usize, bool>,
    is_told: bool,
}

impl World {
    pub(crate) fn new(seed: u64, faults: Faults, is_told: bool) -> Self {
        let name = |host| match host {
            host if host < FRONT_ENDS => format!("f{host}"),
            host => format!("n{}", host - FRONT_ENDS),
        };
        let mut world = Self {
            now_us: 0,
            dice: Dice::new(seed),
            events: Events::default(),
            hosts: (0..HOSTS).map(|host| Host::new(name(host))).collect(),
            lines: Connections::default(),
            conns: BTreeMap::new(),
            cut: BTreeSet::new(),
            was_cut: BTreeSet::new(),
            names: BTreeMap::new(),
            faults,
            sum: Sum::default(),
            words: BTreeMap::new(),
            is_told,
        };
        for host in 0..HOSTS {
            world.events.add(world.dice.range(0, 2_000), Event::StartServer { host });
            world.events.add(world.dice.range(0, 2_000), Event::StartAgent { host });
        }
        world.plan_clients();
        world.plan_faults();
        if faults.drains {
            world.plan_drains(Dice::new(!seed));
        }
        world
    }

    /// Operators at any host, each after the word before has got everywhere, if nothing fails. Clocks are wrong.
    fn plan_drains(&mut self, mut dice: Dice) {
        self.hosts.iter_mut().for_each(|host| host.ahead_ms = dice.range(0, 20_000));
        for turn in 1..6 {
            let at_us = turn * 3_000_000 + dice.range(0, 500_000);
            let host = dice.range(0, HOSTS as u64) as usize;
            let node = FRONT_ENDS + dice.range(0, NODES as u64) as usize;
            self.events.add(at_us, Event::Drain { host, node, is_drained: dice.percent(70) });
        }
    }

    fn drain(&mut self, host: usize, node: usize, is_drained: bool) {
        let clock_ms = self.now_ms() + self.hosts[host].ahead_ms;
        if self.hosts[host].agent.is_some() && self.hosts[host].server.is_up {
            self.words.insert(node, is_drained);
            self.with_agent(host, |agent, _| {
                agent.handle_drain(&Self::node(node).name, is_drained, clock_ms);
            });
        }
    }

    fn plan_faults(&mut self) {
        let at = |dice: &mut Dice| dice.range(100_000, FAULTS_END_US - 6_000_000);
        for _ in 0..self.dice.range(1, 6) {
            let at_us = at(&mut self.dice);
            let until_us = at_us + self.dice.range(1_000, 5_900_000);
            let host = self.dice.range(0, HOSTS as u64) as usize;
            let front_end = self.dice.range(0, FRONT_ENDS as u64) as usize;
            let node = FRONT_ENDS + self.dice.range(0, NODES as u64) as usize;
            let breaks = self.dice.percent(50);
            if self.faults.network {
                self.events.add(at_us, Event::Cut { front_end, node, breaks });
                self.events.add(until_us, Event::Heal { front_end, node });
            }
            // Most connections between agents that break are made again at once.
            for _ in 0..4 {
                let at_us = at(&mut self.dice);
                if self.faults.network {
                    self.events.add(at_us, Event::Cut { front_end, node, breaks: true });
                    self.events.add(at_us + 1_000, Event::Heal { front_end, node });
                }
            }
            let at_us = at(&mut self.dice);
            let until_us = at_us + self.dice.range(1_000, 5_900_000);
            match self.dice.range(0, 4) {
                0 if self.faults.processes => {
                    self.events.add(at_us, Event::KillAgent { host });
                    self.events.add(until_us, Event::StartAgent { host });
                }
                1 if self.faults.processes => {
                    self.events.add(at_us, Event::KillServer { host });
                    self.events.add(until_us, Event::StartServer { host });
                }
                2 => self.events.add(at_us, Event::Upgrade { host }),
                _ => {
                    self.events.add(at_us, Event::Without { front_end, node: Some(node) });
                    self.events.add(until_us, Event::Without { front_end, node: None });
                }
            }
        }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.now_us / 1_000
    }

    pub(crate) fn after(&mut self, delay_us: u64, event: Event) {
        self.events.add(self.now_us + delay_us, event);
    }

    pub(crate) fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_told {
            println!("{:>9.3} ms  {}", self.now_us as f64 / 1_000.0, what());
        }
    }

    pub(crate) fn is_node(host: usize) -> bool {
        host >= FRONT_ENDS
    }

    pub(crate) fn node(host: usize) -> Node {
        let number = host + 10;
        Node {
            name: format!("n{}", host - FRONT_ENDS),
            agent: format!("10.0.0.{number}:7946").parse().unwrap(),
            next_hop: format!("10.0.0.{number}").parse().unwrap(),
        }
    }

    /// Nodes that a front-end's server names.
    pub(crate) fn nodes_for(&self, host: usize) -> Vec<Node> {
        match Self::is_node(host) {
            true => Vec::new(),
            false => (FRONT_ENDS..HOSTS).map(Self::node).collect(),
        }
    }

    /// Lets everything happen, and checks that nothing is left.
    pub(crate) fn run(mut self) -> Sum {
        let mut end_us = u64::MAX;
        while let Some((at_us, event)) = self.events.next() {
            if at_us > end_us {
                break;
            }
            self.now_us = at_us;
            if !matches!(event, Event::Bytes { .. } | Event::Wake { .. }) {
                self.tell(|| format!("{event:?}"));
            }
            self.handle(event);
            self.check();
            if end_us == u64::MAX {
                let late = self.conns.values().find(|conn| !conn.is_over());
                assert!(at_us < CLIENTS_END_US || late.is_none(), "a client waits for ever: {late:?}");
                if late.is_none() {
                    end_us = at_us.max(FAULTS_END_US) + SETTLING_US;
                }
            }
        }
        self.check_end();
        self.sum
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Wake { host, life } => self.wake(host, life),
            Event::Connected { host, life, node, to } => self.connected(host, life, node, to),
            Event::Bytes { line, to_node, bytes } => self.bytes_arrive(line, to_node, &bytes),
            Event::LineClosed { line, at_node } => self.line_closed(line, at_node),
            Event::Open { conn } => self.open(conn),
            Event::Packet { host, packet } => self.packet_arrives(host, packet),
            Event::Repeat { conn, what } => self.repeat(conn, what),
            Event::Response { conn, request } => self.response_arrives(conn, request),
            Event::Reset { conn } => self.reset_arrives(conn),
            Event::Closed { conn } => self.closed_arrives(conn),
            Event::Next { conn } => self.go_on(conn),
            Event::ToAgent { host, life, server_life, message } => {
                self.worker_says(host, life, server_life, message);
            }
            Event::ToServer { host, life, handle, passport } => {
                self.worker_gets(host, life, handle, &passport);
            }
            Event::Answer { host, life, conn, request } => self.answer(host, life, conn, request),
            Event::Idle { host, life, conn } => self.look_at_client(host, life, conn),
            Event::Sweep { host, tuple } => self.sweep(host, tuple),
            Event::KillAgent { host } => self.kill_agent(host),
            Event::StartAgent { host } => self.start_agent(host),
            Event::KillServer { host } => self.kill_server(host),
            Event::StartServer { host } => self.start_server(host),
            Event::Upgrade { host } => self.upgrade(host),
            Event::Cut { front_end, node, breaks } => self.cut(front_end, node, breaks),
            Event::Heal { front_end, node } => self.heal(front_end, node),
            Event::Drain { host, node, is_drained } => self.drain(host, node, is_drained),
            Event::Without { front_end, node } => self.name_nodes(front_end, node),
        }
    }

    /// A process starts; the server, if there is one, says `Hello`.
    fn start_agent(&mut self, host: usize) {
        if self.hosts[host].agent.is_some() {
            return;
        }
        let secret = [self.dice.next().to_le_bytes(), self.dice.next().to_le_bytes()].concat();
        let now_ms = self.now_ms();
        self.hosts[host].life += 1;
        self.hosts[host].agent = Some(HandoffAgent::new(secret.try_into().unwrap(), now_ms));
        if self.hosts[host].server.is_up {
            self.say_hello(host);
        }
    }

    fn check(&self) {
        let owned = self.hosts.iter().flat_map(|host| host.sockets.iter());
        let mut owned: Vec<_> =
            owned.filter(|(_, socket)| !socket.is_inert()).map(|(conn, _)| *conn).collect();
        owned.sort_unstable();
        let twice = owned.windows(2).find(|pair| pair[0] == pair[1]);
        assert!(twice.is_none(), "connection {} has two owners", owned[0]);
    }

    /// Everything is over: nothing is left of it.
    fn check_end(&self) {
        for (index, host) in self.hosts.iter().enumerate() {
            let name = &host.name;
            let agent = host.agent.as_ref().expect("agents run at the end");
            assert!(agent.is_empty(), "{name}: {agent:?} {:?}", agent.status());
            assert!(host.sockets.is_empty(), "{name}: {:?}", host.sockets);
            assert!(host.table.is_empty(), "{name}: {:?}", host.table);
            assert!(host.server.clients.is_empty(), "{name}: {:?}", host.server.clients);
            for (node, view) in &host.server.nodes {
                assert_eq!(view.load(), Some(0), "{name} {node}: {view:?}");
                assert_eq!(view.loads.active, 0, "{name} {node}: {view:?}");
                assert!(view.is_reachable, "{name} does not reach {node}");
            }
            assert_eq!(host.server.nodes.len(), if Self::is_node(index) { 0 } else { NODES });
            self.check_drains(host);
        }
    }

    /// All members know the same of each node, and drained ones have said that nothing is left. Where nothing has failed that is the
    /// operators' last word.
    fn check_drains(&self, host: &Host) {
        let drains = |host: &Host| host.agent.as_ref().expect("agents run at the end").drains();
        let known = drains(host);
        assert_eq!(known, drains(&self.hosts[0]), "{} knows something else", host.name);
        if !known.is_empty() {
            assert_eq!(known, host.server.drains, "{}: its server", host.name);
        }
        for drain in &known {
            assert!(!drain.is_drained || (drain.reports > 0 && drain.left == 0), "{drain:?}");
        }
        let Faults { processes, network, slow, .. } = self.faults;
        for (&node, &is_drained) in self.words.iter().filter(|_| !(processes || network || slow)) {
            let found = known.iter().find(|drain| drain.node == Self::node(node).name);
            assert_eq!(found.map(|drain| drain.is_drained), Some(is_drained), "{}: {known:?}", host.name);
        }
    }
}
