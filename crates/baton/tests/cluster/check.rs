//! What `baton check` says of hosts between which connections are to move.

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use crate::common::folder::Folder;
use crate::common::server::BATON;

/// What `baton check` says of a configuration, with which requests would be answered in any case.
#[track_caller]
fn check(folder: &Folder, configuration: &str) -> String {
    let file = folder.base().join("baton.toml");
    fs::write(&file, configuration).expect("a configuration");
    let output = Command::new(BATON).arg("check").arg("-c").arg(&file).output().expect("baton check");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "requests are relayed until then: {said}");
    said
}

/// Goal: an operator hears what a host lacks, why that matters and what to do, before clients are relayed in silence.
#[test]
fn a_host_that_lacks_something_is_told_the_remedy() {
    let folder = Folder::new();
    // No packet is sent on to this host itself, and no node has this address on its loopback interface.
    let configuration = "[cluster]\nkey = '/etc/cluster.pem'\nlisten = ':7946'\n\
                         nodes = [{ to = 'http://127.0.0.1:1', mover = '127.0.0.1:7946' }]\n\
                         [[site]]\nlisten = '192.0.2.1:80'\n[[site.route]]\npath = '/'\ncluster = true\n";
    let said = check(&folder, configuration);
    for words in [
        "cannot hand connections over: the node 127.0.0.1 is on no network of this host",
        "cannot take connections over: 192.0.2.1 is no address of this host",
        "ip addr add 192.0.2.1/32 dev lo",
        "way = \"relay\"",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// Goal: an operator hears that nodes will not answer a front-end whose only address is the one that they have, too. Method: to
/// 127.0.0.2, which no interface has, the kernel sends from 127.0.0.1.
#[test]
fn a_front_end_needs_an_address_of_its_own() {
    let folder = Folder::new();
    let check = |vip: &str, agent: &str| {
        let configuration = format!(
            "[cluster]\nkey = '/etc/cluster.pem'\nnodes = [{{ to = 'http://127.0.0.2:1', name = 'a', mover = '{agent}:7946' }}]\n\
             [[site]]\nlisten = '{vip}:80'\n[[site.route]]\npath = '/'\ncluster = true\n"
        );
        check(&folder, &configuration)
    };
    let words = "warning: what this host sends to the node a comes from 127.0.0.1, to which clients connect";
    let said = check("127.0.0.1", "127.0.0.2");
    assert!(said.contains(words) && said.contains("ip addr add 127.0.0.1/32 dev INTERFACE"), "{said}");
    let said = check("127.0.0.9", "127.0.0.2");
    assert!(!said.contains("comes from"), "{said}");
}

/// Goal: nodes that etcd knows are told as that, and an etcd that is said to be on this host is looked for here.
#[test]
fn nodes_of_etcd_are_those_of_etcd() {
    let folder = Folder::new();
    let check = |listed: &str, endpoint: &str| {
        let configuration = format!(
            "[cluster]\n{listed}etcd = {{ endpoints = ['{endpoint}'] }}\nrelay = {{ slow_start_ms = 1000 }}\n\
             [[site]]\nlisten = '127.0.0.1:80'\n[[site.route]]\npath = '/'\ncluster = true\n"
        );
        check(&folder, &configuration)
    };
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("an address"));
    let said = check("", &endpoint);
    assert!(said.contains(&format!("    /: nodes by lard-h: those in etcd at {endpoint}\n")), "{said}");
    assert!(!said.contains("0.0.0.0") && !said.contains("warning"), "{said}");
    let listed = "nodes = ['http://127.0.0.2:1', { to = 'http://localhost:2', each_address = true }]\n";
    let said = check(listed, &endpoint);
    let all =
        format!("http://127.0.0.2:1, each address of http://localhost:2, those in etcd at {endpoint}\n");
    assert!(said.contains(&all) && !said.contains("warning"), "{said}");
    drop(listener);
    let said = check("", &endpoint);
    assert!(
        said.contains(&format!("  warning: etcd is not at {endpoint}: this is an address of this host")),
        "{said}"
    );
    assert!(said.contains("remedy: start it, or name an address"), "{said}");
}
