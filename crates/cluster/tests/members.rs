//! Goal: a member may do what its role allows, and nothing else, although it knows the key of all. Method: one machine, with
//! a peer whose messages the test writes.

mod common;

use baton_cluster::Tuple;
use baton_cluster::agent::limits::{GATHER_MS, GIVE_AGAIN_MS, NODE_LOST_MS, SERVER_LOST_MS, UNDER_WAY_MAX};
use baton_cluster::agent::{Action, ForServer, Handoff, HandoffAgent, NodeId, Note, Peer};
use baton_cluster::local::{Drain, Node, Report, ToMaster};
use baton_cluster::peer::{Frames, FromFrontEnd, FromNode, MessageRefused, RefuseReason, Shipment, VERSION};

use common::passport;

/// A client's socket.
type Socket = u64;

fn tuple(client: &str) -> Tuple {
    let server = if client.starts_with('[') { "[2001:db8::1]:80" } else { "10.0.0.1:80" };
    Tuple::new(client.parse().unwrap(), server.parse().unwrap()).unwrap()
}

fn shipment(flow: u64, client: &str) -> Box<Shipment> {
    Box::new(Shipment { flow, tuple: tuple(client), tcp: vec![1, 2, 3], passport: passport(client) })
}

/// A host under test.
struct Host {
    agent: HandoffAgent<Socket>,
    now_ms: u64,
}

impl Host {
    /// One with a server and these nodes.
    fn new(nodes: &[Node]) -> Self {
        let mut agent = HandoffAgent::new([7; 16], 0);
        agent.handle_server(nodes, 0);
        Self { agent, now_ms: 0 }
    }

    fn actions(&mut self) -> Vec<Action<Socket>> {
        std::iter::from_fn(|| self.agent.next_action()).collect()
    }

    fn hear(&mut self, connection: u64, message: &FromFrontEnd) -> Vec<Action<Socket>> {
        let bytes = message.to_bytes().unwrap();
        self.agent.handle_body(Peer::FrontEnd(connection), &bytes[4..], self.now_ms);
        self.actions()
    }

    /// A front-end that has said which link it is.
    fn front_end(&mut self, connection: u64, link: u64, session: u64) -> Vec<Action<Socket>> {
        assert!(self.agent.handle_accepted(connection, self.now_ms));
        self.hear(connection, &FromFrontEnd::Hello { version: VERSION, link, session })
    }
}

/// What is said to a front-end.
fn said(actions: &[Action<Socket>], to: u64) -> Vec<FromNode> {
    let mut frames = Frames::default();
    for action in actions {
        match action {
            Action::Send { peer: Peer::FrontEnd(connection), bytes } if *connection == to => {
                frames.feed(bytes);
            }
            _ => {}
        }
    }
    let mut messages = Vec::new();
    while let Some(body) = frames.next_body().unwrap() {
        messages.push(FromNode::from_body(body).unwrap());
    }
    messages
}

fn restored(actions: &[Action<Socket>]) -> Option<u64> {
    actions.iter().find_map(|action| match action {
        Action::Restore { flow, .. } => Some(*flow),
        _ => None,
    })
}

fn is_refused(actions: &[Action<Socket>], connection: u64, why: MessageRefused) -> bool {
    let is_closed = |action: &Action<Socket>| matches!(action, Action::Disconnect { peer: Peer::FrontEnd(closed) } if *closed == connection);
    let text = why.to_string();
    let is_told = |action: &Action<Socket>| matches!(action, Action::Log(Note::FrontEndRefused { why }) if *why == text);
    actions.iter().any(is_closed) && actions.iter().any(is_told)
}

#[test]
fn a_peer_says_hello_first_and_once_and_in_this_version() {
    let mut host = Host::new(&[]);
    assert!(host.agent.handle_accepted(1, 0));
    let early = host.hear(1, &FromFrontEnd::Ship(shipment(1, "192.0.2.1:4000")));
    assert!(is_refused(&early, 1, MessageRefused::Unexpected), "{early:?}");
    assert_eq!(restored(&early), None);

    assert!(host.agent.handle_accepted(2, 0));
    let later = host.hear(2, &FromFrontEnd::Hello { version: VERSION + 1, link: 5, session: 1 });
    assert!(is_refused(&later, 2, MessageRefused::Version(VERSION + 1)), "{later:?}");

    host.front_end(3, 5, 1);
    let again = host.hear(3, &FromFrontEnd::Hello { version: VERSION, link: 6, session: 1 });
    assert!(is_refused(&again, 3, MessageRefused::Unexpected), "{again:?}");
}

