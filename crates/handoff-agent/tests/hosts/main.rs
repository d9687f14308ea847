//! Connections that agents hand over between hosts, which are network namespaces. The servers are the test: it accepts clients
//! on the front-end, and answers them where the agents give them to it.

mod host;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Instant;

use baton_cluster::local::{FromWorker, Loads, Report, ToMaster};
use baton_confine::Limits;
use baton_lab::network::{ClusterHosts, Network};
use baton_passport::{Address, Passport};

use host::{AgentHost, Trace, key_files};

/// Hosts with agents: a front-end and two nodes.
struct Cluster {
    front: AgentHost,
    nodes: Vec<AgentHost>,
    listener: TcpListener,
    hosts: ClusterHosts,
    _folder: tempfile::TempDir,
}

impl Cluster {
    fn new() -> Self {
        let hosts = ClusterHosts::new(2).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let names = ["a", "b"];
        let [key, keys @ ..] = key_files(folder.path(), ["front", "a", "b"]);
        let nodes: Vec<_> = names
            .iter()
            .zip(&hosts.nodes)
            .zip(&keys)
            .map(|((name, host), key)| AgentHost::node(host, &folder.path().join(name), key))
            .collect();
        let addresses: Vec<_> =
            names.iter().zip(&hosts.nodes).map(|(name, host)| (*name, host.v4())).collect();
        let front = AgentHost::front_end(&hosts.front, &folder.path().join("front"), &key, &addresses);
        let mut reachable = BTreeSet::new();
        front.wait_for(|message| match message {
            ToMaster::Reachable { node, reachable: true } => {
                reachable.insert(node);
                (reachable.len() == names.len()).then_some(())
            }
            _ => None,
        });
        let listener = hosts.front.run(|| TcpListener::bind((VIP, 80)).unwrap());
        Self { front, nodes, listener, hosts, _folder: folder }
    }

    /// A client that has connected, and its socket at the front-end.
    fn connect(&self) -> (TcpStream, OwnedFd) {
        let client = self.hosts.client.run(|| TcpStream::connect((VIP, 80)).unwrap());
        client.set_nodelay(true).unwrap();
        (client, self.listener.accept().unwrap().0.into())
    }

    /// Gives a client with a request to a node; the client as the node's server gets it.
    fn handoff(&self, node: usize, socket: OwnedFd, request: &[u8]) -> (TcpStream, Passport) {
        let name = ["a", "b"][node].to_owned();
        let passport = Box::new(passport(&socket, request));
        self.front.send(&FromWorker::Handoff { node: name, passport }, Some(socket));
        self.nodes[node].arrival()
    }

    /// Gives a client back to the front-end.
    fn give_back(&self, node: usize, socket: TcpStream, flow: u64, request: &[u8]) -> (TcpStream, Passport) {
        let socket = OwnedFd::from(socket);
        let passport = Box::new(passport(&socket, request));
        self.nodes[node].send(&FromWorker::Return { flow, passport }, Some(socket));
        self.front.arrival()
    }

    /// Fails if a host has reset a connection.
    fn assert_no_resets(&self) {
        let hosts = [&self.hosts.client, &self.hosts.front].into_iter().chain(&self.hosts.nodes);
        for (number, host) in hosts.enumerate() {
            assert_eq!(host.counter("Tcp", "OutRsts").unwrap(), 0, "resets of host {number}");
        }
    }
}

const VIP: IpAddr = IpAddr::V4(ClusterHosts::VIP_V4);

fn passport(socket: &OwnedFd, unread: &[u8]) -> Passport {
    let socket = TcpStream::from(socket.try_clone().unwrap());
    Passport {
        listener: Address::Tcp((VIP, 80).into()),
        peer: Some(socket.peer_addr().unwrap()),
        requests: 0,
        written: 0,
        was_passed: false,
        flow: None,
        stay: false,
        unread: unread.to_vec(),
        left_ms: None,
        begins_with_tls: false,
        parts: Vec::new(),
    }
}

/// Reads a request's head.
fn request(socket: &mut TcpStream) -> Vec<u8> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    head
}

fn respond(socket: &mut TcpStream, body: &str) {
    write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
}

