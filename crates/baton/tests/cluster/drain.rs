//! `baton ctl cluster drain`, said to any member: all front-ends spare the node, and it gives back the connections that it has.

use std::fs;
use std::process::{Child, Command, Stdio};

use baton_lab::network::{ClusterHosts, Network};
use serde_json::Value;

use crate::architectures::under_every_architecture;
use crate::clients::long_file;
use crate::common::client::Client;
use crate::common::folder::{Folder, pattern};
use crate::common::server::{Server, wait_until};
use crate::front::FILES;
use crate::handoff::{Cluster, listed, make_key, reached};

/// Kept connections: of more than one round of those that go back.
const CONNECTIONS: usize = 40;

fn state(front: &Server, node: &str) -> String {
    let told: Value = serde_json::from_str(&front.ctl(&["cluster", "--json"])).expect("JSON");
    let nodes = told["nodes"].as_array().expect("nodes");
    let node = nodes.iter().find(|one| one["name"] == node).expect("the node");
    node["state"].as_str().expect("a state").to_owned()
}

fn wait_for_state(fronts: [&Server; 2], node: &str, expected: &str) {
    wait_until(&format!("{node} is {expected}"), || {
        fronts.iter().all(|front| state(front, node) == expected)
    });
}

/// Goal: the word gets from a node to all front-ends and to the node that it is about, which has no list of nodes itself; kept
/// connections move to the other node, and none is closed; the command waits for that. Method: clients that keep their
/// connections; a second front-end, which begins anew meanwhile.
#[test]
fn a_node_is_drained_from_wherever_that_is_said() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new("stay", "handoff");
    let second_host = cluster.another_host();
    let second = cluster.front_at(&second_host, &cluster.key());
    wait_until("both nodes take its connections, too", || reached(&second) == 2);
    let address = (ClusterHosts::VIP_V4, 80).into();
    let mut clients: Vec<_> =
        cluster.hosts.client.run(|| (0..CONNECTIONS).map(|_| Client::connect(address)).collect());
    let mut of_nodes = [0, 0];
    for (number, client) in clients.iter_mut().enumerate() {
        of_nodes[usize::from(long_file(client, number % FILES) == "n1")] += 1;
    }
    assert!(of_nodes.iter().all(|count| *count > 0), "{of_nodes:?}");
    let [drained, spared] = if of_nodes[0] > of_nodes[1] { [0, 1] } else { [1, 0] };
    let names = [drained, spared].map(|node| format!("n{node}"));

    let said = cluster.nodes[spared].ctl(&["cluster", "drain", &names[0]]);
    assert!(said.contains("drained, by all members of the cluster"), "{said}");
    assert!(said.ends_with(&format!("{} is empty\n", names[0])), "{said}");
    wait_for_state([&cluster.front, &second], &names[0], "drained");
    // Workers publish their counters some times a second.
    wait_until("its status says so, too", || {
        cluster.nodes[drained].status()["mover"]["connections_of_front_ends"] == 0
    });
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(long_file(client, (number + 1) % FILES), names[1], "on the same connection");
    }

    // A front-end that begins now learns it from nodes.
    drop(second);
    let second = cluster.front_at(&second_host, &cluster.key());
    wait_for_state([&cluster.front, &second], &names[0], "drained");
    let said = second.ctl(&["cluster"]);
    assert!(said.contains("by `baton ctl cluster drain`: 0 connections of front-ends left"), "{said}");

    let said = cluster.nodes[drained].ctl(&["cluster", "undrain", &names[0]]);
    assert!(said.contains("not drained, by all members"), "{said}");
    wait_for_state([&cluster.front, &second], &names[0], "up");
    wait_until("it gets connections again", || (0..FILES).any(|file| cluster.curl(&[file])[0].1 == names[0]));
}

/// Goal: the same under every architecture, on both sides.
fn a_kept_connection_leaves_a_drained_node(architecture: &str) {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::under(architecture, "stay", "handoff");
    let mut client = cluster.hosts.client.run(|| Client::connect((ClusterHosts::VIP_V4, 80).into()));
    let node = long_file(&mut client, 1);
    assert!(cluster.front.ctl(&["cluster", "drain", &node]).ends_with("is empty\n"));
    assert_ne!(long_file(&mut client, 2), node);
}

under_every_architecture!(by name: a_kept_connection_leaves_a_drained_node);