#[test]
fn an_older_connection_of_a_link_is_refused() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 2);
    for session in [1, 2] {
        let connection = 10 + session;
        let late = host.front_end(connection, 5, session);
        assert!(is_refused(&late, connection, MessageRefused::Unexpected), "{late:?}");
    }
    let next = host.front_end(20, 5, 3);
    assert!(next.iter().any(|action| matches!(action, Action::Disconnect { peer: Peer::FrontEnd(1) })));
    assert_eq!(said(&next, 20)[0], FromNode::Welcome { version: VERSION, resumed: true });
}

#[test]
fn a_flow_belongs_to_the_link_that_shipped_it() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    host.front_end(2, 6, 1);
    let shipped = host.hear(1, &FromFrontEnd::Ship(shipment(9, "192.0.2.1:4000")));
    host.agent.handle_restored(restored(&shipped).unwrap(), Ok(77), 0);
    assert_eq!(said(&host.actions(), 1), [FromNode::Ready { flow: 9 }]);
    // Another member speaks of the same number: it has no such flow.
    let taken = host.hear(2, &FromFrontEnd::Take { flow: 9 });
    assert_eq!(said(&taken, 2), [FromNode::Refused { flow: 9, why: RefuseReason::TooLate }]);
    assert!(host.hear(2, &FromFrontEnd::Release { flow: 9 }).is_empty());
    let taken = host.hear(1, &FromFrontEnd::Take { flow: 9 });
    assert!(
        matches!(&taken[..], [Action::Give(ForServer { socket: 77, passport, .. })] if passport.flow.is_some())
    );
}

#[test]
fn a_server_gets_a_connection_only_when_the_front_end_says_so() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    let shipped = host.hear(1, &FromFrontEnd::Ship(shipment(9, "192.0.2.1:4000")));
    let flow = restored(&shipped).unwrap();
    host.agent.handle_restored(flow, Ok(77), 0);
    assert!(!host.actions().iter().any(|action| matches!(action, Action::Give(_))));
    // It waits for long enough, then the socket ends without a word.
    host.agent.handle_time(NODE_LOST_MS + 1_000);
    let late = host.actions();
    assert!(late.iter().any(|action| matches!(action, Action::Discard { socket: 77 })), "{late:?}");
}

#[test]
fn a_shipment_is_of_one_client_and_of_a_new_number() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    let mut other = shipment(3, "192.0.2.1:4000");
    other.passport.peer = Some("192.0.2.66:4000".parse().unwrap());
    let malformed = |flow| vec![FromNode::Refused { flow, why: RefuseReason::Malformed }];
    assert_eq!(said(&host.hear(1, &FromFrontEnd::Ship(other)), 1), malformed(3));
    assert!(restored(&host.hear(1, &FromFrontEnd::Ship(shipment(4, "192.0.2.1:4000")))).is_some());
    for old in [2, 4] {
        assert_eq!(
            said(&host.hear(1, &FromFrontEnd::Ship(shipment(old, "192.0.2.1:4001"))), 1),
            malformed(old)
        );
    }
}

#[test]
fn a_front_end_has_so_many_handoffs_under_way() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    let most = UNDER_WAY_MAX as u64;
    for flow in 1..=most {
        assert!(restored(&host.hear(1, &FromFrontEnd::Ship(shipment(flow, "192.0.2.1:4000")))).is_some());
    }
    let full = host.hear(1, &FromFrontEnd::Ship(shipment(most + 1, "192.0.2.1:4000")));
    assert_eq!(said(&full, 1), [FromNode::Refused { flow: most + 1, why: RefuseReason::Full }]);
    host.agent.handle_server_gone(0);
    let none = host.hear(1, &FromFrontEnd::Ship(shipment(most + 2, "192.0.2.1:4000")));
    assert_eq!(said(&none, 1), [FromNode::Refused { flow: most + 2, why: RefuseReason::NoServer }]);
}

