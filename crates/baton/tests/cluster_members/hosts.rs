//! The servers: nodes that register, and front-ends that find them.

use serde_json::Value;

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::port::free_port;
use crate::store::{Store, wait_until};

/// A server that says its name, and registers by it.
pub(crate) fn node(store: &Store, name: &str) -> Server {
    let route = format!("[[site.route]]\npath = '/'\nrespond = {{ status = 200, body = '{name}' }}\n");
    node_with(store, name, &route)
}

/// A server with this route, that registers by a name.
pub(crate) fn node_with(store: &Store, name: &str, route: &str) -> Server {
    let port = free_port();
    let register = format!(", register = {{ to = 'http://127.0.0.1:{port}', name = '{name}' }}");
    let cluster = cluster(store, &register);
    let site = format!("[[site]]\nlisten = '127.0.0.1:{port}'\n{route}");
    Server::run(Folder::new(), &format!("processes = 1\n[cluster]\n{cluster}\n{site}"))
}

/// A server that distributes all requests among them.
pub(crate) fn front(store: &Store) -> Server {
    Server::run(Folder::new(), &front_configuration(store))
}

/// Its configuration.
pub(crate) fn front_configuration(store: &Store) -> String {
    format!(
        "processes = 1\n[admin]\nlisten = '127.0.0.1:0'\n[cluster]\n{}\n[[site]]\nlisten = '127.0.0.1:0'\n[[site.route]]\n\
         path = '/'\ncluster = true\n",
        cluster(store, "")
    )
}

fn cluster(store: &Store, more: &str) -> String {
    format!("state_folder = '{{base}}/state'\netcd = {{ endpoints = ['{}'], ttl_s = 2{more} }}", store.url())
}

/// What `baton ctl cluster --json` tells.
pub(crate) fn told(front: &Server) -> Value {
    serde_json::from_str(&front.ctl(&["cluster", "--json"])).expect("JSON")
}

/// The nodes of a front-end, in a line: `a b-drained (c)`, the last one held.
pub(crate) fn nodes(front: &Server) -> String {
    let told = told(front);
    let name = |node: &Value| {
        let name = node["name"].as_str().expect("a name");
        match (node["held"] == true, node["state"].as_str()) {
            (true, _) => format!("({name})"),
            (_, Some("up")) => name.to_owned(),
            (_, state) => format!("{name}-{}", state.expect("a state")),
        }
    };
    told["nodes"].as_array().expect("nodes").iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Waits until each front-end has these nodes.
pub(crate) fn wait_for_nodes(fronts: &[&Server], expected: &str) {
    for front in fronts {
        wait_until(&format!("nodes {expected}"), || {
            let found = nodes(front);
            // One that was ejected while it died is the same node.
            found.replace("-ejected", "") == expected
        });
    }
}

/// A figure of a node.
pub(crate) fn figure(front: &Server, node: &str, key: &str) -> u64 {
    let told = told(front);
    let nodes = told["nodes"].as_array().expect("nodes");
    let node = nodes.iter().find(|one| one["name"] == node).expect("the node");
    node[key].as_u64().expect("a number")
}

/// Who answers a request.
pub(crate) fn answer(front: &Server) -> String {
    front.get("/").text().to_owned()
}
