//! The servers of a cluster.

use std::fs;

use serde_json::Value;

use crate::common::client::Client;
use crate::common::folder::Folder;
use crate::common::server::{Server, wait_until};

/// A server that serves files, and names itself in its responses.
pub(crate) fn node(name: &str) -> Server {
    node_with(name, "")
}

/// The same, with lines of `[cluster]` and the rights that a handoff agent needs.
pub(crate) fn node_of_cluster(cluster: &str) -> Server {
    node_with("n0", &format!("user = 'root'\n[cluster]\n{cluster}"))
}

fn node_with(name: &str, settings: &str) -> Server {
    let folder = Folder::new();
    for file in 0..FILES {
        folder.write(&format!("{file}.txt"), format!("file {file}"));
    }
    let configuration = format!(
        "processes = 1\n{settings}\n[[site]]\nlisten = '127.0.0.1:0'\nroot = '{{root}}'\nheaders = {{ X-Node = '{name}' }}\n"
    );
    Server::run(folder, &configuration)
}

/// Files that each node has: `/0.txt` and so on.
pub(crate) const FILES: usize = 40;

/// So many nodes: `n0`, `n1` and so on.
pub(crate) fn nodes(count: usize) -> Vec<Server> {
    (0..count).map(|number| node(&format!("n{number}"))).collect()
}

/// The nodes as `[cluster]` has them; `more` of each, by its name.
pub(crate) fn listed(nodes: &[Server], more: impl Fn(&str) -> String) -> String {
    let entry = |(number, node): (usize, &Server)| {
        let name = format!("n{number}");
        format!("{{ to = 'http://{}', name = '{name}'{} }}", node.address(), more(&name))
    };
    nodes.iter().enumerate().map(entry).collect::<Vec<_>>().join(", ")
}

/// A server that distributes all requests; `cluster`: lines of that section.
pub(crate) fn front(settings: &str, cluster: &str) -> Server {
    Server::run(Folder::new(), &configuration(settings, cluster))
}

/// Its configuration, from within `[server]` on.
pub(crate) fn configuration(settings: &str, cluster: &str) -> String {
    format!(
        "{settings}\n[admin]\nlisten = '127.0.0.1:0'\n[log]\naccess = '{{base}}/access.log'\nformat = 'json'\nflush_ms = 10\n\
         [cluster]\n{cluster}\n[[site]]\nname = 'front'\n{{listen}}\n[[site.route]]\npath = '/'\ncluster = true\n"
    )
}

/// The lines in a server's access log of requests for a path, as soon as there are so many.
pub(crate) fn logged(server: &Server, path: &str, count: usize) -> Vec<Value> {
    let file = server.folder().base().join("access.log");
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let its = whole.lines().filter(|line| line.contains(&format!(" {path} ")));
        its.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    };
    wait_until(&format!("{count} lines of {path} in the log"), || lines().len() >= count);
    lines()
}

/// A sample of the metrics page.
pub(crate) fn metric(server: &Server, sample: &str) -> u64 {
    let admin = *server.addresses().last().expect("an address for monitoring");
    let page = Client::connect(admin).get("/metrics");
    let value =
        page.text().lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ').map(str::to_owned));
    value.unwrap_or_else(|| panic!("{sample}: {}", page.text())).parse().expect("a number")
}