/// Goal: a client that knows nothing of it is served by one host after the other on one connection. Method: curl asks three
/// times; the first node answers twice, returns the connection, and the second node answers.
#[test]
fn a_connection_of_curl_moves() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new();
    let url = |path: &str| format!("http://{VIP}/{path}");
    let format = "%{num_connects} ";
    let curl = cluster
        .hosts
        .client
        .command("curl")
        .args(["-sS", "--max-time", "20", "-w", format, &url("one"), &url("two"), &url("three")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut accepted = cluster.listener.accept().unwrap().0;
    let head = request(&mut accepted);
    let (mut client, got) = cluster.handoff(0, accepted.into(), &head);
    assert_eq!((&got.unread, got.stay), (&head, false));
    let flow = got.flow.unwrap();
    respond(&mut client, "first ");
    // The node keeps the connection: the front-end's kernel forwards what the client sends.
    assert!(request(&mut client).starts_with(b"GET /two "));
    cluster.nodes[0].send(
        &FromWorker::Report(Report { begun: vec![flow], ended: vec![flow, flow], ..Report::default() }),
        None,
    );
    respond(&mut client, "second ");
    let head = request(&mut client);
    let (client, got) = cluster.give_back(0, client, flow, &head);
    assert_eq!((&got.unread, got.flow, got.stay), (&head, None, false));
    let (mut client, got) = cluster.handoff(1, client.into(), &head);
    respond(&mut client, "third ");
    assert_eq!(client.read(&mut [0]).unwrap(), 0, "curl has ended");
    drop(client);
    let flow = got.flow.unwrap();
    cluster.nodes[1].send(&FromWorker::Report(Report { gone: vec![flow], ..Report::default() }), None);
    let output = curl.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "first 1 second 0 third 0 ");
    // All three requests are accounted for.
    let expected = [("a", 1, 2), ("b", 0, 1)].map(|(node, begun_kept, ended)| Loads {
        node: node.into(),
        begun_kept,
        ended,
        active: 0,
    });
    let mut latest = BTreeMap::new();
    cluster.front.wait_for(|message| {
        if let ToMaster::Loads(loads) = message {
            latest.insert(loads.node.clone(), loads);
        }
        latest.values().eq(&expected).then_some(())
    });
    cluster.assert_no_resets();
}

/// Goal: a connection that a node cannot use comes back, and the front-end knows that it is to stay. Method: the node's workers
/// have ended, and their socket with them; the client has sent half of its next request.
#[test]
fn a_refused_connection_comes_back_and_stays() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new();
    cluster.nodes[0].end_workers();
    let (mut client, socket) = cluster.connect();
    client.write_all(b"GET / HTTP/1.1\r\n\r\nGET /").unwrap();
    let mut accepted = TcpStream::from(socket);
    let head = request(&mut accepted);
    let passport = Box::new(passport(&accepted.try_clone().unwrap().into(), &head));
    cluster.front.send(&FromWorker::Handoff { node: "a".into(), passport }, Some(accepted.into()));
    let (mut back, got) = cluster.front.arrival();
    assert_eq!((&got.unread, got.flow, got.stay), (&head, None, true));
    respond(&mut back, "here");
    let mut text = [0; 42];
    client.read_exact(&mut text).unwrap();
    assert!(text.ends_with(b"here"), "{}", String::from_utf8_lossy(&text));
    client.write_all(b"more HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(request(&mut back), b"GET /more HTTP/1.1\r\n\r\n");
    cluster.assert_no_resets();
}

/// Goal: with a node's agent its connections end, and no others. Method: two nodes have a client each; one agent is killed.
#[test]
fn the_end_of_a_agent_resets_its_connections_only() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new();
    let clients: Vec<_> = (0..2)
        .map(|node| {
            let (mut client, socket) = cluster.connect();
            client.write_all(b"x").unwrap();
            let mut accepted = TcpStream::from(socket);
            accepted.read_exact(&mut [0]).unwrap();
            let (server, _) = cluster.handoff(node, accepted.into(), b"x");
            (client, server)
        })
        .collect();
    let [(mut lost, _at_lost), (mut living, mut at_living)] = <[_; 2]>::try_from(clients).unwrap();
    cluster.nodes[0].kill();
    cluster.front.wait_for(|message| match message {
        ToMaster::Loads(loads) => (loads.node == "a" && loads.active == 0 && loads.ended == 1).then_some(()),
        _ => None,
    });
    lost.write_all(b"y").unwrap();
    let error = lost.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    living.write_all(b"y").unwrap();
    at_living.read_exact(&mut [0]).unwrap();
    at_living.write_all(b"z").unwrap();
    living.read_exact(&mut [0]).unwrap();
}