/// A front-end and a node that the test plays.
fn front_end_with_node() -> (Host, NodeId) {
    let node = Node {
        name: "b".into(),
        agent: "10.0.0.12:7946".parse().unwrap(),
        next_hop: "10.0.0.12".parse().unwrap(),
    };
    let mut host = Host::new(&[node]);
    let node = host.actions().iter().find_map(|action| match action {
        Action::Connect { node, .. } => Some(*node),
        _ => None,
    });
    let node = node.unwrap();
    host.agent.handle_connected(node);
    for message in [
        FromNode::Welcome { version: VERSION, resumed: false },
        FromNode::Flows { ready: Vec::new(), taken: Vec::new(), last: true },
    ] {
        host.agent.handle_body(Peer::Node(node), &message.to_bytes().unwrap()[4..], 0);
    }
    host.actions();
    (host, node)
}

fn handoff(host: &mut Host) -> u64 {
    let handoff = Handoff {
        node: "b".into(),
        socket: 77,
        tuple: tuple("192.0.2.1:4000"),
        passport: Box::new(passport("192.0.2.1:4000")),
        is_counted: true,
    };
    host.agent.handle_handoff(handoff, 0);
    let freeze = host.actions().into_iter().find_map(|action| match action {
        Action::Freeze { flow, .. } => Some(flow),
        _ => None,
    });
    let flow = freeze.unwrap();
    host.agent.handle_frozen(flow, vec![1, 2, 3], 0);
    host.actions();
    flow
}

/// Goal: a request is not lost with a node that dies before it has confirmed that it has the connection: the front-end answers.
#[test]
fn a_handoff_that_no_node_has_confirmed_comes_back() {
    let (mut host, node) = front_end_with_node();
    let shipped = handoff(&mut host);
    host.agent.handle_closed(Peer::Node(node), "it has ended".into(), 0);
    assert!(
        host.actions()
            .iter()
            .any(|action| matches!(action, Action::Restore { flow, .. } if *flow == shipped))
    );
    host.agent.handle_restored(shipped, Ok(78), 0);
    let given = host.actions().into_iter().find_map(|action| match action {
        Action::Give(ForServer { socket: 78, passport, .. }) => Some(passport),
        _ => None,
    });
    let given = given.expect("the server has it again");
    assert!(given.stay && given.unread == passport("192.0.2.1:4000").unread);
}

#[test]
fn a_node_returns_no_other_connection_than_it_was_given() {
    let (mut host, node) = front_end_with_node();
    let flow = handoff(&mut host);
    let hear = |host: &mut Host, message: FromNode| {
        host.agent.handle_body(Peer::Node(node), &message.to_bytes().unwrap()[4..], 0);
        host.actions()
    };
    // Not before it has it, and not a number that it never had.
    for flow in [flow, flow + 1] {
        let early = hear(&mut host, FromNode::Return(shipment(flow, "192.0.2.1:4000")));
        assert_eq!(restored(&early), None, "{early:?}");
    }
    hear(&mut host, FromNode::Ready { flow });
    let other = hear(&mut host, FromNode::Return(shipment(flow, "192.0.2.2:4000")));
    assert_eq!(restored(&other), None, "{other:?}");
    assert!(other.iter().any(|action| matches!(action, Action::Remove { .. })));
    assert!(host.agent.is_empty());
}

#[test]
fn a_port_that_is_used_again_waits_for_the_end_of_a_move() {
    let (mut host, node) = front_end_with_node();
    let flow = handoff(&mut host);
    let again = Handoff {
        node: "b".into(),
        socket: 78,
        tuple: tuple("192.0.2.1:4000"),
        passport: Box::new(passport("192.0.2.1:4000")),
        is_counted: true,
    };
    host.agent.handle_handoff(again, 0);
    let actions = host.actions();
    let is_given = |action: &Action<Socket>| matches!(action, Action::Give(ForServer { socket: 78, passport, .. }) if passport.stay);
    assert!(actions.iter().any(is_given), "{actions:?}");
    // The older one goes on.
    let ready = FromNode::Ready { flow };
    host.agent.handle_body(Peer::Node(node), &ready.to_bytes().unwrap()[4..], 0);
    assert!(host.actions().iter().any(|action| matches!(action, Action::Forward { .. })));
}

