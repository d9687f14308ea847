//! The cluster under requests, while its nodes and its etcd go through everything that happens to them.

use rustix::process::Signal;

use crate::common::folder::Folder;
use crate::common::server::Server;
use crate::hosts::{figure, front, front_configuration, node, nodes, told, wait_for_nodes};
use crate::load::Load;
use crate::store::{Store, wait_until};

/// Goal: no request fails that was safe to retry, whatever happens to nodes and to etcd, and both front-ends see the same.
/// Method: GETs without a pause over all of it, each counted.
#[test]
fn no_request_fails_whatever_happens_to_nodes_and_etcd() {
    let Some(mut store) = Store::start() else { return };
    let (a, b) = (node(&store, "a"), node(&store, "b"));
    let (one, two) = (front(&store), front(&store));
    let fronts = [&one, &two];
    wait_for_nodes(&fronts, "a b");
    let load = Load::on(&fronts);
    let all_is_well = |event: &str| {
        let before = load.answers();
        wait_until(&format!("requests after: {event}"), || load.answers() > before + 200);
        assert_eq!(load.failures()[..], [] as [String; 0], "after: {event}");
    };

    let c = node(&store, "c");
    wait_for_nodes(&fronts, "a b c");
    wait_until("requests at c", || fronts.iter().all(|front| figure(front, "c", "requests") > 0));
    all_is_well("a node joins");

    // At a node, which is no front-end.
    a.ctl(&["cluster", "drain", "b"]);
    wait_for_nodes(&fronts, "a b-drained c");
    fronts.iter().for_each(|front| wait_until("b is idle", || figure(front, "b", "load") == 0));
    b.wait_until_said("this node is drained: connections go back to front-ends");
    let before = fronts.map(|front| figure(front, "b", "requests"));
    all_is_well("a drain");
    assert_eq!(fronts.map(|front| figure(front, "b", "requests")), before, "a drained node gets nothing");
    two.ctl(&["cluster", "undrain", "b"]);
    one.ctl(&["cluster", "weight", "b", "5"]);
    wait_for_nodes(&fronts, "a b c");
    fronts.iter().for_each(|front| wait_until("its weight", || figure(front, "b", "weight") == 5));
    all_is_well("another weight");

    c.signal(Signal::KILL);
    wait_for_nodes(&fronts, "a b");
    all_is_well("a node is killed, and its lease expires");

    store.stop();
    let is_away = |front: &&&Server| told(front)["members"]["etcd"]["reachable"] == false;
    wait_until("etcd is away", || fronts.iter().all(|front| is_away(&front)));
    assert_eq!(fronts.map(nodes), ["a b", "a b"]);
    let said = one.ctl(&["cluster"]);
    assert!(said.contains("etcd does not answer") && said.contains("stale since"), "{said}");
    all_is_well("etcd is stopped");

    store.run();
    wait_until("etcd is back", || fronts.iter().all(|front| !is_away(&front)));
    wait_for_nodes(&fronts, "a b");
    all_is_well("etcd begins again");

    store.ctl(&["del", "", "--prefix"]);
    wait_until("nodes register again", || {
        store.ctl(&["get", "/baton/nodes/", "--prefix"]).contains("nodes/b")
    });
    wait_for_nodes(&fronts, "a b");
    all_is_well("all keys are deleted");

    store.stop();
    store.wipe();
    store.run();
    let has_lost = |front: &&&Server| told(front)["members"]["etcd"]["losses"].as_u64() > Some(0);
    wait_until("the loss is seen", || fronts.iter().all(|front| has_lost(&front)));
    wait_for_nodes(&fronts, "a b");
    all_is_well("etcd loses its data");

    // In order: it says that it leaves, and ends when it has answered what it got.
    a.ctl(&["drain"]);
    wait_for_nodes(&fronts, "b");
    all_is_well("a node ends in order");
    let answers = load.stop();
    assert!(answers > 2_000, "{answers}");
    drop(b);
}

/// Goal: a front-end that begins while etcd is away begins with the last view, and so does the successor of an upgrade, which
/// loses no request.
#[test]
fn a_front_end_begins_with_the_last_view() {
    let Some(mut store) = Store::start() else { return };
    let _nodes = (node(&store, "a"), node(&store, "b"));
    let folder = Folder::new();
    // A folder that outlives the server.
    let configuration =
        front_configuration(&store).replace("{base}/state", &format!("{}/state", folder.base().display()));
    let mut front = Server::run(Folder::new(), &configuration);
    wait_for_nodes(&[&front], "a b");
    let load = Load::on(&[&front]);
    front.ctl(&["upgrade"]);
    let before = load.answers();
    wait_until("requests after the upgrade", || load.answers() > before + 200);
    assert_eq!(load.failures()[..], [] as [String; 0]);
    assert!(load.stop() > 0);
    front.ended();
    drop(front);

    store.stop();
    let front = Server::run(Folder::new(), &configuration);
    assert_eq!(front.get("/").status, 200, "the first request");
    wait_until("it says so", || {
        let said = front.ctl(&["cluster"]);
        said.contains("from the state file, stale since") && said.contains("etcd does not answer")
    });
    assert_eq!(nodes(&front), "a b");
}
