//! What an operator sees, and what does not count.

use std::io::Write;
use std::net::TcpListener;

use serde_json::json;

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::hosts::{answer, figure, front, node, node_with, told, wait_for_nodes};
use crate::store::{Store, wait_until};

#[test]
fn the_operator_sees_nodes_and_where_a_target_goes() {
    let Some(store) = Store::start() else { return };
    let front = front(&store);
    assert_eq!(front.get("/").status, 503, "there is no node yet");
    let _nodes = (node(&store, "a"), node(&store, "b"));
    wait_for_nodes(&[&front], "a b");
    let who = front.get("/some/path?query");
    let said = front.ctl(&["cluster", "why", "http://front.example/some/path?another"]);
    assert!(said.contains(&format!("node {}", who.text())), "{said}");
    assert!(said.contains("the node is known to have the target"), "{said}");
    assert!(front.ctl_fails(&["cluster", "why", "nonsense"]).contains("neither a URL nor a path"));
    let refusal = front.ctl_fails(&["cluster", "drain", "c"]);
    assert!(refusal.contains("nodes: a, b"), "{refusal}");

    store.ctl(&["put", "/baton/nodes/bad", "nonsense"]);
    store.ctl(&["put", "/baton/nodes/far", r#"{"version":9,"to":"http://far"}"#]);
    wait_until("what does not count", || {
        let said = front.ctl(&["cluster"]);
        said.contains("nodes/bad does not count: not the JSON of a node") && said.contains("of version 9")
    });
    let said = front.ctl(&["cluster"]);
    for words in ["policy lard-h", "etcd answers at http://127.0.0.1", "source", "etcd", "weight"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(said.lines().all(|line| line.len() < 130), "it fits a screen: {said}");
    let admin = *front.addresses().last().expect("an address for monitoring");
    let page = Client::connect(admin).get("/metrics");
    let page = page.text();
    for line in ["baton_cluster_members 2", "baton_cluster_etcd_up 1", "baton_cluster_values_skipped 2"] {
        assert!(page.lines().any(|one| one == line), "{line} in {page}");
    }
    assert_eq!(told(&front)["members"]["etcd"]["skipped"].as_array().map(Vec::len), Some(2));
}

/// Goal: a node without a handoff agent says in etcd how many requests it has left, so the command shows that on any member. Method: an
/// application behind both nodes does not answer; the word is given on the node that does not wait for it.
#[test]
fn a_node_without_an_agent_says_what_it_has_left() {
    let Some(store) = Store::start() else { return };
    let application = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("'http://{}'", application.local_addr().expect("an address"));
    let route = format!("[[site.route]]\npath = '/'\nproxy = {proxy}\n");
    let nodes = ["a", "b"].map(|name| node_with(&store, name, &route));
    let front = front(&store);
    wait_for_nodes(&[&front], "a b");
    let mut client = Client::connect(front.address());
    client.send("GET / HTTP/1.1\r\nHost: front\r\n\r\n");
    let (mut asked, _) = application.accept().expect("a request");
    wait_until("the front-end says whom it asks", || {
        figure(&front, "a", "load") + figure(&front, "b", "load") == 1
    });
    let (drained, other) = if figure(&front, "a", "load") == 1 { ("a", &nodes[1]) } else { ("b", &nodes[0]) };
    let refusal = other.ctl_fails(&["cluster", "drain", drained, "--wait", "3"]);
    assert!(refusal.contains(&format!("{drained} is not empty after 3 s")), "{refusal}");
    for member in [other, &front] {
        let told = &member.status()["drains"][0];
        let said = ["node", "counts", "left", "reports"].map(|key| told[key].clone());
        assert_eq!(said, [json!(drained), json!("requests"), json!(1), json!(1)]);
    }
    assert!(front.ctl(&["cluster"]).contains("by `baton ctl cluster drain`: 1 request left"));

    asked.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("it waits");
    assert_eq!(client.response().text(), "ok");
    let said = other.ctl(&["cluster", "drain", drained]);
    assert!(said.ends_with(&format!("{drained} is empty\n")), "{said}");
}

/// Goal: nodes that the configuration lists are drained by this server alone.
#[test]
fn listed_nodes_are_drained_here() {
    let Some(store) = Store::start() else { return };
    let (a, b) = (node(&store, "a"), node(&store, "b"));
    let front = Server::run(
        Folder::new(),
        &format!(
            "processes = 1\n[cluster]\nnodes = [{{ to = 'http://{}', name = 'a' }}, {{ to = 'http://{}', name = 'b' }}]\n\
             policy = 'wrr'\n[[site]]\nlisten = '127.0.0.1:0'\n[[site.route]]\npath = '/'\ncluster = true\n",
            a.address(),
            b.address()
        ),
    );
    let said = front.ctl(&["cluster", "drain", "a"]);
    assert!(said.contains("by this server alone"), "{said}");
    (0..4).for_each(|_| assert_eq!(answer(&front), "b"));
    front.ctl(&["cluster", "undrain", "a"]);
    let texts = [answer(&front), answer(&front)];
    assert_ne!(texts[0], texts[1]);
    assert!(front.ctl_fails(&["cluster", "weight", "a", "2"]).contains("change it there, and reload"));
    assert!(told(&front)["members"].is_null());
}