#[test]
fn totals_that_cannot_be_right_end_the_link() {
    let (mut host, node) = front_end_with_node();
    let flow = handoff(&mut host);
    let hear = |host: &mut Host, message: FromNode| {
        host.agent.handle_body(Peer::Node(node), &message.to_bytes().unwrap()[4..], 0);
        host.actions()
    };
    hear(&mut host, FromNode::Ready { flow });
    let wrong = hear(&mut host, FromNode::Totals { taken: 1, begun_kept: 0, ended: 2 });
    let is_closed = |action: &Action<Socket>| matches!(action, Action::Disconnect { peer: Peer::Node(_) });
    assert!(wrong.iter().any(is_closed), "{wrong:?}");
    assert!(wrong.iter().any(|action| matches!(action, Action::Remove { .. })));
    assert!(host.agent.is_empty());
}

#[test]
fn reports_about_flows_that_the_server_never_had_change_nothing() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    let flows = vec![0, 1, u64::MAX];
    let report =
        Report { worker: 7, taken: flows.clone(), begun: flows.clone(), ended: flows.clone(), gone: flows };
    host.agent.handle_report(&report, 0);
    assert!(host.actions().is_empty() && host.agent.is_empty());
}

/// Goal: a worker that crashes takes its own connections with it, and those only; the front-end learns of it as of any end.
#[test]
fn flows_end_with_the_worker_that_has_them() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    let mut taken = |remote: u64, client: &str, worker: u32| {
        let flow = restored(&host.hear(1, &FromFrontEnd::Ship(shipment(remote, client)))).unwrap();
        host.agent.handle_restored(flow, Ok(77), 0);
        let given = host.hear(1, &FromFrontEnd::Take { flow: remote });
        assert!(given.iter().any(|action| matches!(action, Action::Give(_))), "{given:?}");
        host.agent.handle_report(&Report { worker, taken: vec![flow], ..Report::default() }, 0);
    };
    taken(1, "192.0.2.1:4000", 100);
    taken(2, "192.0.2.1:4001", 200);
    taken(3, "192.0.2.1:4002", 100);
    host.actions();
    host.agent.handle_worker_ended(300, 0);
    assert_eq!(host.agent.status().kept, 3);
    host.agent.handle_worker_ended(100, 0);
    assert_eq!(host.agent.status().kept, 1);
    host.agent.handle_time(GATHER_MS);
    let told = host.actions();
    assert!(said(&told, 1).contains(&FromNode::Gone { flows: vec![1, 3] }), "{told:?}");
}

/// What the server is to get, and whether a socket is reset.
fn given(actions: Vec<Action<Socket>>) -> (Option<ForServer<Socket>>, bool) {
    let is_reset = actions.iter().any(|action| matches!(action, Action::Reset { .. }));
    let given = actions.into_iter().find_map(|action| match action {
        Action::Give(connection) => Some(connection),
        _ => None,
    });
    (given, is_reset)
}

/// Has a server refuse a connection each time that it is given, until something else happens. Returns how long it was given.
fn refuse(host: &mut Host, connection: ForServer<Socket>) -> u64 {
    let (mut next, since_ms) = (Some(connection), host.now_ms);
    while let Some(connection) = next {
        host.agent.handle_not_given(connection, host.now_ms);
        assert!(matches!(given(host.actions()), (None, false)), "it waits");
        host.now_ms += GIVE_AGAIN_MS;
        // A node would forget a silent front-end.
        host.agent.handle_body(Peer::FrontEnd(1), &FromFrontEnd::Ping.to_bytes().unwrap()[4..], host.now_ms);
        host.agent.handle_time(host.now_ms);
        let is_reset;
        (next, is_reset) = given(host.actions());
        assert_ne!(next.is_some(), is_reset);
    }
    host.now_ms - since_ms
}

/// Bug: each try to give a connection to a server made it wait as long again, so that a client without a server waited for ever.
#[test]
fn a_connection_that_no_server_takes_is_reset_in_time() {
    let mut host = Host::new(&[]);
    let handoff = Handoff {
        node: "unknown".into(),
        socket: 77,
        tuple: tuple("192.0.2.1:4000"),
        passport: Box::new(passport("192.0.2.1:4000")),
        is_counted: true,
    };
    host.agent.handle_handoff(handoff, 0);
    let (declined, _) = given(host.actions());
    assert_eq!(refuse(&mut host, declined.unwrap()), SERVER_LOST_MS);
    assert!(host.agent.is_empty());
}

