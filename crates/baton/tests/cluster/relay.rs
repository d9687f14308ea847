//! Requests that are relayed to nodes: who gets which, and what one that is gone or drained costs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::TcpListener;
use std::ops::Range;
use std::process::Command;

use baton_engine::ArchitectureName;
use rustix::process::Signal;

use crate::architectures::under_every_architecture;
use crate::common::agent::Agent;
use crate::common::processes;
use crate::common::protocol::Protocol;
use crate::common::server::Server;
use crate::front::{FILES, front, listed, logged, metric, node, nodes};

/// Which node has answered for a file.
fn ask(agent: &mut Agent, file: usize) -> String {
    let response = agent.get(&format!("/{file}.txt"));
    assert_eq!((response.status, response.text()), (200, &*format!("file {file}")));
    response.field("x-node").expect("its name").to_owned()
}

/// Which nodes have answered for each of these files, asked for several times.
fn places_of(front: &Server, files: Range<usize>) -> BTreeMap<usize, BTreeSet<String>> {
    let mut places: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    let mut agent = front.agent();
    for _ in 0..3 {
        files.clone().for_each(|file| _ = places.entry(file).or_default().insert(ask(&mut agent, file)));
    }
    places
}

fn places(front: &Server) -> BTreeMap<usize, BTreeSet<String>> {
    places_of(front, 0..FILES)
}

/// Goal: every policy answers, uses all nodes, and where it is about locality, a path stays where it is, also after a reload.
#[test]
fn every_policy_distributes_and_those_of_locality_keep_paths_in_their_place() {
    let nodes = nodes(3);
    let listed = listed(&nodes, |_| String::new());
    for (policy, keeps) in [
        ("wrr", false),
        ("least-connections", false),
        ("power-of-two", false),
        ("consistent-hash", true),
        ("bounded-hash", false),
        ("maglev", true),
        ("lb", true),
        ("lard", true),
        ("lard-r", true),
        ("lard-h", true),
    ] {
        let front = front("", &format!("nodes = [{listed}]\npolicy = '{policy}'\nt_low = 1\nt_high = 1000"));
        let places = places(&front);
        let used: BTreeSet<_> = places.values().flatten().collect();
        assert_eq!(used.len(), 3, "{policy}: {places:?}");
        let is_kept = places.values().all(|nodes| nodes.len() == 1);
        assert!(is_kept || !keeps, "{policy}: {places:?}");
    }
}

/// Goal: what chose a node is in the log and the metrics.
#[test]
fn the_log_and_the_metrics_say_which_node_and_why() {
    let nodes = nodes(2);
    let front = front("", &format!("nodes = [{}]", listed(&nodes, |_| String::new())));
    let mut agent = front.agent();
    let node = ask(&mut agent, 7);
    assert_eq!(ask(&mut agent, 7), node);
    let lines = logged(&front, "/7.txt", 2);
    assert_eq!(lines.len(), 2);
    for (line, why) in lines.iter().zip(["first-assignment", "mapped"]) {
        let origin = &line["origin"];
        assert_eq!(
            (&origin["node"], &origin["way"], &origin["why"]),
            (&(*node).into(), &"relay".into(), &why.into())
        );
        let sample = format!("baton_cluster_choices_total{{node=\"{node}\",why=\"{why}\"}}");
        assert_eq!(metric(&front, &sample), 1);
    }
    assert_eq!(metric(&front, &format!("baton_cluster_requests_total{{node=\"{node}\",way=\"relay\"}}")), 2);
}

/// Goal: the death of a node costs no request, whatever the method, while a connection to it fails; its paths go to others.
#[test]
fn a_node_that_is_killed_costs_no_request() {
    let mut nodes = nodes(3);
    let listed = listed(&nodes, |_| String::new());
    let relay = "relay = { keep_connections = false, eject = { failures = 1 } }";
    let front = front("", &format!("nodes = [{listed}]\n{relay}"));
    let before = places(&front);
    nodes[1].signal(Signal::KILL);
    nodes[1].ended();
    let after = places(&front);
    for (file, nodes) in &after {
        assert!(!nodes.contains("n1"), "{file}: {nodes:?}");
        assert!(before[file].contains("n1") || before[file] == *nodes, "{file} has moved: {nodes:?}");
    }
    let retried = metric(&front, "baton_cluster_choices_total{node=\"n0\",why=\"retried\"}")
        + metric(&front, "baton_cluster_choices_total{node=\"n2\",why=\"retried\"}");
    assert!(retried > 0, "the first request finds out");
}

