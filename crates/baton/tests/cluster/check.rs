//! What `baton check` says of hosts between which connections are to move.

use std::fs;
use std::process::Command;

use crate::common::folder::Folder;
use crate::common::server::BATON;

/// Goal: an operator hears what a host lacks, why that matters and what to do, before clients are relayed in silence.
#[test]
fn a_host_that_lacks_something_is_told_the_remedy() {
    let folder = Folder::new();
    let file = folder.base().join("baton.toml");
    // No packet is sent on to this host itself, and no node has this address on its loopback interface.
    let configuration = "[cluster]\nkey = '/etc/cluster.pem'\nlisten = ':7946'\n\
                         nodes = [{ to = 'http://127.0.0.1:1', mover = '127.0.0.1:7946' }]\n\
                         [[site]]\nlisten = '192.0.2.1:80'\n[[site.route]]\npath = '/'\ncluster = true\n";
    fs::write(&file, configuration).expect("a configuration");
    let output = Command::new(BATON).arg("check").arg("-c").arg(&file).output().expect("baton check");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "requests are relayed until then: {said}");
    for words in [
        "cannot hand connections over: the node 127.0.0.1 is on no network of this host",
        "cannot take connections over: 192.0.2.1 is no address of this host",
        "ip addr add 192.0.2.1/32 dev lo",
        "way = \"relay\"",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
