//! What an operator sees, and what does not count.

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::hosts::{answer, front, node, told, wait_for_nodes};
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