/// A node that has a connection, which cannot be frozen; its server has given it back, or refused it. What the server is to get.
fn unreadable(host: &mut Host, is_refused: bool) -> ForServer<Socket> {
    host.front_end(1, 5, 1);
    let flow = restored(&host.hear(1, &FromFrontEnd::Ship(shipment(9, "192.0.2.1:4000")))).unwrap();
    host.agent.handle_restored(flow, Ok(77), 0);
    host.actions();
    let (taken, _) = given(host.hear(1, &FromFrontEnd::Take { flow: 9 }));
    if is_refused {
        host.agent.handle_not_given(taken.unwrap(), 0);
    } else {
        host.agent.handle_report(&Report { worker: 100, taken: vec![flow], ..Report::default() }, 0);
        host.agent.handle_return(flow, 77, Box::new(passport("192.0.2.1:4000")), 0);
    }
    assert!(host.actions().iter().any(|action| matches!(action, Action::Freeze { .. })));
    host.agent.handle_not_frozen(flow, 77, "the client has closed its half".into(), 0);
    let (again, is_reset) = given(host.actions());
    assert!(!is_reset, "no server has ended");
    again.unwrap()
}

/// Bug: a node reset a connection that could not go back to its front-end if its server did not take it at once (seeds 7,901 and
/// 19,829 of the simulation).
#[test]
fn a_connection_that_cannot_leave_waits_for_the_server() {
    for is_refused in [false, true] {
        let mut host = Host::new(&[]);
        let again = unreadable(&mut host, is_refused);
        assert!(again.passport.stay);
        host.agent.handle_not_given(again, 0);
        assert!(given(host.actions()).0.is_none());
        // Another worker will take it.
        host.agent.handle_worker_ended(100, 0);
        host.agent.handle_server_gone(0);
        assert_eq!(host.agent.deadline_ms().map(|due_ms| due_ms <= GIVE_AGAIN_MS), Some(true));
        host.agent.handle_time(GIVE_AGAIN_MS);
        let (taken, _) = given(host.actions());
        assert_eq!(taken.map(|connection| connection.socket), Some(77));
        assert_eq!(host.agent.status().kept, 1);
    }
}

#[test]
fn a_connection_that_can_neither_leave_nor_stay_is_reset_in_time() {
    let mut host = Host::new(&[]);
    let again = unreadable(&mut host, true);
    host.agent.handle_server_gone(0);
    assert_eq!(refuse(&mut host, again), SERVER_LOST_MS);
    assert!(host.agent.is_empty());
}

/// Goal: what waits for a server ends with its front-end's flow.
#[test]
fn a_connection_that_waits_is_reset_if_its_front_end_releases_it() {
    let mut host = Host::new(&[]);
    let again = unreadable(&mut host, false);
    host.agent.handle_not_given(again, 0);
    host.hear(1, &FromFrontEnd::Release { flow: 9 });
    assert!(!host.agent.is_empty(), "it has the socket still");
    host.agent.handle_time(GIVE_AGAIN_MS);
    let (given, is_reset) = given(host.actions());
    assert!(given.is_none() && is_reset && host.agent.is_empty());
}

/// Goal: an agent that no server needs ends by itself, but not while it has a connection.
#[test]
fn a_agent_without_server_and_connections_ends() {
    let mut host = Host::new(&[]);
    host.front_end(1, 5, 1);
    assert_eq!(host.agent.ends_ms(), None, "it has a server");
    let flow = restored(&host.hear(1, &FromFrontEnd::Ship(shipment(1, "192.0.2.1:4000")))).unwrap();
    host.agent.handle_server_gone(500);
    assert_eq!(host.agent.ends_ms(), None, "it has a connection");
    host.agent.handle_restored(flow, Err("no".into()), 600);
    assert_eq!(host.agent.ends_ms(), Some(500 + SERVER_LOST_MS));
    host.agent.handle_server(&[], 700);
    assert_eq!(host.agent.ends_ms(), None, "it has a server again");
}

fn drain(node: &str, said_ms: u64) -> Drain {
    Drain { node: node.into(), said_ms, is_drained: true, reports: 0, left: 0 }
}

