//! Goal: a hand-off takes no more messages and wake-ups than it needs. Method: the machines of a front-end and of a node, whose
//! messages arrive at once, and a clock that stands still but for what falls due. What is counted is all that happens.

mod common;

use baton_cluster::Tuple;
use baton_cluster::agent::{Action, ForServer, Handoff, HandoffAgent, Peer};
use baton_cluster::local::{Node, Report, ToMaster};

use common::passport;

type Agent = HandoffAgent<u64>;

/// Both machines, and what they have done.
struct Pair {
    front: Agent,
    node: Agent,
    now_ms: u64,
    /// Messages to the node and from it, and news to the front-end's master.
    counted: [usize; 3],
    /// What the node's server has got.
    given: Vec<ForServer<u64>>,
    /// The front-end's name for the node.
    peer: Option<Peer>,
}

impl Pair {
    fn new() -> Self {
        let mut front = Agent::new([1; 16], 0);
        let mut node = Agent::new([2; 16], 0);
        let agent = "10.0.0.11:7946".parse().unwrap();
        let named = Node { name: "a".into(), agent, next_hop: "10.0.0.11".parse().unwrap() };
        node.handle_server(&[], 0);
        front.handle_server(&[named], 0);
        let mut pair = Self { front, node, now_ms: 0, counted: [0; 3], given: Vec::new(), peer: None };
        pair.settle();
        pair
    }

    /// Does all that the machines want.
    fn settle(&mut self) {
        loop {
            if let Some(action) = self.front.next_action() {
                self.act_at_front(action);
            } else if let Some(action) = self.node.next_action() {
                self.act_at_node(action);
            } else {
                return;
            }
        }
    }

    fn act_at_front(&mut self, action: Action<u64>) {
        match action {
            Action::Connect { node, .. } => {
                assert!(self.node.handle_accepted(1, self.now_ms));
                self.peer = Some(Peer::Node(node));
                self.front.handle_connected(node);
            }
            Action::Send { bytes, .. } => {
                self.counted[0] += 1;
                self.node.handle_body(Peer::FrontEnd(1), &bytes[4..], self.now_ms);
            }
            Action::Freeze { flow, .. } => self.front.handle_frozen(flow, vec![1], self.now_ms),
            Action::Tell(ToMaster::Loads(_)) => self.counted[2] += 1,
            Action::Tell(_)
            | Action::Log(_)
            | Action::Forward { .. }
            | Action::End { .. }
            | Action::Remove { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    fn act_at_node(&mut self, action: Action<u64>) {
        match action {
            Action::Send { bytes, .. } => {
                self.counted[1] += 1;
                let peer = self.peer.expect("it is connected");
                self.front.handle_body(peer, &bytes[4..], self.now_ms);
            }
            Action::Restore { flow, .. } => self.node.handle_restored(flow, Ok(7), self.now_ms),
            Action::Give(connection) => self.given.push(connection),
            other => panic!("{other:?}"),
        }
    }

    /// Lets time pass. Returns how often a machine had something to do.
    fn pass(&mut self, ms: u64) -> usize {
        let until_ms = self.now_ms + ms;
        let mut wake_ups = 0;
        while let Some(due_ms) =
            [self.front.deadline_ms(), self.node.deadline_ms()].into_iter().flatten().min()
            && due_ms <= until_ms
        {
            self.now_ms = due_ms.max(self.now_ms);
            self.front.handle_time(self.now_ms);
            self.node.handle_time(self.now_ms);
            self.settle();
            wake_ups += 1;
        }
        self.now_ms = until_ms;
        wake_ups
    }

    fn hand_over(&mut self, port: u16) {
        let client = ([192, 0, 2, 1], port).into();
        let server = "10.0.0.1:80".parse().unwrap();
        let passport = passport(&format!("192.0.2.1:{port}"));
        let tuple = Tuple::new(client, server).unwrap();
        let handoff =
            Handoff { node: "a".into(), socket: 1, tuple, passport: Box::new(passport), is_counted: true };
        self.front.handle_handoff(handoff, self.now_ms);
        self.settle();
    }

    /// The node's worker says that it has the connections, has answered and has closed them, as it does within 2 ms.
    fn answer(&mut self) {
        let flows: Vec<_> = self.given.drain(..).map(|connection| connection.flow).collect();
        let report = Report {
            worker: 9,
            taken: flows.clone(),
            ended: flows.clone(),
            gone: flows,
            ..Report::default()
        };
        self.node.handle_report(&report, self.now_ms);
        self.settle();
    }
}

/// `Ship`, `Ready`, `Take`; then `Gone` and `Totals` together, which the master is told of once. So two timers end a wait, one at
/// each host.
#[test]
fn a_hand_off_of_one_request_takes_five_messages_and_one_to_the_master() {
    let mut pair = Pair::new();
    pair.pass(400);
    pair.counted = [0; 3];
    pair.hand_over(4000);
    assert_eq!(pair.counted, [2, 1, 0], "Ship and Take, Ready");
    pair.pass(2);
    pair.answer();
    assert_eq!(pair.pass(20), 2, "one timer of the node, one of the front-end");
    assert_eq!(pair.counted, [2, 3, 1], "Gone and Totals, and Loads");
}

/// What happens within the 5 ms that a node gathers shares its messages.
#[test]
fn hand_offs_at_once_share_their_reports() {
    let mut pair = Pair::new();
    pair.pass(400);
    pair.counted = [0; 3];
    (0..10).for_each(|number| pair.hand_over(4000 + number));
    pair.pass(2);
    pair.answer();
    pair.pass(20);
    assert_eq!(pair.counted, [20, 12, 1]);
}

/// A connection that is there and asks nothing is known to the front-end's server a little later, and only once.
#[test]
fn a_connection_that_stays_is_told_of_once() {
    let mut pair = Pair::new();
    pair.pass(400);
    pair.counted = [0; 3];
    pair.hand_over(4000);
    assert_eq!((pair.pass(50), pair.counted[2]), (0, 0));
    pair.pass(200);
    assert_eq!(pair.front.status().flows, 1);
    assert!((1..=2).contains(&pair.counted[2]), "{}", pair.counted[2]);
}