/// Goal: a member that is none any more is cut off at once and stays out, and others stay. Method: the front-end revokes `a`.
#[test]
fn a_revoked_member_is_cut_off() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new();
    cluster.front.revoke(&["a"]);
    let mut states = BTreeMap::new();
    cluster.front.wait_for(|message| {
        if let ToMaster::Reachable { node, reachable } = message {
            states.insert(node, reachable);
        }
        (states.len() == 2).then_some(())
    });
    assert_eq!(states.into_iter().collect::<Vec<_>>(), [("a".to_owned(), false), ("b".to_owned(), true)]);
    let (mut client, socket) = cluster.connect();
    client.write_all(b"x").unwrap();
    let mut accepted = TcpStream::from(socket);
    accepted.read_exact(&mut [0]).unwrap();
    let (mut server, _) = cluster.handoff(1, accepted.into(), b"x");
    server.write_all(b"z").unwrap();
    client.read_exact(&mut [0]).unwrap();
    // It was refused for no other reason.
    cluster.front.revoke(&[]);
    cluster.front.wait_for(|message| {
        matches!(message, ToMaster::Reachable { node, reachable: true } if node == "a").then_some(())
    });
}

/// Goal: what a hand-off costs is known. Method: one connection goes to a node and back, again and again; the times are
/// printed, not judged.
#[test]
fn a_connection_moves_often() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new();
    let (mut client, mut socket) = cluster.connect();
    let (mut there, mut back) = (Vec::new(), Vec::new());
    for number in 0..200_u32 {
        client.write_all(&number.to_be_bytes()).unwrap();
        let mut accepted = TcpStream::from(socket);
        let mut bytes = [0; 4];
        accepted.read_exact(&mut bytes).unwrap();
        let began = Instant::now();
        let (mut server, got) = cluster.handoff(number as usize % 2, accepted.into(), &bytes);
        there.push(began.elapsed());
        assert_eq!(got.unread, number.to_be_bytes());
        server.write_all(&bytes).unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, number.to_be_bytes());
        client.write_all(b"next").unwrap();
        server.read_exact(&mut bytes).unwrap();
        let began = Instant::now();
        let (mut server, _) = cluster.give_back(number as usize % 2, server, got.flow.unwrap(), &bytes);
        back.push(began.elapsed());
        server.write_all(&bytes).unwrap();
        client.read_exact(&mut bytes).unwrap();
        socket = server.into();
    }
    for (what, times) in [("hand-off", &mut there), ("return", &mut back)] {
        times.sort_unstable();
        println!("{what}: median {:?}, least {:?}, most {:?}", times[100], times[0], times[199]);
    }
    cluster.assert_no_resets();
}

/// Goal: a hand-off makes these calls on the connection, and no others. Method: both agents under strace, while new connections with a
/// request go to a node. What they say to each other depends on timers, and is printed only.
#[test]
fn a_hand_off_makes_these_calls() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new();
    let mut there = Vec::new();
    let mut move_one = || {
        let (mut client, socket) = cluster.connect();
        client.write_all(b"x").unwrap();
        let mut accepted = TcpStream::from(socket);
        accepted.read_exact(&mut [0]).unwrap();
        let (mut server, _) = cluster.handoff(0, accepted.into(), b"x");
        server.write_all(b"y").unwrap();
        client.read_exact(&mut [0]).unwrap();
        there.push((client, server));
    };
    // The first one asks on which interface the node is.
    move_one();
    let traces = [&cluster.front, &cluster.nodes[0]].map(AgentHost::trace);
    (0..MOVES).for_each(|_| move_one());
    let [front, node] = traces.map(Trace::counts);
    println!("{MOVES} hand-offs: front-end {front:?}, node {node:?}");
    // See `docs/figures-cluster.md`.
    let made = |counts: &BTreeMap<String, usize>, name: &str| {
        let count = counts.get(name).copied().unwrap_or(0);
        assert_eq!(count % MOVES, 0, "{name}: {counts:?}");
        count / MOVES
    };
    let of_front = ["getsockname", "getpeername", "bpf", "setsockopt", "getsockopt", "ioctl", "connect"];
    assert_eq!(of_front.map(|name| made(&front, name)), [2, 2, 1, 3, 9, 2, 1]);
    let of_node = ["socket", "setsockopt", "bind", "connect", "getsockopt", "bpf"];
    assert_eq!(of_node.map(|name| made(&node, name)), [1, 11, 1, 1, 0, 0]);
}

/// Connections whose calls are counted.
const MOVES: usize = 20;

/// The process of a host's agent; the tests start it.
#[test]
fn the_agent_process() {
    if let Some(path) = std::env::var_os(host::SOCKET_VARIABLE) {
        baton_handoff_agent::run(path.as_ref(), Limits::default()).unwrap();
    }
}