/// Goal: a node that takes requests and says nothing costs none that may be asked again. Method: the kernel accepts for it.
#[test]
fn a_silent_node_costs_no_request_that_is_safe_to_repeat() {
    let silent =
        TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr().map(|at| (socket, at)));
    let (_silent, address) = silent.expect("an address");
    let good = node("n1");
    let nodes = format!(
        "{{ to = 'http://{address}', name = 'n0' }}, {{ to = 'http://{}', name = 'n1' }}",
        good.address()
    );
    let relay = "policy = 'wrr'\nrelay = { head_ms = 300, eject = 'off' }";
    let front = front("", &format!("nodes = [{nodes}]\n{relay}"));
    let mut agent = front.agent();
    (0..6).for_each(|file| assert_eq!(ask(&mut agent, file), "n1"));
    assert!(metric(&front, "baton_cluster_choices_total{node=\"n1\",why=\"retried\"}") > 0);
    // What may change something is asked once.
    let posted: BTreeSet<_> = (0..6).map(|_| agent.send("POST", "/3.txt", b"a body").status).collect();
    assert_eq!(posted, BTreeSet::from([405, 504]));
}

/// Goal: a node that is drained gets nothing new; a reload that adds a node gives it a part, and moves no other paths than
/// those.
#[test]
fn nodes_are_drained_and_added() {
    let mut servers = nodes(2);
    let configured = |servers: &[Server]| format!("nodes = [{}]", listed(servers, |_| String::new()));
    let front = front("", &configured(&servers));
    let url = format!("http://{}", servers[0].address());
    front.ctl(&["drain-origin", &url]);
    let known = 0..FILES / 2;
    let before = places_of(&front, known.clone());
    assert!(before.values().all(|nodes| nodes.iter().all(|node| node == "n1")));
    front.ctl(&["undrain-origin", &url]);
    let old = configured(&servers);
    servers.push(node("n2"));
    let file = front.folder().base().join("baton.toml");
    let text = fs::read_to_string(&file).expect("its configuration");
    fs::write(&file, text.replace(&old, &configured(&servers))).expect("a new one");
    front.ctl(&["reload"]);
    assert_eq!(places_of(&front, known.clone()), before, "they are in the node's memory");
    let new = places_of(&front, known.end..FILES);
    for name in ["n0", "n1", "n2"] {
        assert!(new.values().flatten().any(|node| node == name), "{name}: {new:?}");
    }
}

/// Goal: requests of all protocols, with and without bodies, get to nodes under every architecture.
fn requests_are_relayed(architecture: &str) {
    let nodes = nodes(2);
    let settings = format!("architecture = '{architecture}'\nprocesses = {}", processes(architecture, 1));
    let front = front(&settings, &format!("nodes = [{}]", listed(&nodes, |_| String::new())));
    for protocol in Protocol::ALL {
        let front = front.over(protocol);
        let mut agent = front.agent();
        let first = ask(&mut agent, 3);
        assert!(architecture == ArchitectureName::Mp.name() || ask(&mut agent, 3) == first);
        // Files do not take it, but the node has read it.
        assert_eq!(agent.send("POST", "/3.txt", b"a body").status, 405);
        assert_eq!(agent.get("/none.txt").status, 404);
    }
}

under_every_architecture!(by name: requests_are_relayed);

/// Goal: `baton explain` and `baton check` name the nodes, and the reason for one.
#[test]
fn a_decision_can_be_explained() {
    let nodes = nodes(2);
    let front = front("", &format!("nodes = [{}]", listed(&nodes, |_| String::new())));
    let file = front.folder().base().join("baton.toml");
    let said = |command: &str, more: &[&str]| {
        let mut baton = Command::new(env!("CARGO_BIN_EXE_baton"));
        let output = baton.args([command, "--config"]).arg(&file).args(more).output().expect("baton");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let explained = said("explain", &["/7.txt"]);
    assert!(explained.contains("is asked: first-assignment (the target is new"), "{explained}");
    assert_eq!(explained.matches("(http://127.0.0.1:").count(), 2, "{explained}");
    let checked = said("check", &[]);
    assert!(checked.contains("/: 2 origins by lard-h"), "{checked}");
}