/// Goal: an answer under way at the node is completed, the command waits no longer than it is told, and the connection moves behind
/// the answer.
#[test]
fn what_is_under_way_ends_first() {
    if Network::is_left_out() {
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let body = pattern(LARGE_BYTES, 7);
    for node in &cluster.nodes {
        node.folder().write("large.bin", body);
    }
    let mut client = cluster.hosts.client.run(|| Client::connect((ClusterHosts::VIP_V4, 80).into()));
    let node = long_file(&mut client, 1);
    client.send("GET /large.bin HTTP/1.1\r\nHost: front\r\n\r\n");
    let refusal = cluster.front.ctl_fails(&["cluster", "drain", &node, "--wait", "1"]);
    assert!(refusal.contains(&format!("{node} is not empty after 1 s")), "{refusal}");
    assert!(client.response().body == body, "other bytes");
    assert!(cluster.front.ctl(&["cluster", "drain", &node]).ends_with("is empty\n"));
    assert_ne!(long_file(&mut client, 2), node);
}

/// Goal: the same where the nodes are known from etcd: the node says there what it has left, so the command shows that on any
/// member, such as a node that asks no other.
#[test]
fn a_node_of_etcd_says_what_it_has_left() {
    if Network::is_left_out() {
        return;
    }
    if Command::new("etcd").arg("--version").output().is_err() {
        eprintln!("LEFT OUT of the tests: etcd is not installed (apt-get install etcd-server)");
        return;
    }
    let cluster = Cluster::new("stay", "handoff");
    let mut etcd = follow_etcd(&cluster);
    for node in &cluster.nodes {
        node.folder().write("large.bin", pattern(LARGE_BYTES, 7));
    }
    let mut client = cluster.hosts.client.run(|| Client::connect((ClusterHosts::VIP_V4, 80).into()));
    let mut node = String::new();
    // The front-end's agent connects to the nodes anew: until then requests are relayed.
    wait_until("the connection is at a node", || {
        node = long_file(&mut client, 1);
        cluster.front.status()["mover"]["connections_at_nodes"] == 1
    });
    client.send("GET /large.bin HTTP/1.1\r\nHost: front\r\n\r\n");
    let other = &cluster.nodes[usize::from(node == "n0")];
    let refusal = other.ctl_fails(&["cluster", "drain", &node, "--wait", "3"]);
    assert!(refusal.contains(&format!("{node} is not empty after 3 s")), "{refusal}");
    let left = |server: &Server| {
        let drains = server.status()["drains"].clone();
        drains[0]["left"].as_u64().filter(|_| drains[0]["node"] == *node && drains[0]["reports"] == 1)
    };
    assert_eq!([left(other), left(&cluster.front)], [Some(1); 2]);
    let said = cluster.front.ctl(&["cluster"]);
    assert!(said.contains("by `baton ctl cluster drain`: 1 connection of front-ends left"), "{said}");

    assert!(client.response().body == pattern(LARGE_BYTES, 7), "other bytes");
    let said = other.ctl(&["cluster", "drain", &node]);
    assert!(
        said.contains("in etcd, for all front-ends") && said.ends_with(&format!("{node} is empty\n")),
        "{said}"
    );
    assert_ne!(long_file(&mut client, 2), node, "on the same connection");
    other.ctl(&["cluster", "undrain", &node]);
    wait_until("its word is gone", || left(other).is_none());
    etcd.kill().expect("it runs");
    etcd.wait().expect("its end");
}

/// Lets nodes register in an etcd beside the front-end, which finds them there.
fn follow_etcd(cluster: &Cluster) -> Child {
    let host = &cluster.hosts.front;
    let url = format!("http://{}:2379", host.v4());
    let mut etcd = host.command("etcd");
    etcd.arg("--data-dir").arg(cluster.front.folder().base().join("etcd"));
    etcd.args(["--listen-client-urls", &url, "--advertise-client-urls", &url]);
    let etcd = etcd.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("etcd");
    let follow = |server: &Server, listed: &str, register: &str| {
        let (folder, file) = (server.folder().base(), server.folder().base().join("baton.toml"));
        let text = fs::read_to_string(&file).expect("a configuration");
        let follows = format!(
            "state_folder = '{}/state'\netcd = {{ endpoints = ['{url}'], ttl_s = 5{register} }}\n",
            folder.display()
        );
        let (before, after) = text.split_once("[cluster]\n").expect("its section");
        fs::write(&file, format!("{before}[cluster]\n{follows}{}", after.replacen(listed, "", 1)))
            .expect("a file");
        server.ctl(&["reload"]);
    };
    for (number, (node, host)) in cluster.nodes.iter().zip(&cluster.hosts.nodes).enumerate() {
        let address = host.v4();
        let register = format!(
            ", register = {{ to = 'http://{address}', name = 'n{number}', mover = '{address}:7946' }}"
        );
        follow(node, "", &register);
    }
    follow(&cluster.front, &format!("nodes = [{}]\n", listed(&cluster.hosts)), "");
    wait_until("its nodes are those of etcd", || {
        let told: Value = serde_json::from_str(&cluster.front.ctl(&["cluster", "--json"])).expect("JSON");
        let nodes = told["nodes"]
            .as_array()
            .map_or(0, |nodes| nodes.iter().filter(|node| node["source"] == "etcd").count());
        nodes == 2 && reached(&cluster.front) == 2
    });
    etcd
}

/// More than sockets hold while a client does not read.
const LARGE_BYTES: usize = 32 << 20;

/// Goal: a name that no front-end has is not taken for an empty node; and a host with another key than the members' drains
/// nothing.
#[test]
fn only_members_drain_and_only_nodes_are_drained() {
    if Network::is_left_out() {
        return;
    }
    let mut cluster = Cluster::new("stay", "auto");
    let refusal = cluster.front.ctl_fails(&["cluster", "drain", "n7"]);
    assert!(refusal.contains("nodes: n0, n1"), "{refusal}");
    let refusal = cluster.nodes[0].ctl_fails(&["cluster", "drain", "n7", "--wait", "1"]);
    assert!(refusal.contains("is the name right"), "{refusal}");

    let (host, folder) = (cluster.another_host(), Folder::new());
    let stranger = cluster.front_at(&host, &make_key(&folder));
    wait_until("its agent runs", || stranger.status()["mover"]["pid"].as_u64() > Some(0));
    let refusal = stranger.ctl_fails(&["cluster", "drain", "n0", "--wait", "2"]);
    assert!(refusal.contains("n0 is not empty"), "{refusal}");
    assert_eq!(state(&stranger, "n0"), "drained", "it spares the node itself");
    assert_eq!(state(&cluster.front, "n0"), "up");
}