/// Goal: a node that is drained says how many connections it has, tells its server, and takes no others; members hear of it that
/// connect later. One that has not said hello drains nothing.
#[test]
fn a_drained_node_takes_nothing_and_says_what_is_left() {
    let mut host = Host::new(&[]);
    let word = FromFrontEnd::Drain { drain: drain("a", 5), is_yours: true };
    assert!(host.agent.handle_accepted(9, 0));
    assert!(is_refused(&host.hear(9, &word), 9, MessageRefused::Unexpected));
    assert_eq!(host.agent.drains(), []);
    host.front_end(1, 5, 1);
    restored(&host.hear(1, &FromFrontEnd::Ship(shipment(1, "192.0.2.1:4000")))).expect("a socket");
    let of_other = FromFrontEnd::Drain { drain: drain("b", 5), is_yours: false };
    let is_told = |actions: &[Action<Socket>], is_here: bool| {
        actions
            .iter()
            .any(|action| matches!(action, Action::Tell(ToMaster::Drains { here, .. }) if *here == is_here))
    };
    assert!(is_told(&host.hear(1, &of_other), false));
    assert!(is_told(&host.hear(1, &word), true));
    host.agent.handle_time(0);
    let left = |known: &Drain| (known.node.clone(), known.reports, known.left);
    assert_eq!(
        host.agent.drains().iter().map(left).collect::<Vec<_>>(),
        [("a".into(), 1, 1), ("b".into(), 0, 0)]
    );
    host.actions();
    let ship = host.hear(1, &FromFrontEnd::Ship(shipment(2, "192.0.2.1:4001")));
    assert_eq!(said(&ship, 1), [FromNode::Refused { flow: 2, why: RefuseReason::Drained }]);
    let later = host.front_end(2, 6, 1);
    let heard = said(&later, 2).into_iter().filter(|message| matches!(message, FromNode::Drain(_)));
    assert_eq!(heard.count(), 2, "{later:?}");
}

/// Goal: each message is read as it was written, and what is cut off or goes on behind it is refused, but for the first ones,
/// which later versions may lengthen.
#[test]
fn messages_are_read_as_they_were_written() {
    let from_front_end = [
        FromFrontEnd::Hello { version: VERSION, link: 5, session: 1 },
        FromFrontEnd::Ship(shipment(1, "192.0.2.1:4000")),
        FromFrontEnd::Take { flow: 2 },
        FromFrontEnd::Release { flow: 3 },
        FromFrontEnd::Returned { flow: 4 },
        FromFrontEnd::Ping,
        FromFrontEnd::Drain { drain: drain("a", 5), is_yours: true },
    ];
    for message in from_front_end {
        let body = &message.to_bytes().unwrap()[4..];
        assert_eq!(FromFrontEnd::from_body(body).as_ref(), Ok(&message));
        assert!((0..body.len()).all(|len| FromFrontEnd::from_body(&body[..len]).is_err()), "{message:?}");
        let is_first = matches!(message, FromFrontEnd::Hello { .. });
        assert_eq!(FromFrontEnd::from_body(&[body, &[0]].concat()).is_ok(), is_first);
        assert_eq!(FromNode::from_body(body), Err(MessageRefused::Malformed));
    }
    let from_node = [
        FromNode::Welcome { version: VERSION, resumed: true },
        FromNode::Flows { ready: vec![1], taken: vec![2, 3], last: false },
        FromNode::Ready { flow: 4 },
        FromNode::Refused { flow: 5, why: RefuseReason::TooLate },
        FromNode::Return(shipment(6, "[2001:db8::7]:4000")),
        FromNode::Gone { flows: vec![7, 8] },
        FromNode::Totals { taken: 1, begun_kept: 2, ended: 3 },
        FromNode::Pong,
        FromNode::Drain(drain("b", u64::MAX)),
    ];
    for message in from_node {
        let body = &message.to_bytes().unwrap()[4..];
        assert_eq!(FromNode::from_body(body).as_ref(), Ok(&message));
        assert!((0..body.len()).all(|len| FromNode::from_body(&body[..len]).is_err()), "{message:?}");
        let is_first = matches!(message, FromNode::Welcome { .. });
        assert_eq!(FromNode::from_body(&[body, &[0]].concat()).is_ok(), is_first);
        assert_eq!(FromFrontEnd::from_body(body), Err(MessageRefused::Malformed));
    }
}
